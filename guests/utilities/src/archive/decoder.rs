//! `sandlite-decoder`: unpacks a stream for a program that has the pieces and cannot unpack, as Python's `bz2` and `lzma`.
//!
//! A conversation over descriptors 0 and 1. The other side sends pieces: a length (32 bits, little endian) and so many
//! bytes; an empty piece is the last. This side sends what comes out in the same form, and three words in
//! place of a length: that it wants the next piece, that the stream has ended (and how many bytes of the last piece lay behind
//! its end), or what is wrong with it. It speaks only when it must, so neither side ever waits for the other in vain.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{self, BufRead, Read, Write};

/// Words in place of a length. Python's side is `guests/python/modules/_sandlite_streams.py`.
const WANT: u32 = u32::MAX;
const END: u32 = u32::MAX - 1;
const WRONG: u32 = u32::MAX - 2;

/// A piece longer than this is invalid.
const LONGEST: usize = 64 << 20;

/// Runs `sandlite-decoder FORMAT`.
pub fn decoder(args: Vec<OsString>) -> i32 {
    let format = args.get(1).map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    if !matches!(format.as_str(), "bz2" | "xz" | "lzma") {
        warn!("sandlite-decoder: the format is one of `bz2`, `xz` and `lzma`, and pieces of it come on standard input");
        return 2;
    }
    i32::from(converse(&format, io::stdin(), io::stdout()).is_err())
}

fn converse(format: &str, input: impl Read, output: impl Write) -> io::Result<()> {
    let output = RefCell::new(output);
    let mut pieces = Pieces { input, output: &output, piece: Vec::new(), at: 0, last: false, gone: false };
    match unpack(format, &mut pieces, &output) {
        Ok(()) => say(&output, END, &number(pieces.piece.len() - pieces.at)),
        Err(_) if pieces.gone => Ok(()),
        Err(error) => {
            let text = error.to_string();
            say(&output, WRONG, &[&number(text.len())[..], text.as_bytes()].concat())
        }
    }
}

fn unpack<R: Read, W: Write>(format: &str, pieces: &mut Pieces<'_, R, W>, output: &RefCell<W>) -> io::Result<()> {
    let mut decoder: Box<dyn Read + '_> = match format {
        "bz2" => Box::new(bzip2::bufread::BzDecoder::new(pieces)),
        "xz" => Box::new(lzma_rust2::XzReader::new(pieces, false)),
        _ => Box::new(lzma_rust2::LzmaReader::new_mem_limit(pieces, u32::MAX, None)?),
    };
    let mut buffer = vec![0; 64 << 10];
    loop {
        match decoder.read(&mut buffer)? {
            0 => return Ok(()),
            count => say(output, u32::from_le_bytes(number(count)), &buffer[..count])?,
        }
    }
}

fn say(output: &RefCell<impl Write>, word: u32, rest: &[u8]) -> io::Result<()> {
    let mut output = output.borrow_mut();
    output.write_all(&[&word.to_le_bytes()[..], rest].concat())?;
    output.flush()
}

fn number(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or_default().to_le_bytes()
}

/// The pieces as one stream that requests the next when it has none.
struct Pieces<'a, R, W> {
    input: R,
    output: &'a RefCell<W>,
    piece: Vec<u8>,
    at: usize,
    last: bool,
    /// The other side has ended, so the error cannot be reported.
    gone: bool,
}

impl<R: Read, W: Write> Pieces<'_, R, W> {
    fn next(&mut self) -> io::Result<()> {
        say(self.output, WANT, &[])?;
        let mut length = [0; 4];
        if let Err(error) = self.input.read_exact(&mut length) {
            self.gone = true;
            return Err(error);
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(io::Error::other("the piece is too long"));
        }
        self.piece.resize(length, 0);
        self.input.read_exact(&mut self.piece)?;
        self.at = 0;
        self.last = length == 0;
        Ok(())
    }
}

impl<R: Read, W: Write> BufRead for Pieces<'_, R, W> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.piece.len() && !self.last {
            self.next()?;
        }
        Ok(&self.piece[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }
}

impl<R: Read, W: Write> Read for Pieces<'_, R, W> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result for `stream`, sent in pieces of `size` bytes.
    fn said(format: &str, stream: &[u8], size: usize) -> Vec<u8> {
        let mut input = Vec::new();
        for piece in stream.chunks(size).chain([&[][..]]) {
            input.extend_from_slice(&number(piece.len()));
            input.extend_from_slice(piece);
        }
        let mut output = Vec::new();
        converse(format, input.as_slice(), &mut output).unwrap();
        output
    }

    /// Returns the bytes that come out, and the last word with its number.
    fn heard(answer: &[u8]) -> (Vec<u8>, u32, u32) {
        let word = |at: usize| u32::from_le_bytes(answer[at..at + 4].try_into().unwrap());
        let (mut out, mut at) = (Vec::new(), 0);
        loop {
            match word(at) {
                WANT => at += 4,
                last @ (END | WRONG) => return (out, last, word(at + 4)),
                length => {
                    let end = at + 4 + length as usize;
                    out.extend_from_slice(&answer[at + 4..end]);
                    at = end;
                }
            }
        }
    }

    fn packed(text: &[u8]) -> [(&'static str, Vec<u8>); 2] {
        use crate::archive::compress::Format;
        let pack = |format: Format| {
            let mut packed = Vec::new();
            format.compress(&mut &text[..], &mut packed, 6).unwrap();
            packed
        };
        [("bz2", pack(Format::Bzip2)), ("xz", pack(Format::Xz))]
    }

    #[test]
    fn pieces_of_any_size_come_out_whole() {
        let text = "all work and no play ".repeat(10_000).into_bytes();
        for (format, stream) in packed(&text) {
            for size in [1, 7, stream.len(), stream.len() + 1] {
                assert_eq!(heard(&said(format, &stream, size)), (text.clone(), END, 0), "{format} by {size}");
            }
        }
    }

    #[test]
    fn what_lies_behind_the_end_is_counted() {
        for (format, mut stream) in packed(b"text") {
            stream.extend_from_slice(b"more");
            assert_eq!(heard(&said(format, &stream, stream.len())), (b"text".to_vec(), END, 4), "{format}");
        }
    }

    #[test]
    fn damage_is_reported_without_a_panic() {
        for (format, stream) in packed(&b"some text, and some more of it".repeat(50)) {
            for at in 0..stream.len() {
                let mut damaged = stream.clone();
                damaged[at] ^= 0x55;
                heard(&said(format, &damaged, 100));
                assert_eq!(heard(&said(format, &stream[..at], 100)).1, WRONG, "{format} cut at {at}");
            }
            assert_eq!(heard(&said(format, b"no such stream", 100)).1, WRONG);
        }
        assert_eq!(heard(&said("lzma", &[0xff; 40], 100)).1, WRONG);
    }
}
