//! `sed`: command line; `script` reads the program, `run` executes it, `replace` does `s`.

mod input;
mod replace;
mod run;
mod script;

use std::ffi::OsString;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;

use crate::io::{self, show};

const LONG: &[Long] = &[
    ("debug", Value::No, '\u{1}'),
    ("expression", Value::Needs, 'e'),
    ("file", Value::Needs, 'f'),
    ("follow-symlinks", Value::No, '\u{1}'),
    ("help", Value::No, '\u{2}'),
    ("in-place", Value::May, 'i'),
    ("line-length", Value::Needs, 'l'),
    ("null-data", Value::No, 'z'),
    ("posix", Value::No, '\u{3}'),
    ("quiet", Value::No, 'n'),
    ("regexp-extended", Value::No, 'E'),
    ("sandbox", Value::No, '\u{4}'),
    ("separate", Value::No, 's'),
    ("silent", Value::No, 'n'),
    ("unbuffered", Value::No, 'u'),
    ("version", Value::No, '\u{5}'),
    ("zero-terminated", Value::No, 'z'),
];

const SPEC: Spec = Spec { short: "bsnrzuEe:f:l:i::V:", long: LONG };

const USAGE: &str = "Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...

  -n, --quiet, --silent
                 suppress automatic printing of pattern space
  -e script, --expression=script
                 add the script to the commands to be executed
  -f script-file, --file=script-file
                 add the contents of script-file to the commands to be executed
  -i[SUFFIX], --in-place[=SUFFIX]
                 edit files in place (makes backup if SUFFIX supplied)
  -l N, --line-length=N
                 specify the desired line-wrap length for the `l' command
  -E, -r, --regexp-extended
                 use extended regular expressions in the script
  -s, --separate
                 consider files as separate rather than as a single,
                 continuous long stream.
      --sandbox
                 operate in sandbox mode (disable e/r/w commands).
  -u, --unbuffered
                 load minimal amounts of data from the input files and flush
                 the output buffers more often
  -z, --null-data
                 separate lines by NUL characters

If no -e, --expression, -f, or --file option is given, then the first
non-option argument is taken as the sed script to interpret.  All
remaining arguments are names of input files; if no input files are
specified, then the standard input is read.
";

/// The options of the command line for running a script.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    quiet: bool,
    extended: bool,
    separate: bool,
    /// In place, with the suffix of the backup.
    in_place: Option<Vec<u8>>,
    null_data: bool,
    unbuffered: bool,
    sandbox: bool,
    line_length: usize,
}

/// A piece of script and where it came from.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    text: Vec<u8>,
    /// The file's name; `None` for `-e`.
    file: Option<Vec<u8>>,
}

/// Runs `sed`.
pub fn sed(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let items = match SPEC.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("sed: {message}\n{USAGE}");
            return 1;
        }
    };
    let mut options = Options { line_length: 70, ..Options::default() };
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut files = Vec::new();
    for item in items {
        let (letter, value) = match item {
            Item::Operand(file) => {
                files.push(file);
                continue;
            }
            Item::Opt(letter, value) => (letter, value),
        };
        let value = value.unwrap_or_default();
        match letter {
            'n' => options.quiet = true,
            'E' | 'r' => options.extended = true,
            's' => options.separate = true,
            'z' => options.null_data = true,
            'u' => options.unbuffered = true,
            'i' => options.in_place = Some(value),
            'e' => chunks.push(Chunk { text: value, file: None }),
            'f' => match io::read_all(&value) {
                Ok(mut text) => {
                    if text.last() == Some(&b'\n') {
                        text.pop();
                    }
                    chunks.push(Chunk { text, file: Some(value) });
                }
                Err(error) => {
                    warn!("sed: couldn't open file {}: {}", show(&value), sys::message(&error));
                    return 1;
                }
            },
            'l' => match number::size(&value) {
                Some(length) => options.line_length = length,
                None => {
                    warn!("sed: invalid line length: {}", show(&value));
                    return 1;
                }
            },
            '\u{2}' => {
                let mut out = io::Out::new("sed", 4);
                out.put(USAGE.as_bytes());
                out.flush();
                return 0;
            }
            '\u{4}' => options.sandbox = true,
            '\u{5}' => {
                let mut out = io::Out::new("sed", 4);
                out.put(b"sed (GNU sed) 4.9\n");
                out.flush();
                return 0;
            }
            _ => {}
        }
    }
    if chunks.is_empty() {
        if files.is_empty() {
            io::complain(USAGE.trim_end().as_bytes());
            return 1;
        }
        chunks.push(Chunk { text: files.remove(0), file: None });
    }
    options.separate |= options.in_place.is_some();
    match script::parse(&chunks, &mut options) {
        Ok(program) => run::run(&program, &options, files),
        Err(message) => {
            warn!("sed: {message}");
            if message.starts_with("can't find label") { 4 } else { 1 }
        }
    }
}
