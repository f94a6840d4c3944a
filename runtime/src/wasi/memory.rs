//! Guest memory. All accesses go through this file: every pointer is checked, every length bounded (R4).

use abi::Errno;

/// Maximum size of a single read or write, which bounds the work of one guest call between two checks of the clock.
pub(super) const MAX_IO_BYTES: u32 = 1 << 20;

/// Maximum number of buffers of one scattered read or write, as on Linux.
const MAX_BUFFERS: u32 = 1024;

/// Maximum length of a path, as on Linux.
pub(super) const MAX_PATH_BYTES: u32 = 4096;

/// A guest's linear memory during one call.
pub(crate) struct GuestMemory<'a>(&'a mut [u8]);

/// One buffer of a scattered read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) pointer: u32,
    pub(super) length: u32,
}

impl<'a> GuestMemory<'a> {
    /// Creates the memory of these bytes.
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes at a pointer.
    pub(super) fn bytes(&self, pointer: u32, length: u32) -> Result<&[u8], Errno> {
        let start = pointer as usize;
        let end = start.checked_add(length as usize).ok_or(Errno::FAULT)?;
        self.0.get(start..end).ok_or(Errno::FAULT)
    }

    /// Returns the bytes at a pointer, mutably.
    pub(super) fn bytes_mut(&mut self, pointer: u32, length: u32) -> Result<&mut [u8], Errno> {
        let start = pointer as usize;
        let end = start.checked_add(length as usize).ok_or(Errno::FAULT)?;
        self.0.get_mut(start..end).ok_or(Errno::FAULT)
    }

    /// Returns a copy of the bytes at a pointer, if there are no more than `max`.
    pub(super) fn copy(&self, pointer: u32, length: u32, max: u32) -> Result<Vec<u8>, Errno> {
        if length > max {
            return Err(Errno::TOOBIG);
        }
        Ok(self.bytes(pointer, length)?.to_vec())
    }

    /// Returns a path: at most [`MAX_PATH_BYTES`], UTF-8, without zero bytes.
    pub(super) fn path(&self, pointer: u32, length: u32) -> Result<String, Errno> {
        if length > MAX_PATH_BYTES {
            return Err(Errno::NAMETOOLONG);
        }
        let text = String::from_utf8(self.bytes(pointer, length)?.to_vec()).map_err(|_| Errno::ILSEQ)?;
        if text.contains('\0') { Err(Errno::INVAL) } else { Ok(text) }
    }

    /// Writes bytes at a pointer.
    pub(super) fn write(&mut self, pointer: u32, bytes: &[u8]) -> Result<(), Errno> {
        let length = u32::try_from(bytes.len()).map_err(|_| Errno::FAULT)?;
        self.bytes_mut(pointer, length)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes a `u32` at a pointer.
    pub(super) fn write_u32(&mut self, pointer: u32, value: u32) -> Result<(), Errno> {
        self.write(pointer, &value.to_le_bytes())
    }

    /// Writes a `u64` at a pointer.
    pub(super) fn write_u64(&mut self, pointer: u32, value: u64) -> Result<(), Errno> {
        self.write(pointer, &value.to_le_bytes())
    }

    /// Returns the buffers of a scattered read or write, each inside the memory.
    pub(super) fn buffers(&self, pointer: u32, count: u32) -> Result<Vec<Buffer>, Errno> {
        if count > MAX_BUFFERS {
            return Err(Errno::INVAL);
        }
        let table = self.bytes(pointer, count.checked_mul(8).ok_or(Errno::FAULT)?)?;
        let mut buffers = Vec::with_capacity(count as usize);
        for entry in table.as_chunks::<8>().0 {
            let [a, b, c, d, e, f, g, h] = *entry;
            let buffer = Buffer { pointer: u32::from_le_bytes([a, b, c, d]), length: u32::from_le_bytes([e, f, g, h]) };
            self.bytes(buffer.pointer, buffer.length)?;
            buffers.push(buffer);
        }
        Ok(buffers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // W01–W06: bad pointers are an errno, never a panic.
    #[test]
    fn wild_pointers_are_refused() {
        let mut bytes = [0; 64];
        let mut memory = GuestMemory::new(&mut bytes);
        for (pointer, length) in [(64, 1), (u32::MAX, 1), (0, 65), (1, u32::MAX), (u32::MAX, u32::MAX)] {
            assert_eq!(memory.bytes(pointer, length), Err(Errno::FAULT), "{pointer}+{length}");
        }
        assert_eq!(memory.write_u64(60, 0), Err(Errno::FAULT));
        assert_eq!(memory.bytes(64, 0), Ok(&[][..]));
    }

    #[test]
    fn invalid_buffers_are_rejected() {
        let mut bytes = [0xff; 64];
        let memory = GuestMemory::new(&mut bytes);
        assert_eq!(memory.buffers(0, 1), Err(Errno::FAULT));
        assert_eq!(memory.buffers(0, u32::MAX), Err(Errno::INVAL));
        assert_eq!(memory.buffers(60, 1), Err(Errno::FAULT));
    }

    #[test]
    fn a_path_is_short_utf8_without_zeros() {
        let mut bytes = *b"ok\0\xff";
        let memory = GuestMemory::new(&mut bytes);
        assert_eq!(memory.path(0, 2), Ok("ok".to_owned()));
        assert_eq!(memory.path(0, 3), Err(Errno::INVAL));
        assert_eq!(memory.path(3, 1), Err(Errno::ILSEQ));
        assert_eq!(memory.path(0, 5000), Err(Errno::NAMETOOLONG));
    }
}
