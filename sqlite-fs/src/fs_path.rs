//! A validated, normalized absolute path, which needs no further checks.
//!
//! Handles only the text: `path.rs` walks a tree and follows symbolic links.

use std::fmt;
use std::ops::Deref;

use crate::error::Error;
use crate::path::PATH_MAX;

/// A normalized absolute path: it starts with `/`, has no empty, `.` or `..` components and no NUL, and has at most [`PATH_MAX`]
/// bytes.
///
/// ```
/// use sqlite_fs::FsPath;
///
/// let home = FsPath::new("/home/agent")?;
/// let notes = home.join("../agent/./notes.txt")?;
/// assert_eq!(&*notes, "/home/agent/notes.txt");
/// assert!(notes.starts_with(&home));
/// # Ok::<(), sqlite_fs::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FsPath(String);

impl FsPath {
    /// Checks a path that is already absolute and normalized.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if it is not.
    pub fn new(text: impl Into<String>) -> Result<Self, Error> {
        let text = text.into();
        check_bytes(&text)?;
        let Some(names) = text.strip_prefix('/') else {
            return Err(invalid(format!("`{text}` does not start with `/`")));
        };
        match names.split('/').find(|name| matches!(*name, "" | "." | "..")).filter(|_| !names.is_empty()) {
            None => Ok(Self(text)),
            Some("") => Err(invalid(format!("`{text}` contains an empty component"))),
            Some(name) => Err(invalid(format!("`{text}` contains the component `{name}`"))),
        }
    }

    /// Returns the root directory.
    #[must_use]
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// Returns the path that `text` denotes relative to `self`; an absolute `text` replaces it, as in [`std::path::Path::join`].
    ///
    /// Empty and `.` components are dropped. `..` drops the component before it and stops at the root, regardless of symbolic
    /// links.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if `text` is empty or contains a NUL, or if the result is too long.
    pub fn join(&self, text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(invalid("the path is empty".to_owned()));
        }
        let mut path = if text.starts_with('/') { String::new() } else { self.0.trim_end_matches('/').to_owned() };
        for name in text.split('/') {
            match name {
                "" | "." => {}
                ".." => path.truncate(path.rfind('/').unwrap_or(0)),
                name => {
                    path.push('/');
                    path.push_str(name);
                }
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        check_bytes(&path)?;
        Ok(Self(path))
    }

    /// Returns the parent directory; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        match self.split_last()? {
            ("", _) => Some(Self::root()),
            (parent, _) => Some(Self(parent.to_owned())),
        }
    }

    /// Returns the last component; `None` for the root.
    #[must_use]
    pub fn file_name(&self) -> Option<&str> {
        self.split_last().map(|(_, name)| name)
    }

    /// Returns whether the path is `base` or below it. Compares whole components: `/ab` is not below `/a`.
    #[must_use]
    pub fn starts_with(&self, base: &Self) -> bool {
        let base = base.0.trim_end_matches('/');
        self.0.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn split_last(&self) -> Option<(&str, &str)> {
        self.0.rsplit_once('/').filter(|(_, name)| !name.is_empty())
    }
}

fn invalid(reason: String) -> Error {
    Error::Invalid { what: "path", reason }
}

fn check_bytes(text: &str) -> Result<(), Error> {
    if text.len() > PATH_MAX {
        return Err(invalid(format!("the path has {} bytes; the maximum is {PATH_MAX}", text.len())));
    }
    if text.contains('\0') {
        return Err(invalid("the path contains a NUL byte".to_owned()));
    }
    Ok(())
}

impl fmt::Display for FsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for FsPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Deref for FsPath {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FsPath {
        FsPath::new(text).unwrap()
    }

    fn reason(result: Result<FsPath, Error>) -> String {
        match result {
            Err(Error::Invalid { what: "path", reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_normalised_path_is_taken_as_it_is() {
        for text in ["/", "/a", "/a/b", "/.a", "/a.", "/...", "/a/..b", "/ ", "/ä/`", "/a\\b"] {
            assert_eq!(path(text).as_ref(), text);
            assert_eq!(path(text).to_string(), text);
        }
    }

    #[test]
    fn any_other_text_is_refused_with_the_reason() {
        let check = |text: &str, expected: &str| assert_eq!(reason(FsPath::new(text)), expected, "{text:?}");
        check("", "`` does not start with `/`");
        check("a/b", "`a/b` does not start with `/`");
        check("./a", "`./a` does not start with `/`");
        check("//", "`//` contains an empty component");
        check("//a", "`//a` contains an empty component");
        check("/a//b", "`/a//b` contains an empty component");
        check("/a/", "`/a/` contains an empty component");
        check("/.", "`/.` contains the component `.`");
        check("/a/./b", "`/a/./b` contains the component `.`");
        check("/..", "`/..` contains the component `..`");
        check("/a/..", "`/a/..` contains the component `..`");
        check("/a\0b", "the path contains a NUL byte");
    }

    #[test]
    fn a_path_has_at_most_path_max_bytes() {
        let longest = format!("/{}", "a".repeat(PATH_MAX - 1));
        assert_eq!(path(&longest).len(), 4095);
        assert_eq!(reason(FsPath::new(format!("{longest}a"))), "the path has 4096 bytes; the maximum is 4095");
        assert_eq!(reason(path(&longest).join("b")), "the path has 4097 bytes; the maximum is 4095");
        assert_eq!(path(&longest).join("../b").unwrap(), path("/b"));
    }

    #[test]
    fn joining_resolves_dots_by_text() {
        let check = |base: &str, text: &str, expected: &str| {
            assert_eq!(path(base).join(text).unwrap().as_ref(), expected, "{base} {text}");
        };
        check("/", "a", "/a");
        check("/a", "b/c", "/a/b/c");
        check("/a", "b//c/", "/a/b/c");
        check("/a", "./b/.", "/a/b");
        check("/a", ".", "/a");
        check("/a/b", "..", "/a");
        check("/a/b", "../..", "/");
        check("/a", "../../..", "/");
        check("/a", "../../b", "/b");
        check("/a", "b/../c", "/a/c");
        check("/a", "...", "/a/...");
        check("/a", "/b", "/b");
        check("/a", "//b//..//c", "/c");
        check("/a", "/", "/");
        check("/", ".", "/");
    }

    #[test]
    fn nothing_and_nul_cannot_be_joined() {
        assert_eq!(reason(path("/a").join("")), "the path is empty");
        assert_eq!(reason(path("/a").join("b\0")), "the path contains a NUL byte");
    }

    #[test]
    fn a_joined_path_passes_the_check() {
        let names = ["", ".", "..", "a", "b.c"];
        for first in names {
            for second in names {
                for third in names {
                    for text in [format!("{first}/{second}/{third}"), format!("/{first}/{second}/{third}/")] {
                        let joined = path("/x/y").join(&text).unwrap();
                        assert_eq!(FsPath::new(joined.to_string()).unwrap(), joined, "{text}");
                        assert_eq!(joined.join(".").unwrap(), joined, "{text}");
                        let again = joined.parent().zip(joined.file_name()).map(|(parent, name)| parent.join(name).unwrap());
                        assert_eq!(again.unwrap_or_else(FsPath::root), joined, "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_path_has_a_parent_and_a_name_unless_it_is_the_root() {
        let check = |text: &str, parent: Option<&str>, name: Option<&str>| {
            assert_eq!((path(text).parent().as_deref(), path(text).file_name()), (parent, name), "{text}");
        };
        check("/", None, None);
        check("/a", Some("/"), Some("a"));
        check("/a/b", Some("/a"), Some("b"));
        check("/a/b/c.d", Some("/a/b"), Some("c.d"));
    }

    #[test]
    fn a_prefix_is_compared_by_components() {
        let check = |text: &str, base: &str, expected: bool| {
            assert_eq!(path(text).starts_with(&path(base)), expected, "{text} {base}");
        };
        check("/", "/", true);
        check("/a", "/", true);
        check("/a", "/a", true);
        check("/a/b", "/a", true);
        check("/ab", "/a", false);
        check("/a", "/a/b", false);
        check("/", "/a", false);
        check("/b/a", "/a", false);
    }
}
