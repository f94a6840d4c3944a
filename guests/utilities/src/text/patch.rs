//! `patch`: applies unified, context and normal diffs, with offsets and fuzz.

mod apply;
mod parse;

use std::ffi::OsString;
use std::fs;

use common::getopt::{self, Item, Long, Spec, Value};
use common::number;

use crate::files::basename::{last_component, without_directories};
use crate::io::{self, Out, show};

const LONG: &[Long] = &[
    ("backup", Value::No, 'b'),
    ("batch", Value::No, 't'),
    ("directory", Value::Needs, 'd'),
    ("dry-run", Value::No, '\u{1}'),
    ("force", Value::No, 'f'),
    ("forward", Value::No, 'N'),
    ("fuzz", Value::Needs, 'F'),
    ("input", Value::Needs, 'i'),
    ("output", Value::Needs, 'o'),
    ("quiet", Value::No, 's'),
    ("reject-file", Value::Needs, 'r'),
    ("remove-empty-files", Value::No, 'E'),
    ("reverse", Value::No, 'R'),
    ("silent", Value::No, 's'),
    ("strip", Value::Needs, 'p'),
    ("suffix", Value::Needs, 'z'),
    ("unified", Value::No, 'u'),
    ("verbose", Value::No, 'v'),
    ("no-backup-if-mismatch", Value::No, '\u{2}'),
];

pub(crate) struct Options {
    strip: Option<usize>,
    reverse: bool,
    dry_run: bool,
    forward: bool,
    force: bool,
    batch: bool,
    silent: bool,
    backup: bool,
    suffix: Vec<u8>,
    fuzz: usize,
    output: Option<Vec<u8>>,
    reject: Option<Vec<u8>>,
}

/// Runs `patch`.
pub fn patch(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "bB:cd:D:eEfF:g:i:lnNo:p:r:RstTuvVx:Y:z:Z", long: LONG };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) => {
            warn!("patch: {message}\npatch: Try 'patch --help' for more information.");
            return 2;
        }
    };
    let mut options = Options {
        strip: None,
        reverse: false,
        dry_run: false,
        forward: false,
        force: false,
        batch: false,
        silent: false,
        backup: false,
        suffix: b".orig".to_vec(),
        fuzz: 2,
        output: None,
        reject: None,
    };
    let (mut input, mut directory, mut operands) = (None, None, Vec::new());
    for item in items {
        match item {
            Item::Operand(operand) => operands.push(operand),
            Item::Opt('p', value) => match value.as_deref().and_then(number::size) {
                Some(count) => options.strip = Some(count),
                None => return trouble(&format!("strip count {} is not a number", show(&value.unwrap_or_default()))),
            },
            Item::Opt('R', _) => options.reverse = true,
            Item::Opt('N', _) => options.forward = true,
            Item::Opt('f', _) => options.force = true,
            Item::Opt('t', _) => options.batch = true,
            Item::Opt('s', _) => options.silent = true,
            Item::Opt('b', _) => options.backup = true,
            Item::Opt('z', value) => options.suffix = value.unwrap_or_default(),
            Item::Opt('F', value) => match value.as_deref().and_then(number::size) {
                Some(fuzz) => options.fuzz = fuzz,
                None => return trouble(&format!("fuzz factor {} is not a number", show(&value.unwrap_or_default()))),
            },
            Item::Opt('i', value) => input = value,
            Item::Opt('o', value) => options.output = value,
            Item::Opt('r', value) => options.reject = value,
            Item::Opt('d', value) => directory = value,
            Item::Opt('\u{1}', _) => options.dry_run = true,
            Item::Opt(..) => {}
        }
    }
    let input = input.or_else(|| operands.get(1).cloned()).unwrap_or_else(|| b"-".to_vec());
    let text = match io::read_all(&input) {
        Ok(text) => text,
        Err(error) => {
            warn!("patch: **** Can't open patch file {} : {}", show(&input), sys::message(&error));
            return 2;
        }
    };
    if let Some(directory) = directory
        && let Err(error) = std::env::set_current_dir(io::path(&directory))
    {
        warn!("patch: **** Can't change to directory {} : {}", show(&directory), sys::message(&error));
        return 2;
    }
    let patches = parse::patches(&text);
    if patches.is_empty() {
        if !text.is_empty() {
            warn!("patch: **** Only garbage was found in the patch input.");
            return 2;
        }
        return 0;
    }
    let mut out = Out::new("patch", 2);
    let mut status = 0;
    for patch in &patches {
        status = status.max(apply_one(&options, &mut out, patch, operands.first()));
    }
    out.flush();
    status
}

/// Returns the name with `count` leading directories taken off.
fn stripped(name: &[u8], count: Option<usize>) -> Option<Vec<u8>> {
    match count {
        Some(count) => without_directories(name, count).map(<[u8]>::to_vec),
        None => Some(last_component(name).to_vec()),
    }
}

fn exists(name: &[u8]) -> bool {
    fs::metadata(io::path(name)).is_ok()
}

fn choose(options: &Options, patch: &parse::Patch) -> Option<Vec<u8>> {
    let names: Vec<Vec<u8>> = [&patch.old, &patch.new, &patch.index]
        .into_iter()
        .filter(|name| !name.is_empty() && *name != b"/dev/null")
        .filter_map(|name| stripped(name, options.strip))
        .collect();
    let (creates, deletes) = (patch.creates(), patch.deletes());
    if (if options.reverse { deletes } else { creates }) && !names.is_empty() {
        let wanted = if options.reverse { names.first() } else { names.last() };
        return wanted.cloned();
    }
    names
        .iter()
        .filter(|name| exists(name))
        .min_by_key(|name| (name.iter().filter(|&&byte| byte == b'/').count(), name.len()))
        .cloned()
}

/// Returns a name in messages: in quotes where a shell would need them.
fn quoted(name: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"%+,-./:=@_".contains(byte) || *byte >= 128;
    if name.iter().all(plain) { show(name).into_owned() } else { format!("'{}'", show(name).replace('\'', "'\\''")) }
}

/// Skips a patch that is already applied, without asking.
fn ignore(options: &Options, out: &mut Out, patch: &parse::Patch, name: &[u8]) -> i32 {
    if options.forward {
        out.put(b"Skipping patch.\n");
    } else {
        out.put(b"Assume -R? [n] \nApply anyway? [n] \n");
        if !options.silent {
            out.put(b"Skipping patch.\n");
        }
    }
    let count = patch.hunks.len();
    let target = options.reject.clone().unwrap_or_else(|| [name, b".rej"].concat());
    let saved = if options.dry_run { String::new() } else { format!(" -- saving rejects to file {}", show(&target)) };
    out.put(format!("{count} out of {count} hunk{} ignored{saved}\n", if count == 1 { "" } else { "s" }).as_bytes());
    if !options.dry_run {
        let _ = fs::write(io::path(&target), apply::reject_text(patch, &patch.hunks));
    }
    1
}

fn apply_one(options: &Options, out: &mut Out, patch: &parse::Patch, operand: Option<&Vec<u8>>) -> i32 {
    let Some(name) = operand.cloned().or_else(|| choose(options, patch)) else {
        out.put(b"can't find file to patch at input line 3\n");
        out.put(if options.strip.is_some() {
            b"Perhaps you used the wrong -p or --strip option?\n".as_slice()
        } else {
            b"Perhaps you should have used the -p or --strip option?\n"
        });
        out.put(b"File to patch: \nSkip this patch? [y] \nSkipping patch.\n");
        let count = patch.hunks.len();
        out.put(format!("{count} out of {count} hunk{} ignored\n", if count == 1 { "" } else { "s" }).as_bytes());
        return 1;
    };
    let path = io::path(&name);
    let verb = if options.dry_run { "checking" } else { "patching" };
    if !options.silent {
        out.put(format!("{verb} file {}", quoted(options.output.as_ref().unwrap_or(&name))).as_bytes());
        if let Some(output) = &options.output {
            let _ = output;
            out.put(format!(" (read from {})", quoted(&name)).as_bytes());
        }
        out.byte(b'\n');
    }
    let original = match fs::read(&path) {
        Ok(original) => original,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            out.flush();
            warn!("patch: **** Can't open file {} : {}", show(&name), sys::message(&error));
            io::exit(2)
        }
    };
    let mut reverse = options.reverse;
    let mut result = apply::apply(&original, patch, reverse, options.fuzz, !options.force);
    if result.reversed {
        out.put(b"Reversed (or previously applied) patch detected!  ");
        if options.batch {
            out.put(b"Assuming -R.\n");
            reverse = !reverse;
            result = apply::apply(&original, patch, reverse, options.fuzz, false);
            result.fuzzy = true;
        } else {
            return ignore(options, out, patch, &name);
        }
    }
    for line in &result.messages {
        if !options.silent || line.contains("FAILED") {
            out.put(line.as_bytes());
            out.byte(b'\n');
        }
    }
    let rejects = result.rejects.len();
    if rejects > 0 {
        let count = patch.hunks.len();
        let target = options.reject.clone().unwrap_or_else(|| [name.as_slice(), b".rej"].concat());
        let saved = if options.dry_run { String::new() } else { format!(" -- saving rejects to file {}", show(&target)) };
        out.put(format!("{rejects} out of {count} hunk{} FAILED{saved}\n", if count == 1 { "" } else { "s" }).as_bytes());
        if !options.dry_run {
            let _ = fs::write(io::path(&target), apply::reject_text(patch, &result.rejects));
        }
    }
    if options.dry_run {
        return i32::from(rejects > 0);
    }
    let target = options.output.as_ref().map_or(path.clone(), |output| io::path(output));
    if options.backup || rejects > 0 || result.fuzzy {
        let backup = [name.as_slice(), &options.suffix].concat();
        let _ = fs::write(io::path(&backup), &original);
    }
    let deletes = if reverse { patch.creates() } else { patch.deletes() };
    if deletes && result.content.is_empty() && options.output.is_none() {
        let _ = fs::remove_file(&path);
        return i32::from(rejects > 0);
    }
    if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let _ = fs::create_dir_all(parent);
    }
    if rejects < patch.hunks.len()
        && let Err(error) = fs::write(&target, &result.content)
    {
        out.flush();
        warn!("patch: **** Can't create file {} : {}", show(&name), sys::message(&error));
        return 2;
    }
    i32::from(rejects > 0)
}

/// Reports what ends patch.
fn trouble(message: &str) -> i32 {
    warn!("patch: **** {message}");
    2
}
