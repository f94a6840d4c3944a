//! Zlib streams of limited size, in both directions.

use miniz_oxide::DataFormat;
use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, TDEFLStatus, compress_to_output};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use crate::error::Error;

/// Compression level of objects: the lowest, which takes a third of git's time and produces some tenths more bytes.
const LEVEL: u8 = 1;

/// Compresses one object after another.
pub(crate) struct Deflater(Box<CompressorOxide>);

impl Deflater {
    pub(crate) fn new() -> Self {
        let mut compressor = Box::<CompressorOxide>::default();
        compressor.set_format_and_level(DataFormat::Zlib, LEVEL);
        Self(compressor)
    }

    /// Adds a piece to the stream, which ends after the last one.
    pub(crate) fn piece(&mut self, bytes: &[u8], is_last: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let flush = if is_last { TDEFLFlush::Finish } else { TDEFLFlush::None };
        let (status, _) = compress_to_output(&mut self.0, bytes, flush, |piece| {
            out.extend_from_slice(piece);
            true
        });
        match status {
            TDEFLStatus::Done if is_last => self.0.reset(),
            TDEFLStatus::Okay if !is_last => {}
            _ => return Err(Error::damaged("an object cannot be compressed")),
        }
        Ok(())
    }
}

/// Decompresses pieces of a stream into a buffer of the declared size.
pub(crate) struct Inflater {
    decompressor: Box<DecompressorOxide>,
    out: Vec<u8>,
    filled: usize,
}

/// The result of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inflated {
    /// Number of bytes of the piece that belong to the stream.
    pub(crate) consumed: usize,
    /// The stream has ended, or the buffer is full.
    pub(crate) is_over: bool,
}

impl Inflater {
    /// Creates an inflater. The caller has checked the size.
    pub(crate) fn new(size: usize) -> Self {
        Self { decompressor: Box::default(), out: vec![0; size], filled: 0 }
    }

    /// Processes the next piece; `Done` means that the stream ended and its checksum is valid.
    pub(crate) fn piece(&mut self, bytes: &[u8], has_more: bool) -> Result<Inflated, Error> {
        let mut flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        if has_more {
            flags |= inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
        }
        let (status, consumed, written) = decompress(&mut self.decompressor, bytes, &mut self.out, self.filled, flags);
        self.filled += written;
        match status {
            TINFLStatus::Done => Ok(Inflated { consumed, is_over: true }),
            TINFLStatus::NeedsMoreInput if has_more => Ok(Inflated { consumed, is_over: false }),
            TINFLStatus::HasMoreOutput => Err(Error::damaged("an object is longer than its declared size")),
            _ => Err(Error::damaged("an object's compressed data is invalid or truncated")),
        }
    }

    /// Returns the bytes, if there are exactly as many as declared.
    pub(crate) fn finish(self) -> Result<Vec<u8>, Error> {
        if self.filled == self.out.len() {
            Ok(self.out)
        } else {
            Err(Error::damaged("an object is shorter than its declared size"))
        }
    }
}

/// Decompresses at most this many bytes from the beginning of a stream.
pub(crate) fn beginning(bytes: &[u8], most: usize) -> Result<Vec<u8>, Error> {
    let mut out = vec![0; most];
    let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
        | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
        | inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
    let (status, _, written) = decompress(&mut Box::<DecompressorOxide>::default(), bytes, &mut out, 0, flags);
    match status {
        TINFLStatus::Done | TINFLStatus::HasMoreOutput | TINFLStatus::NeedsMoreInput => {
            out.truncate(written);
            Ok(out)
        }
        _ => Err(Error::damaged("an object's compressed data is invalid")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deflated(pieces: &[&[u8]]) -> Vec<u8> {
        let (mut deflater, mut out) = (Deflater::new(), Vec::new());
        let last = pieces.len() - 1;
        for (index, piece) in pieces.iter().enumerate() {
            deflater.piece(piece, index == last, &mut out).unwrap();
        }
        out
    }

    fn inflated(bytes: &[u8], size: usize) -> Result<Vec<u8>, Error> {
        let mut inflater = Inflater::new(size);
        let whole = inflater.piece(bytes, false)?;
        assert!(whole.is_over);
        inflater.finish()
    }

    #[test]
    fn deflated_data_is_inflated() {
        let long: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(inflated(&deflated(&[b""]), 0).unwrap(), b"");
        assert_eq!(inflated(&deflated(&[b"a", b"b", b"c"]), 3).unwrap(), b"abc");
        assert_eq!(inflated(&deflated(&[&long]), long.len()).unwrap(), long);
        assert_eq!(beginning(&deflated(&[&long]), 10).unwrap(), &long[..10]);
    }

    #[test]
    fn a_compressor_restarts_for_each_object() {
        let (mut deflater, mut one, mut other) = (Deflater::new(), Vec::new(), Vec::new());
        deflater.piece(b"same same same", true, &mut one).unwrap();
        deflater.piece(b"same same same", true, &mut other).unwrap();
        assert_eq!(one, other);
    }

    #[test]
    fn false_sizes_and_truncated_streams_are_damage() {
        let bytes = deflated(&[b"hello, hello, hello"]);
        assert!(inflated(&bytes, 18).is_err());
        assert!(inflated(&bytes, 20).is_err());
        assert!(inflated(&bytes[..bytes.len() - 1], 19).is_err());
        let mut wrong = bytes.clone();
        *wrong.last_mut().unwrap() ^= 1;
        assert!(inflated(&wrong, 19).is_err());
    }
}
