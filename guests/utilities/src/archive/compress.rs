//! `gzip`, `bzip2`, `xz` and their other names: files and streams made smaller and back.

use std::ffi::OsString;
use std::fs;
use std::io::{self as std_io, BufReader, Read, Write};

use common::getopt::{self, Item, Long, Spec, Value};
use lzma_rust2::CheckType;

use crate::io::{self, BLOCK, Input, Out, show};

/// A compressed format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Gzip,
    Bzip2,
    Xz,
    /// The format before .xz, which has neither a name nor a checksum in it.
    Lzma,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz | Self::Lzma => "xz",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Bzip2 => ".bz2",
            Self::Xz => ".xz",
            Self::Lzma => ".lzma",
        }
    }

    /// Returns the format that a stream's first bytes show.
    pub fn detect(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', ..] => Some(Self::Bzip2),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            // Properties, then the size of a dictionary: presets make 2^n bytes.
            [0x5d, 0, 0, ..] => Some(Self::Lzma),
            _ => None,
        }
    }

    /// Returns a reader of what `input` holds compressed.
    pub fn reader<'a>(self, input: impl Read + 'a) -> Box<dyn Read + 'a> {
        let input = BufReader::with_capacity(BLOCK, input);
        match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new(input, true)),
            Self::Lzma => match lzma_rust2::LzmaReader::new_mem_limit(input, u32::MAX, None) {
                Ok(reader) => Box::new(reader),
                Err(error) => Box::new(Broken(Some(error))),
            },
        }
    }

    /// Compresses all of `input` into `output`.
    pub fn compress(self, input: &mut impl Read, output: &mut impl Write, level: u32) -> std_io::Result<()> {
        match self {
            Self::Gzip => {
                let mut encoder =
                    flate2::GzBuilder::new().operating_system(3).write(output, flate2::Compression::new(level.clamp(1, 9)));
                std_io::copy(input, &mut encoder)?;
                encoder.finish()?;
            }
            Self::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(output, bzip2::Compression::new(level.clamp(1, 9)));
                std_io::copy(input, &mut encoder)?;
                encoder.finish()?;
            }
            Self::Xz => compress_xz(input, output, level, CheckType::default())?,
            Self::Lzma => {
                let options = lzma_rust2::LzmaOptions::with_preset(level.min(9));
                let mut encoder = lzma_rust2::LzmaWriter::new_use_header(output, &options, None)?;
                std_io::copy(input, &mut encoder)?;
                encoder.finish()?;
            }
        }
        Ok(())
    }
}

fn compress_xz(input: &mut impl Read, output: &mut impl Write, level: u32, check: CheckType) -> std_io::Result<()> {
    let mut options = lzma_rust2::XzOptions::with_preset(level.min(9));
    options.set_check_sum_type(check);
    let mut encoder = lzma_rust2::XzWriter::new(output, options)?;
    std_io::copy(input, &mut encoder)?;
    encoder.finish()?;
    Ok(())
}

/// A stream with an invalid header: reading it fails.
struct Broken(Option<std_io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std_io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

const LONG: &[Long] = &[
    ("ascii", Value::No, 'a'),
    ("best", Value::No, '9'),
    ("check", Value::Needs, '\u{1}'),
    ("decompress", Value::No, 'd'),
    ("fast", Value::No, '1'),
    ("force", Value::No, 'f'),
    ("format", Value::Needs, '\u{2}'),
    ("help", Value::No, 'h'),
    ("keep", Value::No, 'k'),
    ("list", Value::No, 'l'),
    ("name", Value::No, 'N'),
    ("no-name", Value::No, 'n'),
    ("quiet", Value::No, 'q'),
    ("recursive", Value::No, 'r'),
    ("stdout", Value::No, 'c'),
    ("to-stdout", Value::No, 'c'),
    ("suffix", Value::Needs, 'S'),
    ("test", Value::No, 't'),
    ("threads", Value::Needs, 'T'),
    ("uncompress", Value::No, 'd'),
    ("verbose", Value::No, 'v'),
    ("version", Value::No, 'V'),
];

const SPEC: Spec = Spec { short: "0123456789acdefhklnNqrsS:tT:vVz", long: LONG };

/// Runs `gzip`.
pub fn gzip(args: Vec<OsString>) -> i32 {
    run(args, Format::Gzip, false, false)
}
/// Runs `gunzip`.
pub fn gunzip(args: Vec<OsString>) -> i32 {
    run(args, Format::Gzip, true, false)
}
/// Runs `zcat`.
pub fn zcat(args: Vec<OsString>) -> i32 {
    run(args, Format::Gzip, true, true)
}
/// Runs `bzip2`.
pub fn bzip2(args: Vec<OsString>) -> i32 {
    run(args, Format::Bzip2, false, false)
}
/// Runs `bunzip2`.
pub fn bunzip2(args: Vec<OsString>) -> i32 {
    run(args, Format::Bzip2, true, false)
}
/// Runs `bzcat`.
pub fn bzcat(args: Vec<OsString>) -> i32 {
    run(args, Format::Bzip2, true, true)
}
/// Runs `xz`.
pub fn xz(args: Vec<OsString>) -> i32 {
    run(args, Format::Xz, false, false)
}
/// Runs `unxz`.
pub fn unxz(args: Vec<OsString>) -> i32 {
    run(args, Format::Xz, true, false)
}
/// Runs `lzma`.
pub fn lzma(args: Vec<OsString>) -> i32 {
    run(args, Format::Lzma, false, false)
}
/// Runs `unlzma`.
pub fn unlzma(args: Vec<OsString>) -> i32 {
    run(args, Format::Lzma, true, false)
}
/// Runs `lzcat`.
pub fn lzcat(args: Vec<OsString>) -> i32 {
    run(args, Format::Lzma, true, true)
}
/// Runs `xzcat`.
pub fn xzcat(args: Vec<OsString>) -> i32 {
    run(args, Format::Xz, true, true)
}

struct Options {
    format: Format,
    decompress: bool,
    stdout: bool,
    keep: bool,
    force: bool,
    test: bool,
    list: bool,
    verbose: bool,
    quiet: bool,
    recursive: bool,
    level: u32,
    suffix: String,
    /// The integrity check of an .xz file.
    check: CheckType,
}

impl Options {
    fn compress(&self, input: &mut impl Read, output: &mut impl Write) -> std_io::Result<()> {
        match self.format {
            Format::Xz => compress_xz(input, output, self.level, self.check),
            format => format.compress(input, output, self.level),
        }
    }
}

fn run(args: Vec<OsString>, format: Format, decompress: bool, stdout: bool) -> i32 {
    let args = getopt::bytes(args);
    let name = format.name();
    let items = match SPEC.parse(&args[1..]) {
        Ok(items) => items,
        Err(message) if message == "invalid option -- 'Z'" && format == Format::Gzip => {
            warn!("gzip: -Z not supported in this version\nTry `gzip --help' for more information.");
            return 1;
        }
        Err(message) => {
            warn!("{name}: {message}\nTry `{name} --help' for more information.");
            return 1;
        }
    };
    let mut options = Options {
        format,
        decompress,
        stdout,
        keep: false,
        force: false,
        test: false,
        list: false,
        verbose: false,
        quiet: false,
        recursive: false,
        level: if format == Format::Bzip2 { 9 } else { 6 },
        suffix: format.suffix().to_string(),
        check: CheckType::default(),
    };
    let mut files = Vec::new();
    for item in items {
        match item {
            Item::Operand(file) => files.push(file),
            Item::Opt('d', _) => options.decompress = true,
            Item::Opt('z', _) => options.decompress = false,
            Item::Opt('c', _) => options.stdout = true,
            Item::Opt('k', _) => options.keep = true,
            Item::Opt('f', _) => options.force = true,
            Item::Opt('t', _) => (options.test, options.decompress) = (true, true),
            Item::Opt('l', _) => options.list = true,
            Item::Opt('v', _) => options.verbose = true,
            Item::Opt('q', _) => options.quiet = true,
            Item::Opt('r', _) => options.recursive = true,
            Item::Opt('S', value) => options.suffix = show(&value.unwrap_or_default()).into_owned(),
            Item::Opt('\u{1}', value) => match value.as_deref() {
                Some(b"none") => options.check = CheckType::None,
                Some(b"crc32") => options.check = CheckType::Crc32,
                Some(b"crc64") => options.check = CheckType::Crc64,
                Some(b"sha256") => options.check = CheckType::Sha256,
                other => {
                    warn!("{name}: {}: Unsupported integrity check type", show(other.unwrap_or_default()));
                    return 1;
                }
            },
            Item::Opt('\u{2}', value) => match value.as_deref() {
                Some(b"auto") => {}
                Some(b"xz") => (options.format, options.suffix) = (Format::Xz, Format::Xz.suffix().to_string()),
                Some(b"lzma" | b"alone") => {
                    (options.format, options.suffix) = (Format::Lzma, Format::Lzma.suffix().to_string());
                }
                other => {
                    warn!("{name}: {}: Unknown file format type", show(other.unwrap_or_default()));
                    return 1;
                }
            },
            Item::Opt(digit @ '0'..='9', _) => options.level = digit as u32 - '0' as u32,
            Item::Opt('h', _) => {
                let mut out = Out::new(name, 1);
                out.put(format!("Usage: {name} [OPTION]... [FILE]...\nCompress or uncompress FILEs (by default, compress FILES in-place).\n").as_bytes());
                out.flush();
                return 0;
            }
            Item::Opt('V', _) => {
                let mut out = Out::new(name, 1);
                out.put(format!("{name} 1.12\n").as_bytes());
                out.flush();
                return 0;
            }
            Item::Opt(..) => {}
        }
    }
    if files.is_empty() {
        files.push(b"-".to_vec());
    }
    let mut out = Out::new(name, 1);
    let mut status = 0;
    if options.list {
        out.put(b"         compressed        uncompressed  ratio uncompressed_name\n");
    }
    for file in files {
        status = status.max(one(&options, &mut out, &file));
    }
    out.flush();
    status
}

fn one(options: &Options, out: &mut Out, file: &[u8]) -> i32 {
    let name = options.format.name();
    if file == b"-" {
        return stream(options, out, Input::Stdin, b"stdin");
    }
    let path = io::path(file);
    match sys::stat(&path, true) {
        Err(error) => {
            // GNU gunzip also tries the name with the suffix added.
            let with_suffix = [file, options.suffix.as_bytes()].concat();
            if options.decompress && sys::stat(&io::path(&with_suffix), true).is_ok() {
                return one(options, out, &with_suffix);
            }
            let shown = if options.decompress && options.format == Format::Gzip {
                show(&with_suffix).into_owned()
            } else {
                show(file).into_owned()
            };
            let prefix = if options.format == Format::Bzip2 { "Can't open input file " } else { "" };
            let stop = if options.format == Format::Bzip2 { "." } else { "" };
            warn!("{name}: {prefix}{shown}: {}{stop}", sys::message(&error));
            return 1;
        }
        Ok(stat) if stat.kind() == sys::stat::S_IFDIR => {
            if options.recursive {
                let mut names: Vec<_> =
                    fs::read_dir(&path).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path()).collect();
                names.sort();
                return names.iter().map(|path| one(options, out, io::path_bytes(path))).max().unwrap_or(0);
            }
            warn!("{name}: {} is a directory -- ignored", show(file));
            return 2;
        }
        Ok(_) => {}
    }
    let input = match Input::open_file(file) {
        Ok(input) => input,
        Err(error) => {
            warn!("{name}: {}: {}", show(file), sys::message(&error));
            return 1;
        }
    };
    if options.stdout || options.test || options.list {
        return stream(options, out, input, file);
    }
    let target = if options.decompress {
        match stripped(options, file) {
            Some(target) => target,
            None => {
                warn!("{name}: {}: unknown suffix -- ignored", show(file));
                return 2;
            }
        }
    } else {
        if file.ends_with(options.suffix.as_bytes()) {
            warn!("{name}: {} already has {} suffix -- unchanged", show(file), options.suffix);
            return 2;
        }
        [file, options.suffix.as_bytes()].concat()
    };
    in_place(options, input, file, &target)
}

fn stripped(options: &Options, file: &[u8]) -> Option<Vec<u8>> {
    for (suffix, replacement) in [
        (options.suffix.as_str(), ""),
        (".tgz", ".tar"),
        (".tbz2", ".tar"),
        (".tbz", ".tar"),
        (".xz", ""),
        (".lzma", ""),
        (".txz", ".tar"),
        (".tlz", ".tar"),
        (".z", ""),
        ("-gz", ""),
    ] {
        let other = matches!(suffix, ".xz" | ".lzma") && options.format.name() != "xz";
        if let Some(stem) = file.strip_suffix(suffix.as_bytes()).filter(|stem| !stem.is_empty() && !other) {
            return Some([stem, replacement.as_bytes()].concat());
        }
    }
    None
}

fn in_place(options: &Options, mut input: Input, file: &[u8], target: &[u8]) -> i32 {
    let name = options.format.name();
    let target_path = io::path(target);
    if !options.force && sys::stat(&target_path, false).is_ok() {
        match options.format {
            Format::Gzip => warn!("{name}: {} already exists;\tnot overwritten", show(target)),
            Format::Bzip2 => warn!("{name}: Output file {} already exists.", show(target)),
            Format::Xz | Format::Lzma => warn!("{name}: {}: File exists", show(target)),
        }
        return 2;
    }
    let mut result = Vec::new();
    let done =
        if options.decompress { decompress(options, &mut input, &mut result) } else { options.compress(&mut input, &mut result) };
    if let Err(error) = done {
        complain(options, file, &error);
        return 1;
    }
    let stat = sys::stat(&io::path(file), true).ok();
    if let Err(error) = fs::write(&target_path, &result) {
        warn!("{name}: {}: {}", show(target), sys::message(&error));
        return 1;
    }
    if let Some(stat) = stat {
        let _ = sys::chmod(&target_path, true, stat.mode & 0o7777);
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(stat.mtime.max(0).cast_unsigned());
        if let Ok(handle) = fs::File::options().write(true).open(&target_path) {
            let _ = handle.set_modified(modified);
        }
        if options.verbose {
            let (whole, packed) = if options.decompress {
                (result.len() as f64, stat.size as f64)
            } else {
                (stat.size as f64, result.len() as f64)
            };
            let saved = if whole > 0.0 { 100.0 - 100.0 * packed / whole } else { 0.0 };
            let verb = if options.keep { "created" } else { "replaced with" };
            warn!("{}:\t{saved:5.1}% -- {verb} {}", show(file), show(target));
        }
    }
    if !options.keep {
        let _ = fs::remove_file(io::path(file));
    }
    0
}

fn decompress(options: &Options, input: &mut impl Read, output: &mut impl Write) -> std_io::Result<()> {
    let mut head = [0; 6];
    let mut filled = 0;
    while filled < head.len() {
        match io::read_some(input, &mut head[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    let head = &head[..filled];
    let found = Format::detect(head);
    // `xz` reads what either of its formats has; the others only their own.
    let known = found.is_some_and(|found| found.name() == options.format.name());
    let Some(format) = found.filter(|_| known) else {
        if options.force && options.stdout {
            output.write_all(head)?;
            std_io::copy(input, output)?;
            return Ok(());
        }
        let message = if filled == 0 && options.format == Format::Gzip { "unexpected end of file" } else { "not in format" };
        return Err(std_io::Error::other(message));
    };
    let mut reader = format.reader(head.chain(input));
    std_io::copy(&mut reader, output)?;
    Ok(())
}

fn complain(options: &Options, file: &[u8], error: &std_io::Error) {
    let file = show(file);
    let text = error.to_string();
    // A system error does not mean that the data is invalid.
    if error.raw_os_error().is_some() {
        let reason = sys::message(error);
        return match options.format {
            Format::Gzip => warn!("\ngzip: {file}: {reason}"),
            Format::Bzip2 => warn!("bzip2: I/O or other error, bailing out.  Possible reason follows.\nbzip2: {reason}"),
            Format::Xz | Format::Lzma => warn!("xz: {file}: Read error: {reason}"),
        };
    }
    match (options.format, text.as_str()) {
        (Format::Gzip, "not in format") => warn!("\ngzip: {file}: not in gzip format"),
        (Format::Bzip2, "not in format") => warn!("bzip2: {file} is not a bzip2 file."),
        (Format::Xz | Format::Lzma, "not in format") => warn!("xz: {file}: File format not recognized"),
        (Format::Gzip, _) if error.kind() == std_io::ErrorKind::UnexpectedEof || text == "unexpected end of file" => {
            warn!("\ngzip: {file}: unexpected end of file")
        }
        (Format::Gzip, _) => warn!("\ngzip: {file}: invalid compressed data--format violated"),
        (Format::Bzip2, _) => warn!("bzip2: {file}: data integrity (CRC) error in data"),
        (Format::Xz | Format::Lzma, _) if error.kind() == std_io::ErrorKind::UnexpectedEof => {
            warn!("xz: {file}: Unexpected end of input")
        }
        (Format::Xz | Format::Lzma, _) => warn!("xz: {file}: Compressed data is corrupt"),
    }
}

fn stream(options: &Options, out: &mut Out, mut input: Input, file: &[u8]) -> i32 {
    if options.list {
        let mut text = Vec::new();
        let size = if file == b"stdin" { 0 } else { sys::stat(&io::path(file), true).map_or(0, |stat| stat.size) };
        if let Err(error) = decompress(options, &mut input, &mut text) {
            complain(options, file, &error);
            return 1;
        }
        let ratio = if text.is_empty() { 0.0 } else { 100.0 - 100.0 * size as f64 / text.len() as f64 };
        let shown = stripped(options, file).unwrap_or_else(|| file.to_vec());
        out.put(format!("{size:19} {:19} {ratio:5.1}% {}\n", text.len(), show(&shown)).as_bytes());
        return 0;
    }
    let result = if options.test {
        decompress(options, &mut input, &mut std_io::sink())
    } else if options.decompress {
        decompress(options, &mut input, out)
    } else {
        options.compress(&mut input, out)
    };
    match result {
        Ok(()) => 0,
        Err(error) => {
            out.flush();
            complain(options, file, &error);
            1
        }
    }
}
