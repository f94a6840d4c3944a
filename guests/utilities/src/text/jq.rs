//! `jq` 1.7: the command line, and the printing of results.
//!
//! A filter is read by `parse`, compiled by `compile` and run by `machine`, whose design is jq's own.

mod ast;
mod compile;
mod dates;
mod formats;
mod functions;
mod input;
mod json;
mod lex;
mod machine;
mod math;
mod modules;
mod number;
mod options;
mod parse;
mod paths;
mod print;
mod regex;
mod value;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use functions::Host;
use input::Inputs;
use machine::Machine;
use modules::Sources;
use options::Options;
use value::Json;

use crate::io::{self, Out};

/// Statuses: that of `-e` for the last result is negative, an error is positive.
mod status {
    pub const OK: i32 = 0;
    pub const NULL: i32 = -1;
    pub const NOTHING: i32 = -4;
    pub const SYSTEM: i32 = 2;
    pub const COMPILE: i32 = 3;
    pub const ERROR: i32 = 5;
}

/// Runs `jq`.
pub fn jq(args: Vec<OsString>) -> i32 {
    let args = common::getopt::bytes(args);
    let options = match options::parse(&args[1..]) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let status = run(&options);
    if options.exit_status { status.abs() } else { status.max(0) }
}

fn run(options: &Options) -> i32 {
    let mut sources = Sources { search: options.search.clone(), ..Sources::default() };
    let program = match compiled(options, &mut sources) {
        Ok(program) => program,
        Err(count) => {
            warn!("jq: {count} compile error{}", if count == 1 { "" } else { "s" });
            return status::COMPILE;
        }
    };
    let flags = (!options.raw_input).then_some(options.flags);
    let mut inputs = Inputs::new(options.files.clone(), flags, options.slurp);
    let mut out = Out::new("jq", 2);
    out.line_buffered = options.unbuffered || sys::is_terminal(1);
    let mut session = Session { options, out, text: String::new() };
    let mut result = status::NOTHING;
    let mut last = status::NOTHING;
    if options.null_input {
        result = session.process(&program, Json::Null, &mut inputs).0;
    } else {
        while inputs.failures == 0 {
            match inputs.next() {
                None => break,
                Some(Ok(value)) => {
                    let (status, halted) = session.process(&program, value, &mut inputs);
                    result = status;
                    if status <= 0 && status != status::NOTHING {
                        last = status;
                    }
                    if halted {
                        break;
                    }
                }
                Some(Err(message)) if options.flags.seq => warn!("jq: ignoring parse error: {message}"),
                Some(Err(message)) => {
                    warn!("jq: parse error: {message}");
                    result = status::ERROR;
                    break;
                }
            }
        }
    }
    session.out.flush();
    if inputs.failures > 0 {
        return status::SYSTEM;
    }
    if result == status::NOTHING { last } else { result }
}

/// Reads and compiles the filter, or returns how many errors were printed.
fn compiled(options: &Options, sources: &mut Sources) -> Result<compile::Program, usize> {
    let (loaded, main) = sources.program(&options.filter, Path::new(&options.origin))?;
    let mut globals: HashMap<String, Json> = options.named.iter().cloned().collect();
    let named = Json::object(options.named.iter().cloned());
    let arguments = [("positional".to_string(), Json::array(options.positional.clone())), ("named".to_string(), named)];
    globals.insert("ARGS".to_string(), Json::object(arguments));
    globals.insert("ENV".to_string(), functions::env());
    globals.entry("JQ_BUILD_CONFIGURATION".to_string()).or_insert_with(|| Json::string("sandlite"));
    compile::compile(&main, &loaded, &sources.modules, &globals).map_err(|complaints| {
        for (message, place) in &complaints {
            sources.complain(message, *place);
        }
        complaints.len()
    })
}

/// Returns whether a text is one JSON value.
pub(crate) fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| json::parse(text).is_ok())
}

struct Session<'a> {
    options: &'a Options,
    out: Out,
    text: String,
}

impl Session<'_> {
    /// Runs the filter on one input: the status, and whether the filter ended the whole run.
    fn process(&mut self, program: &compile::Program, value: Json, inputs: &mut Inputs) -> (i32, bool) {
        let mut host = Host { inputs, halted: None, style: self.options.style.clone(), search: self.options.search.clone() };
        let mut machine = Machine::new(program, value);
        let mut status = status::NOTHING;
        let error = loop {
            match machine.next(&mut host) {
                None => break None,
                Some(Err(error)) => break Some(error),
                Some(Ok(value)) => match self.output(&value) {
                    Ok(printed) => status = printed,
                    Err(message) => break Some(Json::string(message)),
                },
            }
        };
        if let Some((code, message)) = host.halted {
            match message {
                None | Some(Json::Null) => {}
                Some(Json::String(text)) => {
                    let _ = sys::write_all(2, text.as_bytes());
                }
                Some(other) => warn!("{}", print::compact(&other)),
            }
            return (code.as_number().unwrap_or(5.0) as i32 & 0xff, true);
        }
        if let Some(error) = error {
            let place = host.inputs.place();
            match error {
                Json::String(message) => warn!("jq: error (at {place}): {message}"),
                other => warn!("jq: error (at {place}) (not a string): {}", print::compact(&other)),
            }
            status = status::ERROR;
        }
        (status, false)
    }

    fn output(&mut self, value: &Json) -> Result<i32, String> {
        let options = self.options;
        let mut status = status::OK;
        match value {
            Json::String(text) if options.raw => {
                if options.style.ascii {
                    let style = print::Style { ascii: true, ..print::Style::default() };
                    self.write(&style, value);
                } else if options.raw_zero && text.contains('\0') {
                    return Err("Cannot dump a string containing NUL with --raw-output0 option".to_string());
                } else {
                    self.out.put(text.as_bytes());
                }
            }
            _ => {
                if !value.is_true() {
                    status = status::NULL;
                }
                if options.flags.seq {
                    self.out.byte(0x1e);
                }
                self.write(&options.style, value);
            }
        }
        if !options.join {
            self.out.byte(b'\n');
        }
        if options.raw_zero {
            self.out.byte(0);
        }
        self.out.line_end();
        Ok(status)
    }

    fn write(&mut self, style: &print::Style, value: &Json) {
        self.text.clear();
        print::write(&mut self.text, style, 0, value);
        self.out.put(self.text.as_bytes());
    }
}

/// Returns the bytes of a file, as text.
fn file_text(name: &[u8]) -> Result<String, String> {
    match io::read_all(name) {
        Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Err(error) => Err(format!("Could not open {}: {}", io::show(name), sys::message(&error))),
    }
}
