//! Commits and tags.

use std::fmt::Write as _;

use crate::error::Error;
use crate::{Id, Kind};

/// Maximum number of parents read of one commit.
const PARENTS_MAX: usize = 1024;

/// A person and a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The email address.
    pub email: String,
    /// Seconds since 1970.
    pub seconds: i64,
    /// The time zone, such as `+0200`.
    pub zone: String,
}

impl Signature {
    fn line(&self) -> String {
        // Git interprets these as the end of the name, the address or the line.
        let clean = |text: &str| text.replace(['<', '>', '\n', '\0'], "").trim().to_owned();
        format!("{} <{}> {} {}", clean(&self.name), clean(&self.email), self.seconds.max(0), self.zone)
    }

    fn parse(line: &str) -> Option<Self> {
        let (name, rest) = line.split_once('<')?;
        let (email, rest) = rest.rsplit_once('>')?;
        let mut words = rest.split_whitespace();
        let seconds = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let is_zone =
            |word: &&str| word.len() == 5 && word.starts_with(['+', '-']) && word.bytes().skip(1).all(|b| b.is_ascii_digit());
        let zone = words.next().filter(is_zone).unwrap_or("+0000").to_owned();
        Some(Self { name: name.trim().to_owned(), email: email.to_owned(), seconds, zone })
    }
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The tree.
    pub tree: Id,
    /// The parent commits.
    pub parents: Vec<Id>,
    /// The author.
    pub author: Signature,
    /// The committer.
    pub committer: Signature,
    /// The message.
    pub message: String,
}

impl Commit {
    /// Encodes the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("tree {}\n", self.tree);
        for parent in &self.parents {
            let _ = writeln!(text, "parent {parent}");
        }
        let _ = write!(text, "author {}\ncommitter {}\n\n", self.author.line(), self.committer.line());
        text.push_str(&self.message.replace('\0', "\u{fffd}"));
        text.into_bytes()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let (head, message) = split(bytes);
        let field = |name: &'static str| head.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '));
        let id = |hex: &str| Id::parse(hex).ok_or_else(|| Error::damaged("a commit has an invalid object name"));
        let first = |name: &'static str| field(name).next().ok_or_else(|| Error::damaged(format!("a commit has no `{name}`")));
        let signature =
            |name| first(name).map(Signature::parse)?.ok_or_else(|| Error::damaged(format!("a commit has an invalid `{name}`")));
        let parents = field("parent").take(PARENTS_MAX).map(id).collect::<Result<_, _>>()?;
        Ok(Self { tree: id(first("tree")?)?, parents, author: signature("author")?, committer: signature("committer")?, message })
    }
}

/// An annotated tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The commit.
    pub object: Id,
    /// Its name, without `refs/tags/`.
    pub name: String,
    /// The tagger.
    pub tagger: Signature,
    /// The message.
    pub message: String,
}

impl Tag {
    /// Encodes the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { object, name, tagger, message } = self;
        let message = message.replace('\0', "\u{fffd}");
        format!("object {object}\ntype commit\ntag {name}\ntagger {}\n\n{}\n", tagger.line(), message.trim_end()).into_bytes()
    }
}

/// Parses a tag and returns its target and message.
pub(crate) fn parse_tag(bytes: &[u8]) -> Result<(Id, Kind, String), Error> {
    let (head, message) = split(bytes);
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let wrong = || Error::damaged("a tag has an invalid header");
    let id = field("object").and_then(Id::parse).ok_or_else(wrong)?;
    let kind = field("type").and_then(|name| Kind::of_name(name.as_bytes())).ok_or_else(wrong)?;
    Ok((id, kind, message))
}

// Returns the headers without continuation lines, and the message.
fn split(bytes: &[u8]) -> (String, String) {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, message) = bytes.split_at(end);
    let head = String::from_utf8_lossy(head);
    let head = head.lines().filter(|line| !line.starts_with(' ')).collect::<Vec<_>>().join("\n");
    (head, String::from_utf8_lossy(message.get(2..).unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn somebody() -> Signature {
        Signature {
            name: "Ada".to_owned(),
            email: "ada@example.org".to_owned(),
            seconds: 1_000_000_000,
            zone: "+0130".to_owned(),
        }
    }

    #[test]
    fn a_commit_is_read_as_it_was_written() {
        let id = Id::of(Kind::Tree, b"");
        let commit = Commit {
            tree: id,
            parents: vec![id, id],
            author: somebody(),
            committer: somebody(),
            message: "One\n\ntwo\n".to_owned(),
        };
        assert_eq!(Commit::parse(&commit.encode()).unwrap(), commit);
    }

    #[test]
    fn a_name_cannot_end_its_line() {
        let hostile = Signature { name: "A\ncommitter <x> 1 +0000\n\nx".to_owned(), email: "<a>".to_owned(), ..somebody() };
        assert_eq!(hostile.line(), "Acommitter x 1 +0000x <a> 1000000000 +0130");
    }

    #[test]
    fn signatures_of_keys_are_passed_over() {
        let id = Id::of(Kind::Tree, b"");
        let text = format!("tree {id}\nauthor A <a> 5 +0000\ncommitter B <b> x\ngpgsig -----BEGIN\n tree 00\n -----END\n\nHi");
        let commit = Commit::parse(text.as_bytes()).unwrap();
        assert_eq!((commit.committer.seconds, commit.committer.zone.as_str(), commit.message.as_str()), (0, "+0000", "Hi"));
        for wrong in ["", "tree 12\n", &text.replace("author", "autor"), &text.replace("A <a>", "A")] {
            assert!(Commit::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
