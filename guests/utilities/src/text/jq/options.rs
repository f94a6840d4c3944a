//! The command line of jq.

use super::json::{self, Flags};
use super::print::{Colors, Style};
use super::value::Json;
use crate::io::{Out, show};

#[derive(Debug, Default)]
pub(super) struct Options {
    pub raw: bool,
    pub join: bool,
    pub raw_zero: bool,
    pub null_input: bool,
    pub slurp: bool,
    pub raw_input: bool,
    pub exit_status: bool,
    pub unbuffered: bool,
    pub style: Style,
    pub flags: Flags,
    pub filter: String,
    /// Where the program's modules are relative to.
    pub origin: String,
    pub files: Vec<Vec<u8>>,
    pub named: Vec<(String, Json)>,
    pub positional: Vec<Json>,
    pub search: Vec<String>,
}

const USAGE: &str = "jq - commandline JSON processor [version 1.7.1]

Usage:\tjq [options] <jq filter> [file...]
\tjq [options] --args <jq filter> [strings...]
\tjq [options] --jsonargs <jq filter> [JSON_TEXTS...]

jq is a tool for processing JSON inputs, applying the given filter to
its JSON text inputs and producing the filter's results as JSON on
standard output.

The simplest filter is ., which copies jq's input to its output
unmodified except for formatting. For more advanced filters see
the jq(1) manpage (\"man jq\") and/or https://jqlang.github.io/jq/.

Example:

\t$ echo '{\"foo\": 0}' | jq .
\t{
\t  \"foo\": 0
\t}

";

const HELP: &str = "Command options:
  -n, --null-input          use `null` as the single input value;
  -R, --raw-input           read each line as string instead of JSON;
  -s, --slurp               read all inputs into an array and use it as
                            the single input value;
  -c, --compact-output      compact instead of pretty-printed output;
  -r, --raw-output          output strings without escapes and quotes;
      --raw-output0         implies -r and output NUL after each output;
  -j, --join-output         implies -r and output without newline after
                            each output;
  -a, --ascii-output        output strings by only ASCII characters
                            using escape sequences;
  -S, --sort-keys           sort keys of each object on output;
  -C, --color-output        colorize JSON output;
  -M, --monochrome-output   disable colored output;
      --tab                 use tabs for indentation;
      --indent n            use n spaces for indentation (max 7 spaces);
      --unbuffered          flush output stream after each output;
      --stream              parse the input value in streaming fashion;
      --stream-errors       implies --stream and report parse error as
                            an array;
      --seq                 parse input/output as application/json-seq;
  -f, --from-file file      load filter from the file;
  -L directory              search modules from the directory;
      --arg name value      set $name to the string value;
      --argjson name value  set $name to the JSON value;
      --slurpfile name file set $name to an array of JSON values read
                            from the file;
      --rawfile name file   set $name to string contents of file;
      --args                consume remaining arguments as positional
                            string values;
      --jsonargs            consume remaining arguments as positional
                            JSON values;
  -e, --exit-status         set exit status code based on the output;
  -V, --version             show the version;
  --build-configuration     show jq's build configuration;
  -h, --help                show the help;
  --                        terminates argument processing;

Named arguments are also available as $ARGS.named[], while
positional arguments are available as $ARGS.positional[].
";

fn invalid(message: &str) -> i32 {
    warn!(
        "{message}\nUse jq --help for help with command-line options,\nor see the jq manpage, or online docs  at https://jqlang.github.io/jq"
    );
    2
}

fn print(text: &str) -> i32 {
    let mut out = Out::new("jq", 2);
    out.put(text.as_bytes());
    out.flush();
    0
}

#[derive(PartialEq)]
enum Rest {
    Files,
    Strings,
    Json,
}

struct Reader<'a> {
    args: std::slice::Iter<'a, Vec<u8>>,
    options: Options,
    program: Option<Vec<u8>>,
    from_file: bool,
    rest: Rest,
    color: Option<bool>,
}

/// Reads the arguments, or returns the status to exit with.
pub(super) fn parse(args: &[Vec<u8>]) -> Result<Options, i32> {
    let style = Style { indent: Some("  ".to_string()), ..Style::default() };
    let mut reader = Reader {
        args: args.iter(),
        options: Options { style, ..Options::default() },
        program: None,
        from_file: false,
        rest: Rest::Files,
        color: None,
    };
    let mut only_operands = false;
    while let Some(arg) = reader.args.next() {
        let is_option = arg.starts_with(b"--") || matches!(arg.as_slice(), [b'-', letter, ..] if letter.is_ascii_alphabetic());
        if only_operands || !is_option {
            reader.operand(arg)?;
        } else if arg == b"--" {
            only_operands = true;
        } else if let Some(name) = show(arg).strip_prefix("--") {
            reader.long(name, arg)?;
        } else {
            reader.short(arg)?;
        }
    }
    reader.finish()
}

impl Reader<'_> {
    fn operand(&mut self, arg: &[u8]) -> Result<(), i32> {
        if self.program.is_none() {
            self.program = Some(arg.to_vec());
            return Ok(());
        }
        match self.rest {
            Rest::Files => self.options.files.push(arg.to_vec()),
            Rest::Strings => self.options.positional.push(Json::text(arg)),
            Rest::Json => match json::parse(&show(arg)) {
                Ok(value) => self.options.positional.push(value),
                Err(_) => return Err(invalid("jq: invalid JSON text passed to --jsonargs")),
            },
        }
        Ok(())
    }

    fn short(&mut self, arg: &[u8]) -> Result<(), i32> {
        if let Some(directory) = arg.strip_prefix(b"-L") {
            let directory = match directory {
                [] => self.args.next().map(Vec::as_slice),
                directory => Some(directory),
            };
            let Some(directory) = directory else {
                return Err(invalid("-L takes a parameter: (e.g. -L /search/path or -L/search/path)"));
            };
            let directory = crate::io::path(directory);
            self.options.search.push(directory.canonicalize().unwrap_or(directory).to_string_lossy().into_owned());
            return Ok(());
        }
        let text = show(arg);
        let known = |letter: char| "srjcCMaSRnfbehV".contains(letter);
        for letter in text.chars().skip(1).filter(|letter| known(*letter)) {
            self.letter(letter)?;
        }
        if text.chars().skip(1).all(known) { Ok(()) } else { Err(invalid(&format!("jq: Unknown option {text}"))) }
    }

    fn letter(&mut self, letter: char) -> Result<(), i32> {
        let options = &mut self.options;
        match letter {
            's' => options.slurp = true,
            'r' => options.raw = true,
            'j' => (options.raw, options.join) = (true, true),
            'c' => options.style.indent = None,
            'C' => self.color = Some(true),
            'M' => self.color = Some(false),
            'a' => options.style.ascii = true,
            'S' => options.style.sort_keys = true,
            'R' => options.raw_input = true,
            'n' => options.null_input = true,
            'f' => self.from_file = true,
            'e' => options.exit_status = true,
            'h' => return Err(print(&format!("{USAGE}{HELP}"))),
            'V' => return Err(print("jq-1.7.1\n")),
            _ => {}
        }
        Ok(())
    }

    fn long(&mut self, name: &str, arg: &[u8]) -> Result<(), i32> {
        let letter = match name {
            "slurp" => 's',
            "raw-output" => 'r',
            "join-output" => 'j',
            "compact-output" => 'c',
            "color-output" => 'C',
            "monochrome-output" => 'M',
            "ascii-output" => 'a',
            "sort-keys" => 'S',
            "raw-input" => 'R',
            "null-input" => 'n',
            "from-file" => 'f',
            "exit-status" => 'e',
            "help" => 'h',
            "version" => 'V',
            "binary" => 'b',
            _ => return self.word(name, arg),
        };
        self.letter(letter)
    }

    fn word(&mut self, name: &str, arg: &[u8]) -> Result<(), i32> {
        let options = &mut self.options;
        match name {
            "raw-output0" => (options.raw, options.join, options.raw_zero) = (true, true, true),
            "unbuffered" => options.unbuffered = true,
            "tab" => options.style.indent = Some("\t".to_string()),
            "indent" => {
                let Some(value) = self.args.next() else { return Err(invalid("jq: --indent takes one parameter")) };
                let count = show(value).trim_start().parse::<i64>().unwrap_or(0);
                options.style.indent = match count {
                    -1 => Some("\t".to_string()),
                    0 => None,
                    1..=7 => Some(" ".repeat(count as usize)),
                    _ => return Err(invalid("jq: --indent takes a number between -1 and 7")),
                };
            }
            "seq" => options.flags.seq = true,
            "stream" => options.flags.stream = true,
            "stream-errors" => (options.flags.stream, options.flags.stream_errors) = (true, true),
            "args" => self.rest = Rest::Strings,
            "jsonargs" => self.rest = Rest::Json,
            "arg" | "argjson" | "slurpfile" | "rawfile" => return self.variable(name),
            "build-configuration" => return Err(print("sandlite\n")),
            _ => return Err(invalid(&format!("jq: Unknown option {}", show(arg)))),
        }
        Ok(())
    }

    fn variable(&mut self, option: &str) -> Result<(), i32> {
        let (Some(key), Some(value)) = (self.args.next(), self.args.next()) else {
            let what = match option {
                "arg" => "value",
                "argjson" => "text",
                _ => "filename",
            };
            return Err(invalid(&format!("jq: --{option} takes two parameters (e.g. --{option} varname {what})")));
        };
        let key = show(key).into_owned();
        if self.options.named.iter().any(|(known, _)| *known == key) {
            return Ok(());
        }
        let file = |message: String| {
            warn!("jq: Bad JSON in --{option} {key} {}: {message}", show(value));
            2
        };
        let value = match option {
            "arg" => Json::text(value),
            "argjson" => json::parse(&show(value)).map_err(|_| invalid("jq: invalid JSON text passed to --argjson"))?,
            "rawfile" => Json::string(super::file_text(value).map_err(file)?),
            _ => {
                let text = super::file_text(value).map_err(file)?;
                Json::array(json::parse_all(text.as_bytes()).map_err(file)?)
            }
        };
        self.options.named.push((key, value));
        Ok(())
    }

    fn finish(self) -> Result<Options, i32> {
        let Self { mut options, program, from_file, color, .. } = self;
        let terminal = sys::is_terminal(1);
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let mut colors = Colors::default();
        if let Some(text) = crate::io::env("JQ_COLORS") {
            match Colors::parse(&show(&text)) {
                Some(chosen) => colors = chosen,
                None => warn!("Failed to set $JQ_COLORS"),
            }
        }
        options.style.colors = color.unwrap_or(terminal && !no_color).then_some(colors);
        if options.search.is_empty() {
            options.search = ["~/.jq", "$ORIGIN/../lib/jq", "$ORIGIN/../lib"].map(str::to_string).to_vec();
        }
        let program = match program {
            Some(program) => program,
            None if !terminal || !sys::is_terminal(0) => b".".to_vec(),
            None => {
                warn!("{USAGE}For listing the command options, use jq --help.");
                return Err(2);
            }
        };
        options.origin = ".".to_string();
        options.filter = show(&program).into_owned();
        if from_file {
            let text = super::file_text(&program).map_err(|message| {
                warn!("jq: {message}");
                2
            })?;
            let directory = crate::io::path(&program).parent().map(|parent| parent.to_string_lossy().into_owned());
            options.origin = directory.filter(|directory| !directory.is_empty()).unwrap_or_else(|| ".".to_string());
            options.filter = text;
        }
        let origin = std::path::Path::new(&options.origin).canonicalize();
        if let Ok(origin) = origin {
            options.origin = origin.to_string_lossy().into_owned();
        }
        Ok(options)
    }
}
