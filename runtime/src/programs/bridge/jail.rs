//! The jail of a host command: bubblewrap with its own namespaces, no network, no home directory, and write access only to the
//! lent tree.
//!
//! The system's programs and libraries are readable (`/usr`, `/opt`), and only the files of `/etc` that locate them. The command
//! is native code, confined by the kernel, which is weaker than the isolation of a guest (SECURITY.md).

use std::fs;
use std::io::{PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use presets::Limits;
use rustix::io::FdFlags;

use crate::clock;
use crate::defaults::USER;

/// Directories shown read-only, if they exist.
const SYSTEM: [&str; 2] = ["/usr", "/opt"];

/// Directories that are links into `/usr` on most systems.
const JOINED: [&str; 5] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"];

/// The visible files of `/etc`, which locate programs and libraries.
const ETC: [&str; 3] = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf"];

/// The search path for programs.
const PATH: [&str; 5] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/// Variables of the caller that the jail sets itself.
const OWN_VARIABLES: [&str; 4] = ["PATH", "HOME", "PWD", "TMPDIR"];

/// Limits outside the preset: open files, and no core dumps.
const OPEN_FILES: u32 = 1024;

/// Closes descriptors that another program has passed to us, sets limits and executes the program with the caller's variables,
/// which must not act before (`LD_PRELOAD`). The words of the command line are arguments, never part of this text.
const LIMITED: &str = "for fd in /proc/$$/fd/*; do fd=${fd##*/}; \
                       if [ \"$fd\" -gt 2 ] && [ \"$fd\" -lt \"$6\" ]; then eval \"exec $fd>&-\"; fi; done; \
                       ulimit -c 0; ulimit -n \"$1\"; ulimit -t \"$2\"; ulimit -f \"$3\"; ulimit -d \"$4\"; \
                       ulimit -u \"$5\" 2>/dev/null || ulimit -p \"$5\"; shift 6; exec /usr/bin/env -- \"$@\"";

/// The first descriptor that a plain `sh` cannot close.
const SH_DESCRIPTORS: u32 = 10;

/// How long the jail may take to end after a request.
const GONE: Duration = Duration::from_secs(5);

/// Maximum duration of the test.
const TRIAL: Duration = Duration::from_secs(10);

/// The user of a command if Sandlite itself runs as root, because limits do not apply to root.
const NOBODY: u32 = 62_137;

/// Returns the owner of the lent tree, if it is not us.
pub(super) fn owner() -> Option<u32> {
    rustix::process::geteuid().is_root().then_some(NOBODY)
}

/// The components of the jail.
#[derive(Debug)]
pub(super) struct Tools {
    bubblewrap: PathBuf,
}

/// The content of a jail.
pub(super) struct Prisoner<'a> {
    /// The program.
    pub(super) program: &'a Path,
    /// Its arguments, without its name.
    pub(super) args: &'a [String],
    /// Its environment, as `NAME=value`.
    pub(super) env: &'a [String],
    /// The writable host directory.
    pub(super) tree: &'a Path,
    /// Its path in the jail.
    pub(super) place: &'a str,
    /// The directory it starts in.
    pub(super) cwd: &'a str,
    /// Its limits.
    pub(super) limits: &'a Limits,
    /// The remaining seconds.
    pub(super) seconds: u64,
}

/// An occupied jail. Dropping it ends everything inside.
pub(super) struct Jail {
    child: Child,
    init: Option<u32>,
}

/// Finds a program that is visible in the jail.
pub(super) fn find(name: &str) -> Result<PathBuf, String> {
    let found = PATH.iter().map(|directory| Path::new(directory).join(name)).find(|path| path.is_file());
    let path = found.ok_or_else(|| format!("`{name}` is not in {}", PATH.join(", ")))?;
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if SYSTEM.iter().chain(&JOINED).any(|shown| real.starts_with(shown)) {
        return Ok(path);
    }
    Err(format!("`{}` is not below {}", real.display(), SYSTEM.join(" or ")))
}

impl Tools {
    /// Finds bubblewrap.
    pub(super) fn find() -> Result<Self, String> {
        let bubblewrap = find("bwrap").map_err(|_| "bubblewrap (`bwrap`) is not installed".to_owned())?;
        Ok(Self { bubblewrap })
    }

    /// Tests whether a jail can be created here.
    pub(super) fn try_out(&self) -> Result<(), String> {
        let mut command = self.jail();
        command.args(["--", "/usr/bin/env", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start bubblewrap: {error}"))?;
        let until = clock::now() + TRIAL;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if clock::now() < until => thread::park_timeout(Duration::from_millis(1)),
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err("bubblewrap does not work here: it does not exit".to_owned());
                }
            }
        };
        if status.success() {
            return Ok(());
        }
        let mut said = String::new();
        let _ = child.stderr.take().map(|stderr| stderr.take(500).read_to_string(&mut said));
        Err(format!("bubblewrap does not work here: {}", said.trim()))
    }

    // Everything but the tree and the command. The jail has its own environment, and bubblewrap none.
    fn jail(&self) -> Command {
        let mut command = Command::new(&self.bubblewrap);
        command.env_clear().current_dir("/");
        if let Some(owner) = owner() {
            command.uid(owner).gid(owner);
        }
        command.args(["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandlite"]);
        command.arg("--uid").arg(USER.uid.to_string()).arg("--gid").arg(USER.gid.to_string());
        for directory in SYSTEM {
            command.args(["--ro-bind-try", directory, directory]);
        }
        for directory in JOINED {
            match fs::read_link(directory) {
                Ok(target) => command.arg("--symlink").arg(target).arg(directory),
                Err(_) => command.args(["--ro-bind-try", directory, directory]),
            };
        }
        for file in ETC {
            command.args(["--ro-bind-try", file, file]);
        }
        command.args(["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/tmp/home", "--clearenv"]);
        command.args(["--setenv", "PATH", &PATH.join(":"), "--setenv", "HOME", "/tmp/home", "--setenv", "TMPDIR", "/tmp"]);
        command
    }

    /// Starts a jail.
    pub(super) fn start(&self, prisoner: &Prisoner<'_>) -> Result<Jail, String> {
        let mut command = self.jail();
        let (mut info, sender) = std::io::pipe().map_err(|error| error.to_string())?;
        rustix::io::fcntl_setfd(&sender, FdFlags::empty()).map_err(|error| error.to_string())?;
        let sender_number = std::os::fd::AsRawFd::as_raw_fd(&sender).to_string();
        command.arg("--bind").arg(prisoner.tree).arg(prisoner.place);
        command.args(["--chdir", prisoner.cwd, "--info-fd", &sender_number, "--"]);
        let bash = find("bash").ok();
        // With this option, its limits have the units of `sh`.
        let posix = bash.is_some().then_some("--posix");
        command.arg(bash.as_deref().unwrap_or(Path::new("/bin/sh"))).args(posix).args(["-c", LIMITED, "sh"]);
        let descriptors = if bash.is_some() { u32::MAX } else { SH_DESCRIPTORS };
        let limits = prisoner.limits;
        // In units of 512 bytes and of 1 024.
        let numbers = [
            u64::from(OPEN_FILES),
            prisoner.seconds.saturating_add(1),
            limits.file.0 / 512,
            limits.memory.0 / 1024,
            u64::from(limits.processes),
            u64::from(descriptors),
        ];
        let is_given = |variable: &&String| {
            variable.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !OWN_VARIABLES.contains(&name))
        };
        command.args(numbers.map(|number| number.to_string())).args(prisoner.env.iter().filter(is_given));
        command.arg(prisoner.program).args(prisoner.args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| format!("cannot start bubblewrap: {error}"))?;
        drop(sender);
        let mut jail = Jail { child, init: None };
        jail.init = first_process(&mut info);
        Ok(jail)
    }
}

// Bubblewrap's JSON status about the first process of the jail.
fn first_process(info: &mut PipeReader) -> Option<u32> {
    let mut text = String::new();
    info.take(4096).read_to_string(&mut text).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    value.get("child-pid")?.as_u64().and_then(|pid| u32::try_from(pid).ok())
}

impl Jail {
    /// Returns the process that represents it here.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends everything inside, and returns whether it has ended.
    pub(super) fn end(&mut self) -> bool {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let until = clock::now() + GONE;
        // The first process of a jail ends when all others have.
        while self.init.is_some_and(is_alive) {
            if clock::now() >= until {
                return false;
            }
            thread::park_timeout(Duration::from_millis(1));
        }
        self.init.is_some()
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.end();
    }
}

// A process that has ended may wait to be reaped.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next().map(str::to_owned));
    !matches!(state.as_deref(), None | Some("Z" | "X"))
}
