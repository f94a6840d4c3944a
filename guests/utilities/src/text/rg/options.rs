//! The options of `rg`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use bstr::ByteVec as _;
use grep_printer::{HyperlinkFormat, UserColorSpec};
use grep_searcher::Encoding;

use super::flags::{Flag, Given};

/// Something that is printed instead of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Special {
    Help,
    Version,
    LongVersion,
    Pcre2Version,
}

/// The mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Lines,
    FilesWithMatches,
    FilesWithoutMatch,
    Count,
    CountMatches,
    Json,
    /// List the files that would be searched.
    Files,
    /// List the file types.
    Types,
    /// Print documentation, which this program does not have.
    Generate,
}

impl Mode {
    pub fn is_search(self) -> bool {
        !matches!(self, Self::Files | Self::Types | Self::Generate)
    }
}

/// Files with a NUL in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Binary {
    /// Those that are named are searched, all others are skipped.
    #[default]
    Auto,
    /// All are searched, and no line of them is shown.
    Search,
    /// They are text.
    Text,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Case {
    #[default]
    Sensitive,
    Insensitive,
    Smart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Boundary {
    Line,
    Word,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Engine {
    #[default]
    Automata,
    Perl,
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Color {
    Never,
    #[default]
    Auto,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortKey {
    Path,
    Modified,
    Accessed,
    Created,
}

#[derive(Clone, Debug)]
pub(super) enum PatternSource {
    Text(String),
    File(PathBuf),
}

#[derive(Clone, Debug)]
pub(super) enum TypeChange {
    Add(String),
    Clear(String),
    Select(String),
    Negate(String),
}

#[derive(Clone, Debug, Default)]
pub(super) enum Decoding {
    /// By a byte order mark, if there is one.
    #[default]
    Auto,
    /// Bytes as they are.
    Raw,
    As(Encoding),
}

/// Lines around a match.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    pub passthru: bool,
    before: Option<usize>,
    after: Option<usize>,
    both: Option<usize>,
}

impl Context {
    /// Lines before and after.
    pub fn lines(self) -> (usize, usize) {
        let both = self.both.unwrap_or(0);
        (self.before.unwrap_or(both), self.after.unwrap_or(both))
    }

    /// A number of lines takes `--passthru` back.
    fn limited(&mut self) -> &mut Self {
        if self.passthru {
            *self = Self::default();
        }
        self
    }
}

#[derive(Debug)]
pub(super) struct Options {
    pub special: Option<Special>,
    pub mode: Mode,
    pub operands: Vec<OsString>,
    pub patterns: Vec<PatternSource>,
    pub binary: Binary,
    pub boundary: Option<Boundary>,
    pub line_buffered: bool,
    pub byte_offset: bool,
    pub case: Case,
    pub color: Color,
    pub colors: Vec<UserColorSpec>,
    pub column: Option<bool>,
    pub context: Context,
    pub context_separator: Option<Vec<u8>>,
    pub crlf: bool,
    pub dfa_size_limit: Option<usize>,
    pub decoding: Decoding,
    pub engine: Engine,
    pub field_context_separator: Vec<u8>,
    pub field_match_separator: Vec<u8>,
    pub fixed_strings: bool,
    pub follow: bool,
    pub globs: Vec<String>,
    pub globs_ignore_case: bool,
    pub heading: Option<bool>,
    pub hidden: bool,
    pub hostname_bin: Option<PathBuf>,
    pub hyperlink_format: HyperlinkFormat,
    pub iglobs: Vec<String>,
    pub ignore_files: Vec<PathBuf>,
    pub ignore_files_ignore_case: bool,
    pub include_zero: bool,
    pub invert: bool,
    pub line_number: Option<bool>,
    pub logging: Option<log::LevelFilter>,
    pub max_columns: Option<u64>,
    pub max_columns_preview: bool,
    pub max_count: Option<u64>,
    pub max_depth: Option<usize>,
    pub max_filesize: Option<u64>,
    pub multiline: bool,
    pub multiline_dotall: bool,
    pub no_config: bool,
    pub no_ignore_dot: bool,
    pub no_ignore_exclude: bool,
    pub no_ignore_files: bool,
    pub no_ignore_global: bool,
    pub no_ignore_messages: bool,
    pub no_ignore_parent: bool,
    pub no_ignore_vcs: bool,
    pub no_messages: bool,
    pub no_require_git: bool,
    pub no_unicode: bool,
    pub null: bool,
    pub null_data: bool,
    pub one_file_system: bool,
    pub only_matching: bool,
    pub path_separator: Option<u8>,
    pub pre: Option<PathBuf>,
    pub pre_globs: Vec<String>,
    pub quiet: bool,
    pub regex_size_limit: Option<usize>,
    pub replace: Option<Vec<u8>>,
    pub search_zip: bool,
    /// By what files are sorted, and whether backwards.
    pub sort: Option<(SortKey, bool)>,
    pub stats: bool,
    pub stop_on_nonmatch: bool,
    /// Only for the wording of messages: there is one thread.
    pub threads: usize,
    pub trim: bool,
    pub types: Vec<TypeChange>,
    unrestricted: u8,
    pub vimgrep: bool,
    pub with_filename: Option<bool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            special: None,
            mode: Mode::default(),
            operands: Vec::new(),
            patterns: Vec::new(),
            binary: Binary::default(),
            boundary: None,
            line_buffered: false,
            byte_offset: false,
            case: Case::default(),
            color: Color::default(),
            colors: Vec::new(),
            column: None,
            context: Context::default(),
            context_separator: Some(b"--".to_vec()),
            crlf: false,
            dfa_size_limit: None,
            decoding: Decoding::default(),
            engine: Engine::default(),
            field_context_separator: b"-".to_vec(),
            field_match_separator: b":".to_vec(),
            fixed_strings: false,
            follow: false,
            globs: Vec::new(),
            globs_ignore_case: false,
            heading: None,
            hidden: false,
            hostname_bin: None,
            hyperlink_format: HyperlinkFormat::default(),
            iglobs: Vec::new(),
            ignore_files: Vec::new(),
            ignore_files_ignore_case: false,
            include_zero: false,
            invert: false,
            line_number: None,
            logging: None,
            max_columns: None,
            max_columns_preview: false,
            max_count: None,
            max_depth: None,
            max_filesize: None,
            multiline: false,
            multiline_dotall: false,
            no_config: false,
            no_ignore_dot: false,
            no_ignore_exclude: false,
            no_ignore_files: false,
            no_ignore_global: false,
            no_ignore_messages: false,
            no_ignore_parent: false,
            no_ignore_vcs: false,
            no_messages: false,
            no_require_git: false,
            no_unicode: false,
            null: false,
            null_data: false,
            one_file_system: false,
            only_matching: false,
            path_separator: None,
            pre: None,
            pre_globs: Vec::new(),
            quiet: false,
            regex_size_limit: None,
            replace: None,
            search_zip: false,
            sort: None,
            stats: false,
            stop_on_nonmatch: false,
            threads: 0,
            trim: false,
            types: Vec::new(),
            unrestricted: 0,
            vimgrep: false,
            with_filename: None,
        }
    }
}

impl Options {
    /// Applies a flag. The error describes what is wrong with its value.
    #[expect(clippy::too_many_lines, reason = "one arm per flag")]
    pub fn apply(&mut self, flag: Flag, given: Given) -> Result<(), String> {
        let on = !matches!(given, Given::Off);
        let off = !on;
        let value = match given {
            Given::Value(value) => value,
            Given::On | Given::Off => OsString::new(),
        };
        match flag {
            Flag::AfterContext => self.context.limited().after = Some(number(&value)?),
            Flag::AutoHybridRegex => self.engine = if on { Engine::Auto } else { Engine::Automata },
            Flag::BeforeContext => self.context.limited().before = Some(number(&value)?),
            Flag::Binary => self.binary = if on { Binary::Search } else { Binary::Auto },
            Flag::BlockBuffered => self.line_buffered = false,
            Flag::ByteOffset => self.byte_offset = on,
            Flag::CaseSensitive => self.case = Case::Sensitive,
            Flag::Color => {
                self.color = match text(&value)? {
                    "never" => Color::Never,
                    "auto" => Color::Auto,
                    "always" | "ansi" => Color::Always,
                    other => return Err(unknown_choice(other)),
                }
            }
            Flag::Colors => self.colors.push(text(&value)?.parse().map_err(shown)?),
            Flag::Column => self.column = Some(on),
            Flag::Context => self.context.limited().both = Some(number(&value)?),
            Flag::ContextSeparator if off => self.context_separator = None,
            Flag::ContextSeparator => self.context_separator = Some(separator(&value)?),
            Flag::Count => self.set_mode(Mode::Count),
            Flag::CountMatches => self.set_mode(Mode::CountMatches),
            Flag::Crlf => {
                self.crlf = on;
                self.null_data &= !on;
            }
            Flag::Debug => self.logging = Some(log::LevelFilter::Debug),
            Flag::DfaSizeLimit => self.dfa_size_limit = Some(memory_size(&value)?),
            Flag::Encoding if off => self.decoding = Decoding::Auto,
            Flag::Encoding => {
                self.decoding = match text(&value)? {
                    "auto" => Decoding::Auto,
                    "none" => Decoding::Raw,
                    label => Decoding::As(Encoding::new(label).map_err(shown)?),
                }
            }
            Flag::Engine => {
                self.engine = match text(&value)? {
                    "default" => Engine::Automata,
                    "pcre2" => Engine::Perl,
                    "auto" => Engine::Auto,
                    other => return Err(format!("unrecognized regex engine '{other}'")),
                }
            }
            Flag::FieldContextSeparator => self.field_context_separator = separator(&value)?,
            Flag::FieldMatchSeparator => self.field_match_separator = separator(&value)?,
            Flag::File => self.patterns.push(PatternSource::File(value.into())),
            Flag::Files => self.set_mode(Mode::Files),
            Flag::FilesWithMatches => self.set_mode(Mode::FilesWithMatches),
            Flag::FilesWithoutMatch => self.set_mode(Mode::FilesWithoutMatch),
            Flag::FixedStrings => self.fixed_strings = on,
            Flag::Follow => self.follow = on,
            Flag::Generate => match text(&value)? {
                "man" | "complete-bash" | "complete-zsh" | "complete-fish" | "complete-powershell" => {
                    self.set_mode(Mode::Generate);
                }
                other => return Err(unknown_choice(other)),
            },
            Flag::Glob => self.globs.push(string(value)?),
            Flag::GlobCaseInsensitive => self.globs_ignore_case = on,
            Flag::Heading => self.heading = Some(on),
            Flag::Hidden => self.hidden = on,
            Flag::HostnameBin => self.hostname_bin = program(value),
            Flag::HyperlinkFormat => {
                let format = text(&value)?.parse();
                self.hyperlink_format = format.map_err(|error| format!("invalid hyperlink format: {error}"))?;
            }
            Flag::Iglob => self.iglobs.push(string(value)?),
            Flag::IgnoreCase => self.case = Case::Insensitive,
            Flag::IgnoreFile => self.ignore_files.push(value.into()),
            Flag::IgnoreFileCaseInsensitive => self.ignore_files_ignore_case = on,
            Flag::IncludeZero => self.include_zero = on,
            Flag::InvertMatch => self.invert = on,
            Flag::Json if on => self.set_mode(Mode::Json),
            Flag::Json if self.mode == Mode::Json => self.mode = Mode::Lines,
            Flag::LineBuffered => self.line_buffered = on,
            Flag::LineNumber => self.line_number = Some(true),
            Flag::NoLineNumber => self.line_number = Some(false),
            Flag::LineRegexp => self.boundary = Some(Boundary::Line),
            Flag::MaxColumns => self.max_columns = Some(number(&value)?).filter(|&most| most > 0),
            Flag::MaxColumnsPreview => self.max_columns_preview = on,
            Flag::MaxCount => self.max_count = Some(number(&value)?),
            Flag::MaxDepth => self.max_depth = Some(number(&value)?),
            Flag::MaxFilesize => self.max_filesize = Some(size(&value)?),
            Flag::Multiline => {
                self.multiline = on;
                self.stop_on_nonmatch &= !on;
            }
            Flag::MultilineDotall => self.multiline_dotall = on,
            Flag::NoConfig => self.no_config = true,
            Flag::NoIgnore => self.set_no_ignore(on),
            Flag::NoIgnoreDot => self.no_ignore_dot = on,
            Flag::NoIgnoreExclude => self.no_ignore_exclude = on,
            Flag::NoIgnoreFiles => self.no_ignore_files = on,
            Flag::NoIgnoreGlobal => self.no_ignore_global = on,
            Flag::NoIgnoreMessages => self.no_ignore_messages = on,
            Flag::NoIgnoreParent => self.no_ignore_parent = on,
            Flag::NoIgnoreVcs => self.no_ignore_vcs = on,
            Flag::NoMessages => self.no_messages = on,
            Flag::NoRequireGit => self.no_require_git = on,
            Flag::NoUnicode => self.no_unicode = on,
            Flag::Null => self.null = true,
            Flag::NullData => (self.null_data, self.crlf) = (true, false),
            Flag::OneFileSystem => self.one_file_system = on,
            Flag::OnlyMatching => self.only_matching = true,
            Flag::PathSeparator => self.path_separator = path_separator(&string(value)?)?,
            Flag::Passthru => self.context = Context { passthru: true, ..Context::default() },
            Flag::Pcre2 => self.engine = if on { Engine::Perl } else { Engine::Automata },
            Flag::Pcre2Version => self.special = Some(Special::Pcre2Version),
            Flag::Pre => {
                self.pre = program(value);
                self.search_zip &= self.pre.is_none();
            }
            Flag::PreGlob => self.pre_globs.push(string(value)?),
            Flag::Pretty => (self.color, self.heading, self.line_number) = (Color::Always, Some(true), Some(true)),
            Flag::Quiet => self.quiet = true,
            Flag::RegexSizeLimit => self.regex_size_limit = Some(memory_size(&value)?),
            Flag::Regexp => self.patterns.push(PatternSource::Text(string(value)?)),
            Flag::Replace => self.replace = Some(string(value)?.into_bytes()),
            Flag::SearchZip => {
                self.search_zip = on;
                self.pre = self.pre.take().filter(|_| off);
            }
            Flag::SmartCase => self.case = Case::Smart,
            Flag::SortFiles => self.sort = on.then_some((SortKey::Path, false)),
            Flag::Sort => self.sort = sort_key(text(&value)?)?.map(|key| (key, false)),
            Flag::Sortr => self.sort = sort_key(text(&value)?)?.map(|key| (key, true)),
            Flag::Stats => self.stats = on,
            Flag::StopOnNonmatch => (self.stop_on_nonmatch, self.multiline) = (true, false),
            Flag::Text => self.binary = if on { Binary::Text } else { Binary::Auto },
            Flag::Threads => self.threads = number(&value)?,
            Flag::Trace => self.logging = Some(log::LevelFilter::Trace),
            Flag::Trim => self.trim = on,
            Flag::Type => self.types.push(TypeChange::Select(string(value)?)),
            Flag::TypeAdd => self.types.push(TypeChange::Add(string(value)?)),
            Flag::TypeClear => self.types.push(TypeChange::Clear(string(value)?)),
            Flag::TypeNot => self.types.push(TypeChange::Negate(string(value)?)),
            Flag::TypeList => self.set_mode(Mode::Types),
            Flag::Unrestricted => self.unrestrict()?,
            Flag::Vimgrep => self.vimgrep = true,
            Flag::WithFilename => self.with_filename = Some(true),
            Flag::NoFilename => self.with_filename = Some(false),
            Flag::WordRegexp => self.boundary = Some(Boundary::Word),
            Flag::Json | Flag::Nothing => {}
        }
        Ok(())
    }

    /// The last one counts, but a search never takes the place of a list.
    fn set_mode(&mut self, mode: Mode) {
        if self.mode.is_search() || !mode.is_search() {
            self.mode = mode;
        }
    }

    fn set_no_ignore(&mut self, on: bool) {
        self.no_ignore_dot = on;
        self.no_ignore_exclude = on;
        self.no_ignore_global = on;
        self.no_ignore_parent = on;
        self.no_ignore_vcs = on;
    }

    fn unrestrict(&mut self) -> Result<(), String> {
        self.unrestricted += 1;
        match self.unrestricted {
            1 => self.set_no_ignore(true),
            2 => self.hidden = true,
            3 => self.binary = Binary::Search,
            _ => return Err("flag can only be repeated up to 3 times".to_owned()),
        }
        Ok(())
    }
}

fn shown(error: impl ToString) -> String {
    error.to_string()
}

fn unknown_choice(choice: &str) -> String {
    format!("choice '{choice}' is unrecognized")
}

fn text(value: &OsStr) -> Result<&str, String> {
    value.to_str().ok_or_else(|| "value is not valid UTF-8".to_owned())
}

fn string(value: OsString) -> Result<String, String> {
    value.into_string().map_err(|_| "value is not valid UTF-8".to_owned())
}

fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(value: &OsStr) -> Result<T, String> {
    text(value)?.parse().map_err(|error| format!("value is not a valid number: {error}"))
}

/// Digits, and a `K`, `M` or `G`.
fn size(value: &OsStr) -> Result<u64, String> {
    let value = text(value)?;
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, unit) = value.split_at(digits);
    let shift = match unit {
        "" => Some(0),
        "K" => Some(10),
        "M" => Some(20),
        "G" => Some(30),
        _ => None,
    };
    let Some(shift) = shift.filter(|_| !digits.is_empty()) else {
        return Err(format!(
            "invalid size: invalid format for size '{value}', which should be a non-empty sequence of digits followed by an \
             optional 'K', 'M' or 'G' suffix"
        ));
    };
    let number: u64 =
        digits.parse().map_err(|error| format!("invalid size: invalid integer found in size '{value}': {error}"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("invalid size: size too big in '{value}'"))
}

/// On a machine with 64 bits every size is one of memory; what this one cannot have stands for all of it.
fn memory_size(value: &OsStr) -> Result<usize, String> {
    Ok(usize::try_from(size(value)?).unwrap_or(usize::MAX))
}

fn separator(value: &OsStr) -> Result<Vec<u8>, String> {
    let text = value.to_str().ok_or_else(|| {
        "separator must be valid UTF-8 (use escape sequences to provide a separator that is not valid UTF-8)".to_owned()
    })?;
    Ok(Vec::unescape_bytes(text))
}

fn path_separator(text: &str) -> Result<Option<u8>, String> {
    match Vec::unescape_bytes(text)[..] {
        [] => Ok(None),
        [byte] => Ok(Some(byte)),
        ref bytes => Err(format!(
            "A path separator must be exactly one byte, but the given separator is {} bytes: {text}\n\
             In some shells on Windows '/' is automatically expanded. Use '//' instead.",
            bytes.len()
        )),
    }
}

fn program(value: OsString) -> Option<PathBuf> {
    (!value.is_empty()).then(|| value.into())
}

fn sort_key(name: &str) -> Result<Option<SortKey>, String> {
    Ok(Some(match name {
        "none" => return Ok(None),
        "path" => SortKey::Path,
        "modified" => SortKey::Modified,
        "accessed" => SortKey::Accessed,
        "created" => SortKey::Created,
        other => return Err(unknown_choice(other)),
    }))
}
