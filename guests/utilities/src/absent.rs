//! Programs that people expect and that a sandbox cannot have, with the reason. They do not exist: `command -v curl` finds nothing, so that
//! scripts with an alternative use it. The shell prints the reason instead of `command not found`.

const NETWORK: &str = "not available in the sandbox: there is no network";
const ROOT: &str = "not available in the sandbox: it has only one user";
const PACKAGES: &str = "not available in the sandbox: it has no package manager";
const SERVICES: &str = "not available in the sandbox: it does not run services";
const CONTAINERS: &str = "not available in the sandbox: it does not run containers";
const NATIVE: &str = "not available in the sandbox: it does not run native code";
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
    ("mount", "not available in the sandbox: its files are mounted from outside"),
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
    ("umount", "not available in the sandbox: its files are mounted from outside"),
    ("vi", MISSING),
    ("vim", MISSING),
    ("wget", NETWORK),
    ("yum", PACKAGES),
];

/// Returns why a program is missing; `None` for names that are not expected.
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
