//! ripgrep's flags: their names, and how a command line with them is read.
//!
//! Knows nothing of what a flag does; `options.rs` applies each.

use std::collections::BTreeSet;
use std::ffi::OsString;

use lexopt::Arg;

use super::options::{Options, Special};

/// Every flag that changes an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    AfterContext,
    AutoHybridRegex,
    BeforeContext,
    Binary,
    BlockBuffered,
    ByteOffset,
    CaseSensitive,
    Color,
    Colors,
    Column,
    Context,
    ContextSeparator,
    Count,
    CountMatches,
    Crlf,
    Debug,
    DfaSizeLimit,
    Encoding,
    Engine,
    FieldContextSeparator,
    FieldMatchSeparator,
    File,
    Files,
    FilesWithMatches,
    FilesWithoutMatch,
    FixedStrings,
    Follow,
    Generate,
    Glob,
    GlobCaseInsensitive,
    Heading,
    Hidden,
    HostnameBin,
    HyperlinkFormat,
    Iglob,
    IgnoreCase,
    IgnoreFile,
    IgnoreFileCaseInsensitive,
    IncludeZero,
    InvertMatch,
    Json,
    LineBuffered,
    LineNumber,
    NoLineNumber,
    LineRegexp,
    MaxColumns,
    MaxColumnsPreview,
    MaxCount,
    MaxDepth,
    MaxFilesize,
    Multiline,
    MultilineDotall,
    NoConfig,
    NoIgnore,
    NoIgnoreDot,
    NoIgnoreExclude,
    NoIgnoreFiles,
    NoIgnoreGlobal,
    NoIgnoreMessages,
    NoIgnoreParent,
    NoIgnoreVcs,
    NoMessages,
    NoRequireGit,
    NoUnicode,
    Null,
    NullData,
    OneFileSystem,
    OnlyMatching,
    PathSeparator,
    Passthru,
    Pcre2,
    Pcre2Version,
    Pre,
    PreGlob,
    Pretty,
    Quiet,
    RegexSizeLimit,
    Regexp,
    Replace,
    SearchZip,
    SmartCase,
    SortFiles,
    Sort,
    Sortr,
    Stats,
    StopOnNonmatch,
    Text,
    Threads,
    Trace,
    Trim,
    Type,
    TypeAdd,
    TypeClear,
    TypeNot,
    TypeList,
    Unrestricted,
    Vimgrep,
    WithFilename,
    NoFilename,
    WordRegexp,
    /// Accepted and without an effect: a guest can neither map files nor start threads.
    Nothing,
}

/// The argument of a flag.
#[derive(Debug)]
pub(super) enum Given {
    /// The flag itself, which takes no value.
    On,
    /// Its negation.
    Off,
    /// A value.
    Value(OsString),
}

/// A flag: the letter (or a blank), the name, the name that takes it back (or nothing), whether it needs a value.
struct Row(char, &'static str, &'static str, bool, Flag);

const FLAGS: &[Row] = &[
    Row('A', "after-context", "", true, Flag::AfterContext),
    Row(' ', "auto-hybrid-regex", "no-auto-hybrid-regex", false, Flag::AutoHybridRegex),
    Row('B', "before-context", "", true, Flag::BeforeContext),
    Row(' ', "binary", "no-binary", false, Flag::Binary),
    Row(' ', "block-buffered", "no-block-buffered", false, Flag::BlockBuffered),
    Row('b', "byte-offset", "no-byte-offset", false, Flag::ByteOffset),
    Row('s', "case-sensitive", "", false, Flag::CaseSensitive),
    Row(' ', "color", "", true, Flag::Color),
    Row(' ', "colors", "", true, Flag::Colors),
    Row(' ', "column", "no-column", false, Flag::Column),
    Row('C', "context", "", true, Flag::Context),
    Row(' ', "context-separator", "no-context-separator", true, Flag::ContextSeparator),
    Row('c', "count", "", false, Flag::Count),
    Row(' ', "count-matches", "", false, Flag::CountMatches),
    Row(' ', "crlf", "no-crlf", false, Flag::Crlf),
    Row(' ', "debug", "", false, Flag::Debug),
    Row(' ', "dfa-size-limit", "", true, Flag::DfaSizeLimit),
    Row('E', "encoding", "no-encoding", true, Flag::Encoding),
    Row(' ', "engine", "", true, Flag::Engine),
    Row(' ', "field-context-separator", "", true, Flag::FieldContextSeparator),
    Row(' ', "field-match-separator", "", true, Flag::FieldMatchSeparator),
    Row('f', "file", "", true, Flag::File),
    Row(' ', "files", "", false, Flag::Files),
    Row('l', "files-with-matches", "", false, Flag::FilesWithMatches),
    Row(' ', "files-without-match", "", false, Flag::FilesWithoutMatch),
    Row('F', "fixed-strings", "no-fixed-strings", false, Flag::FixedStrings),
    Row('L', "follow", "no-follow", false, Flag::Follow),
    Row(' ', "generate", "", true, Flag::Generate),
    Row('g', "glob", "", true, Flag::Glob),
    Row(' ', "glob-case-insensitive", "no-glob-case-insensitive", false, Flag::GlobCaseInsensitive),
    Row(' ', "heading", "no-heading", false, Flag::Heading),
    Row('.', "hidden", "no-hidden", false, Flag::Hidden),
    Row(' ', "hostname-bin", "", true, Flag::HostnameBin),
    Row(' ', "hyperlink-format", "", true, Flag::HyperlinkFormat),
    Row(' ', "iglob", "", true, Flag::Iglob),
    Row('i', "ignore-case", "", false, Flag::IgnoreCase),
    Row(' ', "ignore-file", "", true, Flag::IgnoreFile),
    Row(' ', "ignore-file-case-insensitive", "no-ignore-file-case-insensitive", false, Flag::IgnoreFileCaseInsensitive),
    Row(' ', "include-zero", "no-include-zero", false, Flag::IncludeZero),
    Row('v', "invert-match", "no-invert-match", false, Flag::InvertMatch),
    Row(' ', "json", "no-json", false, Flag::Json),
    Row(' ', "line-buffered", "no-line-buffered", false, Flag::LineBuffered),
    Row('n', "line-number", "", false, Flag::LineNumber),
    Row('N', "no-line-number", "", false, Flag::NoLineNumber),
    Row('x', "line-regexp", "", false, Flag::LineRegexp),
    Row('M', "max-columns", "", true, Flag::MaxColumns),
    Row(' ', "max-columns-preview", "no-max-columns-preview", false, Flag::MaxColumnsPreview),
    Row('m', "max-count", "", true, Flag::MaxCount),
    Row('d', "max-depth", "", true, Flag::MaxDepth),
    Row(' ', "maxdepth", "", true, Flag::MaxDepth),
    Row(' ', "max-filesize", "", true, Flag::MaxFilesize),
    Row(' ', "mmap", "no-mmap", false, Flag::Nothing),
    Row('U', "multiline", "no-multiline", false, Flag::Multiline),
    Row(' ', "multiline-dotall", "no-multiline-dotall", false, Flag::MultilineDotall),
    Row(' ', "no-config", "", false, Flag::NoConfig),
    Row(' ', "no-ignore", "ignore", false, Flag::NoIgnore),
    Row(' ', "no-ignore-dot", "ignore-dot", false, Flag::NoIgnoreDot),
    Row(' ', "no-ignore-exclude", "ignore-exclude", false, Flag::NoIgnoreExclude),
    Row(' ', "no-ignore-files", "ignore-files", false, Flag::NoIgnoreFiles),
    Row(' ', "no-ignore-global", "ignore-global", false, Flag::NoIgnoreGlobal),
    Row(' ', "no-ignore-messages", "ignore-messages", false, Flag::NoIgnoreMessages),
    Row(' ', "no-ignore-parent", "ignore-parent", false, Flag::NoIgnoreParent),
    Row(' ', "no-ignore-vcs", "ignore-vcs", false, Flag::NoIgnoreVcs),
    Row(' ', "no-messages", "messages", false, Flag::NoMessages),
    Row(' ', "no-pcre2-unicode", "pcre2-unicode", false, Flag::NoUnicode),
    Row(' ', "no-require-git", "require-git", false, Flag::NoRequireGit),
    Row(' ', "no-unicode", "unicode", false, Flag::NoUnicode),
    Row('0', "null", "", false, Flag::Null),
    Row(' ', "null-data", "", false, Flag::NullData),
    Row(' ', "one-file-system", "no-one-file-system", false, Flag::OneFileSystem),
    Row('o', "only-matching", "", false, Flag::OnlyMatching),
    Row(' ', "path-separator", "", true, Flag::PathSeparator),
    Row(' ', "passthru", "", false, Flag::Passthru),
    Row(' ', "passthrough", "", false, Flag::Passthru),
    Row('P', "pcre2", "no-pcre2", false, Flag::Pcre2),
    Row(' ', "pcre2-version", "", false, Flag::Pcre2Version),
    Row(' ', "pre", "no-pre", true, Flag::Pre),
    Row(' ', "pre-glob", "", true, Flag::PreGlob),
    Row('p', "pretty", "", false, Flag::Pretty),
    Row('q', "quiet", "", false, Flag::Quiet),
    Row(' ', "regex-size-limit", "", true, Flag::RegexSizeLimit),
    Row('e', "regexp", "", true, Flag::Regexp),
    Row('r', "replace", "", true, Flag::Replace),
    Row('z', "search-zip", "no-search-zip", false, Flag::SearchZip),
    Row('S', "smart-case", "", false, Flag::SmartCase),
    Row(' ', "sort-files", "no-sort-files", false, Flag::SortFiles),
    Row(' ', "sort", "", true, Flag::Sort),
    Row(' ', "sortr", "", true, Flag::Sortr),
    Row(' ', "stats", "no-stats", false, Flag::Stats),
    Row(' ', "stop-on-nonmatch", "", false, Flag::StopOnNonmatch),
    Row('a', "text", "no-text", false, Flag::Text),
    Row('j', "threads", "", true, Flag::Threads),
    Row(' ', "trace", "", false, Flag::Trace),
    Row(' ', "trim", "no-trim", false, Flag::Trim),
    Row('t', "type", "", true, Flag::Type),
    Row(' ', "type-add", "", true, Flag::TypeAdd),
    Row(' ', "type-clear", "", true, Flag::TypeClear),
    Row('T', "type-not", "", true, Flag::TypeNot),
    Row(' ', "type-list", "", false, Flag::TypeList),
    Row('u', "unrestricted", "", false, Flag::Unrestricted),
    Row(' ', "vimgrep", "", false, Flag::Vimgrep),
    Row('H', "with-filename", "", false, Flag::WithFilename),
    Row('I', "no-filename", "", false, Flag::NoFilename),
    Row('w', "word-regexp", "", false, Flag::WordRegexp),
];

/// Reads a command line. The error is the whole message.
pub(super) fn parse(args: &[OsString]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| format!("invalid CLI arguments: {error}"))? {
        let (found, shown) = match arg {
            Arg::Value(operand) => {
                options.operands.push(operand);
                continue;
            }
            Arg::Short('h') | Arg::Long("help") => {
                options.special = Some(Special::Help);
                continue;
            }
            Arg::Short('V') => {
                options.special = Some(Special::Version);
                continue;
            }
            Arg::Long("version") => {
                options.special = Some(Special::LongVersion);
                continue;
            }
            Arg::Short(letter) => (FLAGS.iter().find(|row| row.0 == letter && letter != ' '), format!("-{letter}")),
            Arg::Long(name) => (FLAGS.iter().find(|row| row.1 == name || row.2 == name), format!("--{name}")),
        };
        let Some(&Row(_, _, negated, needs_value, flag)) = found else { return Err(unrecognized(&shown)) };
        let given = if shown.strip_prefix("--").is_some_and(|name| name == negated) {
            Given::Off
        } else if needs_value {
            Given::Value(parser.value().map_err(|error| format!("missing value for flag {shown}: {error}"))?)
        } else {
            Given::On
        };
        options.apply(flag, given).map_err(|reason| format!("error parsing flag {shown}: {reason}"))?;
    }
    Ok(options)
}

fn unrecognized(shown: &str) -> String {
    let message = format!("unrecognized flag {shown}");
    let Some(name) = shown.strip_prefix("--") else { return message };
    let given = parts(name);
    let similar: Vec<String> = FLAGS
        .iter()
        .flat_map(|row| [row.1, row.2])
        .filter(|known| !known.is_empty() && likeness(&given, &parts(known)) >= 0.4)
        .map(|known| format!("--{known}"))
        .collect();
    if similar.is_empty() {
        return message;
    }
    format!("{message}\n\nsimilar flags that are available: {}", similar.join(", "))
}

/// Returns all runs of three bytes of a name; a shorter one is filled up.
fn parts(name: &str) -> BTreeSet<[u8; 3]> {
    if name.len() < 3 {
        let mut only = [b'!'; 3];
        only[..name.len()].copy_from_slice(name.as_bytes());
        return BTreeSet::from([only]);
    }
    name.as_bytes().windows(3).map(|part| [part[0], part[1], part[2]]).collect()
}

/// Returns the share of parts that two names have in common.
#[expect(clippy::cast_precision_loss, reason = "a name has few parts")]
fn likeness(one: &BTreeSet<[u8; 3]>, other: &BTreeSet<[u8; 3]>) -> f64 {
    one.intersection(other).count() as f64 / one.union(other).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_letters_are_unique() {
        let mut seen = BTreeSet::new();
        for row in FLAGS {
            for name in [row.1, row.2] {
                assert!(name.is_empty() || seen.insert(name.to_owned()), "{name}");
            }
            assert!(row.0 == ' ' || seen.insert(row.0.to_string()), "{}", row.0);
        }
    }

    #[test]
    fn the_help_text_names_every_flag() {
        let help = include_str!("../../../help/rg.txt");
        for row in FLAGS.iter().filter(|row| !matches!(row.1, "maxdepth" | "passthrough")) {
            let listed =
                help.split(|char: char| !char.is_ascii_alphanumeric() && char != '-').any(|word| word == format!("--{}", row.1));
            assert!(listed, "--{}", row.1);
        }
    }
}
