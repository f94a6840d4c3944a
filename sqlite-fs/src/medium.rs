//! The filesystem of a database. SQLite's log needs memory that all its processes share and reliable locks, and a network
//! filesystem has neither (T-REL-04).
//!
//! A filesystem in user space can be either; its mount type decides, and an unknown one is assumed to be local.

#![expect(clippy::disallowed_methods, reason = "the kernel lists mounts in a file")]

use std::path::Path;

use crate::error::Error;

/// Network filesystems, by the number that `statfs` returns.
const NETWORK: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x564C, "NCP"),
    (0x00C3_6400, "Ceph"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x0116_1970, "GFS2"),
    (0x7461_636F, "OCFS2"),
    (0x786F_4256, "VirtualBox's shared folders"),
];

/// A filesystem in user space.
const FUSE: u64 = 0x6573_5546;
/// User-space filesystems on the network, by the mount type after `fuse.`.
const NETWORK_IN_USER_SPACE: &[&str] = &[
    "sshfs",
    "s3fs",
    "rclone",
    "glusterfs",
    "gcsfuse",
    "goofys",
    "blobfuse",
    "blobfuse2",
    "cephfs",
    "davfs",
    "curlftpfs",
    "juicefs",
];

/// Returns the name of the network filesystem, if it is one.
fn network(magic: u64, mount: impl FnOnce() -> Option<String>) -> Option<String> {
    if magic != FUSE {
        return NETWORK.iter().find(|(number, _)| *number == magic).map(|(_, name)| (*name).to_owned());
    }
    let mount = mount()?;
    let name = mount.strip_prefix("fuse.")?;
    NETWORK_IN_USER_SPACE.contains(&name).then(|| name.to_owned())
}

/// Returns the type of the mount with this device number, from the kernel's list of mounts.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has the list"))]
fn mount_type(mounts: &str, major: u32, minor: u32) -> Option<String> {
    let device = format!("{major}:{minor}");
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device.as_str()))?;
    line.split(" - ").nth(1)?.split(' ').next().map(str::to_owned)
}

/// Rejects a database on a network filesystem.
#[cfg(target_os = "linux")]
pub(crate) fn refuse_network(path: &Path) -> Result<(), Error> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = if path.exists() { path } else { directory };
    // A missing directory is reported when the file is opened.
    let Ok(found) = rustix::fs::statfs(place) else { return Ok(()) };
    let mount = || {
        let device = rustix::fs::stat(place).ok()?.st_dev;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        mount_type(&mounts, rustix::fs::major(device), rustix::fs::minor(device))
    };
    // The number has 32 bits, whatever the width of the field.
    match network((found.f_type as u64) & 0xFFFF_FFFF, mount) {
        Some(kind) => Err(Error::NetworkFilesystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn refuse_network(_path: &Path) -> Result<(), Error> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(magic: u64, mount: Option<&str>, expected: Option<&str>) {
        assert_eq!(network(magic, || mount.map(str::to_owned)).as_deref(), expected, "{magic:x} {mount:?}");
    }

    /// T-REL-04
    #[test]
    fn network_filesystems_are_refused() {
        check(0x6969, None, Some("NFS"));
        check(0xFF53_4D42, None, Some("CIFS"));
        check(0xFE53_4D42, None, Some("SMB"));
        check(0x0102_1997, None, Some("9P"));
        check(FUSE, Some("fuse.sshfs"), Some("sshfs"));
    }

    #[test]
    fn local_filesystems_are_not() {
        check(0xEF53, None, None); // ext4
        check(0x0102_1994, None, None); // tmpfs
        check(0x9123_683E, None, None); // btrfs
        check(0x794C_7630, None, None); // overlay, as in containers
        check(FUSE, Some("fuse.ntfs-3g"), None);
        check(FUSE, None, None);
        let dir = tempfile::tempdir().unwrap();
        refuse_network(&dir.path().join("a.db")).unwrap();
        refuse_network(Path::new("a.db")).unwrap();
    }

    #[test]
    fn the_mount_is_found_by_its_device() {
        let mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:45 / /mnt/far rw,nosuid shared:1 - fuse.sshfs host:/ rw\n";
        assert_eq!(mount_type(mounts, 0, 45).as_deref(), Some("fuse.sshfs"));
        assert_eq!(mount_type(mounts, 254, 0).as_deref(), Some("ext4"));
        assert_eq!(mount_type(mounts, 9, 9), None);
    }
}
