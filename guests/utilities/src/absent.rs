//! Programs that people reach for and that no sandbox can have, and why. They are not there: `command -v curl` finds nothing, so
//! that scripts with a second way take it. The shell gives the reason where it would say `command not found`.

const NETWORK: &str = "not available in the sandbox: there is no network";
const ROOT: &str = "not available in the sandbox: there is one user, and no other to become";
const PACKAGES: &str = "not available in the sandbox: programs cannot be installed";
const SERVICES: &str = "not available in the sandbox: there are no services";
const CONTAINERS: &str = "not available in the sandbox: there are no containers inside it";
const NATIVE: &str = "not available in the sandbox: it runs no native code";
const WHEELS: &str = "not available in the sandbox: packages are installed from outside, with `sandlite pip install`";
const MISSING: &str = "not available in the sandbox";

/// Sorted by name.
const ABSENT: &[(&str, &str)] = &[
    ("apt", PACKAGES),
    ("apt-get", PACKAGES),
    ("brew", PACKAGES),
    ("cargo", NATIVE),
    ("cc", NATIVE),
    ("clang", NATIVE),
    ("curl", NETWORK),
    ("dig", NETWORK),
    ("dnf", PACKAGES),
    ("docker", CONTAINERS),
    ("dpkg", PACKAGES),
    ("emacs", MISSING),
    ("ftp", NETWORK),
    ("g++", NATIVE),
    ("gcc", NATIVE),
    ("git", MISSING),
    ("go", NATIVE),
    ("java", NATIVE),
    ("journalctl", SERVICES),
    ("kubectl", CONTAINERS),
    ("make", MISSING),
    ("mount", "not available in the sandbox: its file system is given from outside"),
    ("nano", MISSING),
    ("nc", NETWORK),
    ("netcat", NETWORK),
    ("node", NATIVE),
    ("npm", PACKAGES),
    ("nslookup", NETWORK),
    ("perl", MISSING),
    ("ping", NETWORK),
    ("pip", WHEELS),
    ("pip3", WHEELS),
    ("podman", CONTAINERS),
    ("rsync", NETWORK),
    ("ruby", MISSING),
    ("rustc", NATIVE),
    ("scp", NETWORK),
    ("service", SERVICES),
    ("sftp", NETWORK),
    ("ssh", NETWORK),
    ("su", ROOT),
    ("sudo", ROOT),
    ("systemctl", SERVICES),
    ("telnet", NETWORK),
    ("umount", "not available in the sandbox: its file system is given from outside"),
    ("vi", MISSING),
    ("vim", MISSING),
    ("wget", NETWORK),
    ("yum", PACKAGES),
];

/// Why a program is not there; `None` for names nobody would expect.
#[must_use]
pub fn absent(name: &str) -> Option<&'static str> {
    ABSENT.binary_search_by_key(&name, |(known, _)| known).ok().map(|at| ABSENT[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(ABSENT.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(absent("curl"), Some(NETWORK));
        assert_eq!(absent("cat"), None);
    }
}
