//! Names that git reserves: entries that some system would treat as `.git`, and references.

/// Returns whether a name could refer to `.git` on a filesystem that ignores case, some characters or the ends of names.
///
/// Git refuses to check such an entry out, and `git fsck` reports it.
#[must_use]
pub fn is_dot_git(name: &str) -> bool {
    is_any(name, &[".git", "git~1"])
}

/// Returns whether a name could refer to `.gitmodules` on such a filesystem. Git rejects a symbolic link of that name.
#[must_use]
pub fn is_dot_gitmodules(name: &str) -> bool {
    is_any(name, &[".gitmodules", "gitmod~1", "gitmod~2", "gitmod~3", "gitmod~4"])
}

fn is_any(name: &str, reserved: &[&str]) -> bool {
    // HFS+ ignores these characters.
    let is_ignored =
        |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let visible: String = name.chars().filter(|c| !is_ignored(*c)).collect();
    // NTFS ignores everything after a colon, and trailing spaces and full stops; a backslash separates names there.
    visible.split('\\').any(|part| {
        let part = part.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
        reserved.iter().any(|name| part.eq_ignore_ascii_case(name))
    })
}

/// Turns any text into the last part of a reference name, replacing invalid characters by `-`.
#[must_use]
pub fn reference_name(text: &str) -> String {
    let parts = text.split('/').filter(|part| !part.is_empty()).map(|part| {
        let mut name = String::new();
        for c in part.chars() {
            let is_refused = c.is_control() || c.is_whitespace() || "~^:?*[\\@{}".contains(c) || c == '.' && name.ends_with('.');
            name.push(if is_refused { '-' } else { c });
        }
        let name = name.trim_end_matches('.');
        let name = name.trim_end_matches(".lock");
        let name = name.trim_start_matches(['.', '-']);
        if name.is_empty() { "-".to_owned() } else { name.to_owned() }
    });
    let name = parts.collect::<Vec<_>>().join("/");
    if name.trim_matches('-').is_empty() { "unnamed".to_owned() } else { name }
}

/// Returns whether a name is a valid reference name, which never leads out of the directory of references.
pub(crate) fn is_reference(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 1024
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock"))
        && !name.contains("..")
        && !name.contains("@{")
        && !name.chars().any(|c| c.is_control() || " ~^:?*[\\".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_some_system_takes_for_git_is_found() {
        for name in [".git", ".GIT", ".Git ", ".git.", "git~1", ".git::$INDEX_ALLOCATION", ".g\u{200c}it", "a\\.git"] {
            assert!(is_dot_git(name), "{name:?}");
        }
        for name in ["git", ".gitignore", ".gitmodules", ".git2", "a.git", "git~2", ""] {
            assert!(!is_dot_git(name), "{name:?}");
        }
    }

    #[test]
    fn a_label_becomes_a_reference_that_git_takes() {
        for (label, expected) in [
            ("before", "before"),
            ("v1.0", "v1.0"),
            ("before the fix", "before-the-fix"),
            ("a/b", "a/b"),
            ("..", "unnamed"),
            ("-x", "x"),
            ("a..b", "a.-b"),
            ("x.lock", "x"),
            ("x.lock.lock", "x"),
            ("a:b?*[c]\\", "a-b---c]-"),
            ("@{1}", "-1-".trim_start_matches('-')),
        ] {
            let name = reference_name(label);
            assert_eq!(name, expected, "{label}");
            assert!(is_reference(&name), "{label}");
        }
    }

    #[test]
    fn a_reference_stays_in_its_directory() {
        for name in ["HEAD", "main", "refs/heads/a-b", "v1.0"] {
            assert!(is_reference(name), "{name}");
        }
        for name in ["", "../x", "/etc/passwd", "a/../b", "a//b", ".x", "a b", "a\0b", "x.lock", "a/"] {
            assert!(!is_reference(name), "{name:?}");
        }
    }
}
