//! Globs over paths, as ripgrep's `-g` and `.gitignore` write them.

use pattern::{Fnmatch, Options};

/// One `-g`: the files that it lets through or, after a `!`, keeps out.
pub(super) struct Filter {
    pub include: bool,
    pub files: Glob,
    /// The same without a slash at its end, which says that a directory is meant.
    pub directories: Glob,
}

impl Filter {
    pub fn new(glob: &[u8]) -> Self {
        let (include, glob) = glob.strip_prefix(b"!").map_or((true, glob), |glob| (false, glob));
        let directory = glob.strip_suffix(b"/").unwrap_or(glob);
        Self { include, files: Glob::with_braces(glob), directories: Glob::with_braces(directory) }
    }
}

/// A glob for a file's name or, when a slash is in it, for its path.
pub(super) struct Glob {
    whole_path: bool,
    patterns: Vec<Fnmatch>,
}

impl Glob {
    /// A glob without braces.
    pub fn new(glob: &[u8]) -> Self {
        Self::any_of(&[glob.to_vec()], glob.contains(&b'/'))
    }

    /// A glob in which `{a,b}` stands for either.
    pub fn with_braces(glob: &[u8]) -> Self {
        Self::any_of(&braces(glob), glob.contains(&b'/'))
    }

    fn any_of(globs: &[Vec<u8>], whole_path: bool) -> Self {
        let mut patterns = Vec::new();
        for glob in globs {
            let glob = glob.strip_prefix(b"/").filter(|_| whole_path).unwrap_or(glob);
            patterns.push(Fnmatch::with(glob, Options { pathname: whole_path, ..Options::default() }));
            if whole_path && memchr::memmem::find(glob, b"**").is_some() {
                patterns.extend(double_stars(glob));
            }
        }
        Self { whole_path, patterns }
    }

    /// Returns whether a file with this name and path matches.
    pub fn matches(&self, name: &[u8], path: &[u8]) -> bool {
        let text = if self.whole_path { path } else { name };
        self.patterns.iter().any(|pattern| pattern.matches(text))
    }
}

/// The patterns of one with `**`, which stands for any number of directories, none included.
fn double_stars(glob: &[u8]) -> Vec<Fnmatch> {
    let mut glob = glob.to_vec();
    let mut patterns = vec![Fnmatch::new(&glob)];
    while let Some(at) = memchr::memmem::find(&glob, b"**/") {
        glob.drain(at..at + 3);
        patterns.push(Fnmatch::new(&glob));
    }
    patterns
}

/// The globs that one with `{a,b}` stands for.
fn braces(glob: &[u8]) -> Vec<Vec<u8>> {
    let Some(open) = memchr::memchr(b'{', glob) else { return vec![glob.to_vec()] };
    let Some(close) = memchr::memchr(b'}', &glob[open..]).map(|length| open + length) else { return vec![glob.to_vec()] };
    glob[open + 1..close]
        .split(|&byte| byte == b',')
        .flat_map(|choice| braces(&[&glob[..open], choice, &glob[close + 1..]].concat()))
        .collect()
}
