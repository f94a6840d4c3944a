//! The pages, and the code blocks of one.

use std::fs;
use std::path::{Path, PathBuf};

/// Pages outside `docs/`.
const OTHERS: [&str; 7] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "examples/README.md",
    "sdk/python/README.md",
];

/// The directory of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One page.
pub struct Page {
    /// Its path in the repository.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// A fenced block of a page.
pub struct Block {
    /// The number of its first line after the fence.
    pub line: usize,
    /// The words after the opening fence: the language, and `output` or `ignore`.
    pub words: Vec<String>,
    /// The programs that it needs, from a comment `<!-- needs: git, curl -->` above it.
    pub needs: Vec<String>,
    /// Its text.
    pub text: String,
}

impl Block {
    /// Returns the language.
    pub fn language(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns whether a word follows the language.
    pub fn is(&self, word: &str) -> bool {
        self.words.iter().skip(1).any(|each| each == word)
    }
}

impl Page {
    /// Reads a page.
    pub fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { path: PathBuf::from(path), text }
    }

    /// Returns the path as text.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the blocks of this page, in order.
    pub fn blocks(&self) -> Vec<Block> {
        blocks(&self.text)
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let (mut found, mut open, mut needs) = (Vec::new(), None::<Block>, Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(words)) => {
                let words = words.split_whitespace().map(str::to_owned).collect();
                open = Some(Block { line: number + 1, words, needs: std::mem::take(&mut needs), text: String::new() });
            }
            (None, None) => {
                let listed = line.strip_prefix("<!-- needs: ").and_then(|rest| rest.strip_suffix(" -->"));
                needs = listed.map_or_else(Vec::new, |names| names.split(", ").map(str::to_owned).collect());
            }
            (Some(_), Some("")) => found.extend(open.take()),
            (Some(block), _) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// Returns all pages.
pub fn pages() -> Vec<Page> {
    let mut pages: Vec<Page> = OTHERS.into_iter().map(Page::read).collect();
    let mut left = vec![root().join("docs")];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(Page::read(path.strip_prefix(root()).unwrap().to_str().unwrap()));
            }
        }
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(pages.len() > 20, "found only {} pages", pages.len());
    pages
}

#[test]
fn blocks_have_a_language_and_a_line() {
    let found = blocks("# Title\n<!-- needs: git, jq -->\n```console\n$ a\nb\n```\n\n```text output\nx\n```\n");
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].line, found[0].language(), found[0].text.as_str()), (4, "console", "$ a\nb\n"));
    assert_eq!(found[0].needs, ["git", "jq"]);
    assert!(found[1].is("output") && found[1].language() == "text" && found[1].needs.is_empty());
}
