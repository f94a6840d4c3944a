//! Input by lines, out of big blocks and without copying them.

use std::io::{self, Read};

use crate::program::{BLOCK, Descriptor, buffer};

/// Records, usually lines, of an input.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    delimiter: u8,
    ended: bool,
}

impl Lines<Descriptor> {
    /// Records of a file that end with `delimiter`, with a buffer no larger than the file needs.
    pub fn of_file(input: Descriptor, delimiter: u8) -> Self {
        let buffer = buffer(&input);
        Self { buffer, ..Self::empty(input, delimiter) }
    }
}

impl<R: Read> Lines<R> {
    /// Records of `input` that end with `delimiter`.
    pub fn new(input: R, delimiter: u8) -> Self {
        Self { buffer: vec![0; BLOCK], ..Self::empty(input, delimiter) }
    }

    fn empty(input: R, delimiter: u8) -> Self {
        Self { input, buffer: Vec::new(), start: 0, end: 0, delimiter, ended: false }
    }

    /// Returns the next record, its delimiter included when it has one.
    #[inline]
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(self.delimiter, &self.buffer[searched..self.end]) {
                let line = self.start..searched + at + 1;
                self.start = line.end;
                return Ok(Some(&self.buffer[line]));
            }
            if self.ended {
                let line = self.start..self.end;
                self.start = self.end;
                return Ok((!line.is_empty()).then(|| &self.buffer[line]));
            }
            searched = self.end;
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                searched -= self.start;
                self.end -= self.start;
                self.start = 0;
            }
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let read = crate::io::read_some(&mut self.input, &mut self.buffer[self.end..])?;
        self.ended = read == 0;
        self.end += read;
        Ok(())
    }

    /// Returns the next record without its delimiter, and whether it had one.
    #[inline]
    pub fn next_split(&mut self) -> io::Result<Option<(&[u8], bool)>> {
        let delimiter = self.delimiter;
        Ok(self.next_line()?.map(|line| match line.strip_suffix(&[delimiter]) {
            Some(content) => (content, true),
            None => (line, false),
        }))
    }

    /// Returns the next record without its delimiter.
    #[inline]
    pub fn next_content(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.next_split()?.map(|(content, _)| content))
    }

    /// Returns whether nothing is left.
    pub fn at_end(&mut self) -> io::Result<bool> {
        while self.start == self.end && !self.ended {
            self.start = 0;
            self.end = 0;
            self.fill()?;
        }
        Ok(self.start == self.end)
    }
}
