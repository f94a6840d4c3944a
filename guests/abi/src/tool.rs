//! Why a host tool gave no result.

use alloc::vec::Vec;

/// The error of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFailure {
    /// `unknown`: there is no such tool; `invalid`: it does not take these arguments; `failed`: it could not do it.
    pub kind: Vec<u8>,
    /// The complaint.
    pub message: Vec<u8>,
}

impl ToolFailure {
    /// Reads the kind, a line feed and the complaint.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Self {
        let mut parts = bytes.splitn(2, |&byte| byte == b'\n');
        let mut part = || parts.next().unwrap_or_default().to_vec();
        Self { kind: part(), message: part() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_kind() {
        let failure = ToolFailure::decode(b"failed\nno\nidea");
        assert_eq!((failure.kind.as_slice(), failure.message.as_slice()), (&b"failed"[..], &b"no\nidea"[..]));
        assert_eq!(ToolFailure::decode(b""), ToolFailure::default());
    }
}
