//! The defaults of a sandbox: the user, the home directory, the environment. Each is defined only here.

use sqlite_fs::Owner;

/// The directory commands start in.
pub const HOME: &str = "/home/user";

/// The sandbox's one user, who owns new files.
pub(crate) const USER: Owner = Owner { uid: 1000, gid: 1000 };

/// The file creation mask a command starts with.
pub(crate) const UMASK: u32 = 0o022;

/// The user's entries in `/etc/passwd` and `/etc/group`.
pub(crate) const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\n";
pub(crate) const GROUP: &str = "root:x:0:\nuser:x:1000:\n";

/// The directory of packages installed for the user, like `pip install --user`.
pub(crate) const USER_BASE: &str = "/home/user/.local";

/// The environment of every command, without any variables of the host (T-ISO-04).
pub(crate) const ENVIRONMENT: [(&str, &str); 7] = [
    ("HOME", HOME),
    ("LANG", "C.UTF-8"),
    ("LOGNAME", "user"),
    ("PATH", "/usr/local/bin:/usr/bin:/bin:/home/user/.local/bin"),
    ("SHELL", "/bin/bash"),
    ("TERM", "dumb"),
    ("USER", "user"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_is_the_same_everywhere() {
        let Owner { uid, gid } = USER;
        assert!(PASSWD.contains(&format!("\nuser:x:{uid}:{gid}:user:{HOME}:/bin/bash\n")));
        assert!(GROUP.contains(&format!("\nuser:x:{gid}:\n")));
        assert_eq!(USER_BASE, format!("{HOME}/.local"));
        let path = ENVIRONMENT.iter().find(|(name, _)| *name == "PATH").unwrap().1;
        assert!(path.split(':').any(|directory| directory == format!("{USER_BASE}/bin")));
    }
}
