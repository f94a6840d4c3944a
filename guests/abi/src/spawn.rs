//! The description of a new process, and its flat encoding: one buffer, so that the host copies it out of guest memory once.
//!
//! Layout, little-endian: `flags u32`, `path`, `cwd`, `argc u32` + arguments, `envc u32` + `NAME=value` strings,
//! `actions u32` + `(kind u32, fd u32, from u32)`. A string is `length u32` + bytes.

use alloc::vec::Vec;

/// The child becomes the leader of a new process group.
pub const NEW_GROUP: u32 = 1;

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// [`NEW_GROUP`] or 0.
    pub flags: u32,
    /// Absolute path of the program; the host looks no further.
    pub path: Vec<u8>,
    /// Working directory of the child.
    pub cwd: Vec<u8>,
    /// Arguments, the program's own name first.
    pub args: Vec<Vec<u8>>,
    /// Environment as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Done in order on the child's copy of the caller's descriptor table, before close-on-exec.
    pub actions: Vec<Action>,
}

/// One change to the child's descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make `fd` another name of what `from` names.
    Dup {
        /// The source.
        from: u32,
        /// The descriptor to make; closed first if open.
        fd: u32,
    },
    /// Close `fd`; closing a closed one is not an error.
    Close {
        /// The descriptor to close.
        fd: u32,
    },
}

impl Request {
    /// Returns the flat encoding.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        put_u32(&mut out, self.flags);
        put_bytes(&mut out, &self.path);
        put_bytes(&mut out, &self.cwd);
        for list in [&self.args, &self.env] {
            put_u32(&mut out, list.len() as u32);
            list.iter().for_each(|item| put_bytes(&mut out, item));
        }
        put_u32(&mut out, self.actions.len() as u32);
        for action in &self.actions {
            let (kind, fd, from) = match *action {
                Action::Dup { from, fd } => (0, fd, from),
                Action::Close { fd } => (1, fd, 0),
            };
            put_u32(&mut out, kind);
            put_u32(&mut out, fd);
            put_u32(&mut out, from);
        }
        out
    }

    /// Returns the request behind an encoding; `None` when it is cut short, has something left over, or names an unknown action.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let flags = reader.u32()?;
        let path = reader.bytes()?;
        let cwd = reader.bytes()?;
        let args = reader.list(Reader::bytes)?;
        let env = reader.list(Reader::bytes)?;
        let actions = reader.list(|reader| {
            let (kind, fd, from) = (reader.u32()?, reader.u32()?, reader.u32()?);
            match kind {
                0 => Some(Action::Dup { from, fd }),
                1 => Some(Action::Close { fd }),
                _ => None,
            }
        })?;
        reader.0.is_empty().then_some(Self { flags, path, cwd, args, env, actions })
    }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u32(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*head))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head.to_vec())
    }

    // Grows as items arrive: a count that lies allocates nothing.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn request() -> Request {
        Request {
            flags: NEW_GROUP,
            path: b"/bin/tr".to_vec(),
            cwd: b"/home/user".to_vec(),
            args: vec![b"tr".to_vec(), b"a-z".to_vec(), Vec::new()],
            env: vec![b"HOME=/home/user".to_vec()],
            actions: vec![Action::Dup { from: 11, fd: 0 }, Action::Close { fd: 11 }],
        }
    }

    #[test]
    fn a_request_survives_the_wire() {
        assert_eq!(Request::decode(&request().encode()), Some(request()));
    }

    #[test]
    fn every_prefix_is_refused() {
        let bytes = request().encode();
        for length in 0..bytes.len() {
            assert_eq!(Request::decode(&bytes[..length]), None, "prefix of {length} bytes");
        }
    }

    #[test]
    fn a_count_that_lies_is_refused() {
        let mut bytes = vec![0; 12];
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Request::decode(&bytes), None);
    }
}
