//! Searching one file after another, and printing what is found.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use grep_matcher::{LineTerminator, Matcher};
use grep_printer::{
    ColorSpecs, HyperlinkConfig, HyperlinkEnvironment, JSON, JSONBuilder, Standard, StandardBuilder, Stats, Summary,
    SummaryBuilder, SummaryKind,
};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder};
use ignore::overrides::Override;

use super::messages::described;
use super::options::{Binary, Boundary, Case, Color, Decoding, Engine, Mode, Options};
use super::perl::Perl;
use super::walk::Haystack;
use super::{Output, Settled};
use crate::archive::compress::Format;
use crate::command;
use crate::io::Input;

#[derive(Debug)]
enum Pattern {
    Automata(RegexMatcher),
    Perl(Box<Perl>),
}

enum Printer {
    Lines(Standard<Output>),
    Summary(Summary<Output>),
    Json(JSON<Output>),
}

/// The result of a search.
pub(super) struct Found {
    pub matched: bool,
    pub stats: Option<Stats>,
}

pub(super) struct Search<'a> {
    options: &'a Options,
    pre_globs: Override,
    pattern: Pattern,
    searcher: Searcher,
    printer: Printer,
}

impl<'a> Search<'a> {
    pub fn new(options: &'a Options, settled: &Settled, pre_globs: Override, output: Output) -> Result<Self, String> {
        Ok(Self {
            options,
            pre_globs,
            pattern: pattern(options, &settled.patterns)?,
            searcher: searcher(options, settled),
            printer: printer(options, settled, output),
        })
    }

    /// Returns the place for the remaining output.
    pub fn output(&mut self) -> &mut Output {
        match &mut self.printer {
            Printer::Lines(printer) => printer.get_mut(),
            Printer::Summary(printer) => printer.get_mut(),
            Printer::Json(printer) => printer.get_mut(),
        }
    }

    pub fn search(&mut self, haystack: &Haystack) -> io::Result<Found> {
        self.searcher.set_binary_detection(detection(self.options, haystack.explicit));
        let path = &haystack.path;
        if haystack.is_stdin() {
            return self.read(Path::new("<stdin>"), &mut Input::Stdin);
        }
        if let Some(program) = self.options.pre.as_deref().filter(|_| self.is_preprocessed(path)) {
            return self.preprocessed(program, path);
        }
        if let Some(format) = compressed(path).filter(|_| self.options.search_zip) {
            return self.read(path, &mut format.reader(File::open(path)?));
        }
        let mut file = File::open(path)?;
        self.read(path, &mut file)
    }

    fn is_preprocessed(&self, path: &Path) -> bool {
        self.pre_globs.is_empty() || !self.pre_globs.matched(path, false).is_ignore()
    }

    /// Searches what a program prints for a file, which it gets as its argument and its input.
    fn preprocessed(&mut self, program: &Path, path: &Path) -> io::Result<Found> {
        use std::os::fd::AsRawFd as _;
        let shown = format!("{:?} {:?}", program.as_os_str(), path.as_os_str());
        let input = File::open(path)?;
        let words = [program.as_os_str(), path.as_os_str()].map(|word| word.as_encoded_bytes().to_vec());
        let from = u32::try_from(input.as_raw_fd()).unwrap_or(0);
        let (pid, mut reader) = printing(&words, vec![sys::Action::Dup { from, fd: 0 }]).map_err(|error| {
            let reason = described(&error);
            io::Error::other(format!("preprocessor command could not start: '{shown}': {reason}"))
        })?;
        let found = self.read(path, &mut reader);
        drop(reader);
        let status = command::wait(pid)?;
        let found = found.map_err(|error| io::Error::other(format!("preprocessor command failed: '{shown}': {error}")))?;
        match status {
            // A search that has enough closes the pipe.
            sys::WaitStatus::Exited(0) | sys::WaitStatus::Signaled(sys::Signal::PIPE) => Ok(found),
            _ => Err(io::Error::other(format!("preprocessor command failed: '{shown}'"))),
        }
    }

    fn read(&mut self, path: &Path, from: &mut dyn Read) -> io::Result<Found> {
        match &self.pattern {
            Pattern::Automata(matcher) => read(matcher, &mut self.searcher, &mut self.printer, path, from),
            Pattern::Perl(matcher) => read(&**matcher, &mut self.searcher, &mut self.printer, path, from),
        }
    }
}

fn read<M: Matcher>(
    matcher: &M,
    searcher: &mut Searcher,
    printer: &mut Printer,
    path: &Path,
    from: &mut dyn Read,
) -> io::Result<Found> {
    match printer {
        Printer::Lines(printer) => {
            let mut sink = printer.sink_with_path(matcher, path);
            searcher.search_reader(matcher, from, &mut sink)?;
            Ok(Found { matched: sink.has_match(), stats: sink.stats().cloned() })
        }
        Printer::Summary(printer) => {
            let mut sink = printer.sink_with_path(matcher, path);
            searcher.search_reader(matcher, from, &mut sink)?;
            Ok(Found { matched: sink.has_match(), stats: sink.stats().cloned() })
        }
        Printer::Json(printer) => {
            let mut sink = printer.sink_with_path(matcher, path);
            searcher.search_reader(matcher, from, &mut sink)?;
            Ok(Found { matched: sink.has_match(), stats: Some(sink.stats().clone()) })
        }
    }
}

/// Returns the format that a file's name promises. What has no program here is searched as it is, as by ripgrep without the program.
fn compressed(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "gz" | "tgz" => Some(Format::Gzip),
        "bz2" | "tbz2" => Some(Format::Bzip2),
        "xz" | "txz" => Some(Format::Xz),
        "lzma" => Some(Format::Lzma),
        _ => None,
    }
}

fn detection(options: &Options, explicit: bool) -> BinaryDetection {
    match options.binary {
        _ if options.null_data => BinaryDetection::none(),
        Binary::Text => BinaryDetection::none(),
        Binary::Auto if !explicit => BinaryDetection::quit(0),
        Binary::Auto | Binary::Search => BinaryDetection::convert(0),
    }
}

fn pattern(options: &Options, patterns: &[String]) -> Result<Pattern, String> {
    match options.engine {
        Engine::Automata => automata(options, patterns).map_err(|error| {
            if !error.contains("backreferences") && !error.contains("look-around") {
                return error;
            }
            format!("{error}\n\nConsider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around.")
        }),
        Engine::Perl => Perl::new(patterns, options).map(Box::new).map(Pattern::Perl),
        Engine::Auto => automata(options, patterns).or_else(|automata_error| {
            let perl = Perl::new(patterns, options).map(Box::new).map(Pattern::Perl);
            let line = "~".repeat(79);
            perl.map_err(|error| {
                format!(
                    "regex could not be compiled with either the default regex engine or with PCRE2.\n\n\
                     default regex engine error:\n{line}\n{automata_error}\n{line}\n\nPCRE2 regex engine error:\n{error}"
                )
            })
        }),
    }
}

fn automata(options: &Options, patterns: &[String]) -> Result<Pattern, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).unicode(!options.no_unicode).octal(false).fixed_strings(options.fixed_strings);
    builder.case_insensitive(options.case == Case::Insensitive).case_smart(options.case == Case::Smart);
    builder.whole_line(options.boundary == Some(Boundary::Line)).word(options.boundary == Some(Boundary::Word));
    builder.dot_matches_new_line(options.multiline && options.multiline_dotall);
    builder.line_terminator(match options.multiline {
        true => None,
        false if options.null_data => Some(0),
        false => Some(b'\n'),
    });
    // Changes the line terminator, so it comes after that.
    if options.crlf {
        builder.crlf(true);
    }
    if options.crlf && options.multiline {
        builder.line_terminator(None);
    }
    if let Some(limit) = options.regex_size_limit {
        builder.size_limit(limit);
    }
    if let Some(limit) = options.dfa_size_limit {
        builder.dfa_size_limit(limit);
    }
    if options.binary != Binary::Text && !options.null_data {
        builder.ban_byte(Some(0));
    }
    builder.build_many(patterns).map(Pattern::Automata).map_err(|error| advised(error.to_string()))
}

/// Returns an error, and the flag that would make the pattern a good one.
fn advised(error: String) -> String {
    if error.contains("the literal") && error.contains("not allowed") {
        return format!(
            "{error}\n\nConsider enabling multiline mode with the --multiline flag (or -U for short).\n\
             When multiline mode is enabled, new line characters can be matched."
        );
    }
    if error.contains("pattern contains \"\\0\"") {
        return format!(
            "{error}\n\nConsider enabling text mode with the --text flag (or -a for short). Otherwise,\n\
             binary detection is enabled and matching a NUL byte is impossible."
        );
    }
    error
}

fn searcher(options: &Options, settled: &Settled) -> Searcher {
    let mut builder = SearcherBuilder::new();
    let terminator = match (options.crlf, options.null_data) {
        (true, _) => LineTerminator::crlf(),
        (_, true) => LineTerminator::byte(0),
        _ => LineTerminator::byte(b'\n'),
    };
    builder.line_terminator(terminator).max_matches(options.max_count).invert_match(options.invert);
    builder.line_number(settled.line_number).multi_line(options.multiline).stop_on_nonmatch(options.stop_on_nonmatch);
    builder.memory_map(MmapChoice::never());
    let (before, after) = options.context.lines();
    match options.context.passthru {
        true => builder.passthru(true),
        false => builder.before_context(before).after_context(after),
    };
    match &options.decoding {
        Decoding::Auto => {}
        Decoding::Raw => _ = builder.bom_sniffing(false),
        Decoding::As(encoding) => _ = builder.encoding(Some(encoding.clone())),
    }
    builder.build()
}

fn printer(options: &Options, settled: &Settled, output: Output) -> Printer {
    let kind = match settled.mode {
        Mode::FilesWithoutMatch if options.quiet => SummaryKind::QuietWithoutMatch,
        _ if options.quiet => SummaryKind::QuietWithMatch,
        Mode::FilesWithMatches => SummaryKind::PathWithMatch,
        Mode::FilesWithoutMatch => SummaryKind::PathWithoutMatch,
        Mode::Count => SummaryKind::Count,
        Mode::CountMatches => SummaryKind::CountMatches,
        Mode::Json => {
            let mut builder = JSONBuilder::new();
            return Printer::Json(builder.replacement(options.replace.clone()).build(output));
        }
        _ => return Printer::Lines(lines(options, settled, output)),
    };
    let mut builder = SummaryBuilder::new();
    builder.kind(kind).color_specs(colors(options)).hyperlink(hyperlinks(options)).exclude_zero(!options.include_zero);
    builder.path(settled.with_filename).path_terminator(options.null.then_some(0)).separator_field(b":".to_vec());
    builder.separator_path(options.path_separator).stats(settled.stats);
    Printer::Summary(builder.build(output))
}

fn lines(options: &Options, settled: &Settled, output: Output) -> Standard<Output> {
    let (before, after) = options.context.lines();
    let separator = match settled.heading {
        true => Some(Vec::new()),
        false if !options.context.passthru && (before > 0 || after > 0) => options.context_separator.clone(),
        false => None,
    };
    let mut builder = StandardBuilder::new();
    builder.byte_offset(options.byte_offset).column(settled.column).heading(settled.heading);
    builder.color_specs(colors(options)).hyperlink(hyperlinks(options));
    builder.max_columns(options.max_columns).max_columns_preview(options.max_columns_preview);
    builder.only_matching(options.only_matching).replacement(options.replace.clone()).trim_ascii(options.trim);
    builder.path(settled.with_filename).path_terminator(options.null.then_some(0)).separator_path(options.path_separator);
    builder.per_match(options.vimgrep).per_match_one_line(true);
    builder.separator_context(options.context_separator.clone()).separator_search(separator);
    builder.separator_field_context(options.field_context_separator.clone());
    builder.separator_field_match(options.field_match_separator.clone()).stats(settled.stats);
    builder.build(output)
}

pub(super) fn colors(options: &Options) -> ColorSpecs {
    if options.color == Color::Never {
        return ColorSpecs::default();
    }
    let mut specs = grep_printer::default_color_specs();
    specs.extend(options.colors.iter().cloned());
    ColorSpecs::new(&specs)
}

pub(super) fn hyperlinks(options: &Options) -> HyperlinkConfig {
    let mut environment = HyperlinkEnvironment::new();
    if !options.hyperlink_format.is_empty() {
        let asked = options.hostname_bin.as_deref().and_then(asked_hostname);
        environment.host(Some(asked.unwrap_or_else(|| abi::ETC_HOSTNAME.trim_end().to_owned())));
    }
    HyperlinkConfig::new(environment, options.hyperlink_format.clone())
}

/// Returns the name of this machine, as a program prints it.
fn asked_hostname(program: &Path) -> Option<String> {
    let (pid, mut reader) = printing(&[program.as_os_str().as_encoded_bytes().to_vec()], Vec::new()).ok()?;
    let mut text = String::new();
    let read = reader.read_to_string(&mut text);
    command::wait(pid).ok()?;
    read.ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Starts a program whose output is read here.
fn printing(words: &[Vec<u8>], mut actions: Vec<sys::Action>) -> io::Result<(u32, command::Reader)> {
    let [read, write] = command::pipe()?;
    let reader = command::Reader(read);
    actions.push(sys::Action::Dup { from: write, fd: 1 });
    let started = command::spawn(words, actions, None);
    let _ = sys::close(write);
    Ok((started?, reader))
}
