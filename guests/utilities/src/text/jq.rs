//! `jq`: command line and inputs; filters are compiled and run by the `jaq` crates, values printed by `print`.

mod print;
mod rewrite;
mod text;

use std::ffi::OsString;

use jaq_core::data::HasLut;
use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, DataT, Lut, Vars, native};
use jaq_json::{Map, Rc, Val, read};
use jaq_std::input::{HasInputs, Inputs, RcIter};

use crate::io::{self, Out, show};

/// What filters work on: JSON values, and inputs that `input` may take.
struct Kind;

struct Data<'a> {
    lut: &'a Lut<Kind>,
    inputs: Inputs<'a, Val>,
}

impl DataT for Kind {
    type V<'a> = Val;
    type Data<'a> = &'a Data<'a>;
}

impl<'a> HasLut<'a, Kind> for &'a Data<'a> {
    fn lut(&self) -> &'a Lut<Kind> {
        self.lut
    }
}

impl<'a> HasInputs<'a, Val> for &'a Data<'a> {
    fn inputs(&self) -> Inputs<'a, Val> {
        self.inputs
    }
}

#[derive(Default)]
struct Options {
    raw: bool,
    join: bool,
    raw_zero: bool,
    null_input: bool,
    slurp: bool,
    raw_input: bool,
    exit_status: bool,
    style: print::Style,
    seq: bool,
    filter: Option<String>,
    files: Vec<Vec<u8>>,
    named: Vec<(String, Val)>,
    positional: Vec<Val>,
}

const USAGE: &str = "Usage:\tjq [OPTIONS] FILTER [FILES...]\n\tjq [OPTIONS] -n FILTER\n\tjq [OPTIONS] --args FILTER [ARGUMENTS...]\n\tjq [OPTIONS] --jsonargs FILTER [JSON_VALUES...]";

fn string(bytes: &[u8]) -> Val {
    Val::utf8_str(bytes.to_vec())
}

/// `jq`.
pub fn jq(args: Vec<OsString>) -> i32 {
    let args = common::getopt::bytes(args);
    let options = match parse(&args[1..]) {
        Ok(options) => options,
        Err(status) => return status,
    };
    let Some(filter) = options.filter.clone() else {
        warn!("{USAGE}");
        return 2;
    };
    run(&options, &filter)
}

fn fail(message: &str) -> i32 {
    warn!(
        "jq: error: {message}\nUse jq --help for help with command-line options,\nor see the jq manpage, or online docs  at https://stedolan.github.io/jq"
    );
    2
}

#[expect(clippy::too_many_lines, reason = "one arm per option")]
fn parse(args: &[Vec<u8>]) -> Result<Options, i32> {
    #[derive(PartialEq)]
    enum Rest {
        Files,
        Strings,
        Json,
    }
    let mut options =
        Options { style: print::Style { indent: Some("  ".to_string()), ..print::Style::default() }, ..Options::default() };
    let mut rest = Rest::Files;
    let mut only_operands = false;
    let mut from_file = false;
    let mut iter = args.iter();
    while let Some(arg) = iter.next() {
        let text = show(arg).into_owned();
        if only_operands || !arg.starts_with(b"-") || arg.len() == 1 {
            if options.filter.is_none() {
                options.filter = Some(text);
                continue;
            }
            match rest {
                Rest::Files => options.files.push(arg.clone()),
                Rest::Strings => options.positional.push(string(arg)),
                Rest::Json => match read::parse_single(arg) {
                    Ok(value) => options.positional.push(value),
                    Err(_) => return Err(fail(&format!("Invalid JSON text passed to --jsonargs: {text}"))),
                },
            }
            continue;
        }
        if text == "--" {
            only_operands = true;
            continue;
        }
        if let Some(name) = text.strip_prefix("--") {
            let mut take = || iter.next().cloned();
            match name {
                "raw-output" => options.raw = true,
                "join-output" => (options.raw, options.join) = (true, true),
                "raw-output0" => (options.raw, options.raw_zero) = (true, true),
                "ascii-output" => options.style.ascii = true,
                "compact-output" => options.style.indent = None,
                "null-input" => options.null_input = true,
                "slurp" => options.slurp = true,
                "raw-input" => options.raw_input = true,
                "exit-status" => options.exit_status = true,
                "sort-keys" => options.style.sort_keys = true,
                "color-output" => options.style.color = true,
                "monochrome-output" => options.style.color = false,
                "tab" => options.style.indent = Some("\t".to_string()),
                "seq" => options.seq = true,
                "unbuffered" => {}
                "args" => rest = Rest::Strings,
                "jsonargs" => rest = Rest::Json,
                "from-file" => from_file = true,
                "indent" => {
                    let Some(count) = take().and_then(|value| common::number::parse::<usize>(&value)) else {
                        return Err(fail("--indent takes a number"));
                    };
                    if count > 7 {
                        return Err(fail("Cannot indent more than 7 characters"));
                    }
                    options.style.indent = (count > 0).then(|| " ".repeat(count));
                }
                "arg" | "argjson" | "slurpfile" | "rawfile" => {
                    let (Some(key), Some(value)) = (take(), take()) else {
                        return Err(fail(&format!(
                            "--{name} takes two parameters (e.g. --{name} varname {})",
                            if name.ends_with("file") { "filename" } else { "value" }
                        )));
                    };
                    let key = show(&key).into_owned();
                    let value = named(name, &key, &value)?;
                    options.named.retain(|known| known.0 != key);
                    options.named.push((key, value));
                }
                "help" => {
                    let mut out = Out::new("jq", 2);
                    out.put(USAGE.as_bytes());
                    out.byte(b'\n');
                    out.flush();
                    return Err(0);
                }
                "version" => {
                    let mut out = Out::new("jq", 2);
                    out.put(b"jq-1.6\n");
                    out.flush();
                    return Err(0);
                }
                _ => {
                    warn!("Unknown arguments\n{USAGE}");
                    return Err(2);
                }
            }
            continue;
        }
        for letter in text[1..].chars() {
            match letter {
                'r' => options.raw = true,
                'j' => (options.raw, options.join) = (true, true),
                'a' => options.style.ascii = true,
                'c' => options.style.indent = None,
                'n' => options.null_input = true,
                's' => options.slurp = true,
                'R' => options.raw_input = true,
                'e' => options.exit_status = true,
                'S' => options.style.sort_keys = true,
                'C' => options.style.color = true,
                'M' => options.style.color = false,
                'f' => from_file = true,
                'h' => {
                    let mut out = Out::new("jq", 2);
                    out.put(USAGE.as_bytes());
                    out.byte(b'\n');
                    out.flush();
                    return Err(0);
                }
                'V' => {
                    let mut out = Out::new("jq", 2);
                    out.put(b"jq-1.6\n");
                    out.flush();
                    return Err(0);
                }
                _ => {
                    warn!("Unknown arguments\n{USAGE}");
                    return Err(2);
                }
            }
        }
    }
    if from_file && let Some(name) = options.filter.take() {
        match io::read_all(name.as_bytes()) {
            Ok(text) => options.filter = Some(show(&text).into_owned()),
            Err(error) => {
                warn!("jq: error: Could not open {name}: {}", sys::message(&error));
                return Err(2);
            }
        }
    }
    Ok(options)
}

fn named(kind: &str, key: &str, value: &[u8]) -> Result<Val, i32> {
    let content = |name: &[u8]| {
        io::read_all(name).map_err(|error| {
            warn!("jq: Bad JSON in --{kind} {key} {}: Could not open {}: {}", show(name), show(name), sys::message(&error));
            2
        })
    };
    match kind {
        "arg" => Ok(string(value)),
        "argjson" => read::parse_single(value).map_err(|_| fail("Invalid JSON text passed to --argjson")),
        "rawfile" => Ok(string(&content(value)?)),
        _ => {
            let text = content(value)?;
            let values: Result<Vec<Val>, _> = read::parse_many(&text).collect();
            values.map(|values| Val::Arr(Rc::new(values))).map_err(|_| {
                warn!("jq: Bad JSON in --slurpfile {key} {}", show(value));
                2
            })
        }
    }
}

fn object(pairs: impl IntoIterator<Item = (Vec<u8>, Val)>) -> Val {
    let map: Map = pairs.into_iter().map(|(key, value)| (string(&key), value)).collect();
    Val::obj(map)
}

fn run(options: &Options, filter: &str) -> i32 {
    let more = jaq_core::load::parse(include_str!("jq/more.jq"), |parser| parser.defs()).unwrap_or_default();
    let defs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()).chain(more);
    let inputs = jaq_std::input::funs::<Kind>().into_vec().into_iter().map(native::run::<Kind>);
    let funs = jaq_core::funs::<Kind>().chain(jaq_std::funs()).chain(jaq_json::funs()).chain(inputs);
    let arena = Arena::default();
    let rewritten = rewrite::assignments(filter);
    let code = rewritten.as_deref().unwrap_or(filter);
    let loaded = Loader::new(defs).load(&arena, File { code, path: () });
    let Ok(modules) = loaded else {
        warn!(
            "jq: error: syntax error, unexpected end of filter or token (Unix shell quoting issues?) at <top-level>, line 1:\n{filter}\njq: 1 compile error"
        );
        return 3;
    };
    let names: Vec<String> = options.named.iter().map(|(name, _)| format!("${name}")).collect();
    let globals = ["$ENV", "$ARGS", "$__prog_args"].into_iter().chain(names.iter().map(String::as_str));
    let compiled = match Compiler::default().with_funs(funs).with_global_vars(globals).compile(modules) {
        Ok(compiled) => compiled,
        Err(errors) => {
            let mut count = 0;
            for (_, undefined) in &errors {
                for (name, kind) in undefined {
                    count += 1;
                    let arity = match kind {
                        jaq_core::compile::Undefined::Filter(arity) => format!("/{arity}"),
                        _ => String::new(),
                    };
                    warn!("jq: error: {name}{arity} is not defined at <top-level>, line 1:\n{filter}");
                }
            }
            warn!("jq: {count} compile error{}", if count == 1 { "" } else { "s" });
            return 3;
        }
    };
    let environment =
        object(std::env::vars_os().map(|(name, value)| (name.into_encoded_bytes(), string(value.as_encoded_bytes()))));
    let arguments = object([
        (b"positional".to_vec(), Val::Arr(Rc::new(options.positional.clone()))),
        (b"named".to_vec(), object(options.named.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone())))),
    ]);
    let mut values = vec![environment, arguments, Val::Null];
    values.extend(options.named.iter().map(|(_, value)| value.clone()));

    let texts = match text::Texts::open(&options.files) {
        Ok(texts) => texts,
        Err(status) => return status,
    };
    let place = std::cell::RefCell::new("<unknown>".to_string());
    let broken = std::cell::Cell::new(false);
    let missing = texts.missing;
    let stream: Box<dyn Iterator<Item = Result<Val, String>> + '_> =
        if options.raw_input { texts.lines(options.slurp) } else { texts.values(options.slurp, &place, &broken) };
    let inputs = RcIter::new(stream);
    let inputs: Inputs<'_, Val> = &inputs;
    let data = Data { lut: &compiled.lut, inputs };
    let mut out = Out::new("jq", 2);
    let mut session = Session { options, out: &mut out, last: None, status: 0, halted: false };
    let mut once = options.null_input.then_some(Ok(Val::Null));
    while !session.halted {
        let next = if options.null_input { once.take() } else { { inputs }.next() };
        match next {
            None => break,
            Some(Err(message)) => {
                session.out.flush();
                warn!("{message}");
                session.status = 4;
                break;
            }
            Some(Ok(input)) => {
                let ctx = Ctx::<Kind>::new(&data, Vars::new(values.clone()));
                for output in compiled.id.run((ctx, input)) {
                    if !session.output(output, &place) {
                        break;
                    }
                }
            }
        }
    }
    if broken.get() && session.status == 0 {
        session.status = 4;
    }
    let status = session.status;
    let last = session.last;
    out.flush();
    match (status, options.exit_status) {
        (0, _) if missing => 2,
        (0, true) => match last {
            None => 4,
            Some(true) => 0,
            Some(false) => 1,
        },
        (status, _) => status,
    }
}

struct Session<'a> {
    options: &'a Options,
    out: &'a mut Out,
    /// Whether the last output was neither false nor null.
    last: Option<bool>,
    status: i32,
    halted: bool,
}

impl Session<'_> {
    /// Prints one result; `false` when the filter is done with this input.
    fn output(&mut self, output: jaq_json::ValX<'_>, place: &std::cell::RefCell<String>) -> bool {
        let value = match output {
            Ok(value) => value,
            Err(exception) => {
                self.out.flush();
                match exception.get_err() {
                    Ok(error) => {
                        self.status = 5;
                        let place = place.borrow();
                        match error.clone().into_val() {
                            Val::TStr(message) | Val::BStr(message) => {
                                warn!("jq: error (at {place}): {}", text::reword(&show(&message)))
                            }
                            other => warn!("jq: error (at {place}) (not a string): {}", show(&print::compact(&other))),
                        }
                    }
                    Err(exception) => {
                        self.status = exception.get_halt().unwrap_or(5);
                        self.halted = true;
                    }
                }
                return false;
            }
        };
        self.last = Some(!matches!(value, Val::Null | Val::Bool(false)));
        if self.options.seq {
            self.out.byte(0x1e);
        }
        match &value {
            Val::TStr(text) | Val::BStr(text) if self.options.raw && !self.options.style.ascii => self.out.put(text),
            _ => print::value(self.out, &self.options.style, &value),
        }
        if self.options.raw_zero {
            self.out.byte(0);
        } else if !self.options.join {
            self.out.byte(b'\n');
        }
        true
    }
}
