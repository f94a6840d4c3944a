//! Moving long output to Python without holding it twice.

#![expect(unsafe_code, reason = "the safe constructors of `bytes` copy all of a slice, or fill the object with zeros first")]

use std::ptr;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Size of the pieces that are moved, and of the largest output that is copied at once.
const PIECE: usize = 1 << 20;

/// Converts bytes to a Python object, releasing their memory piece by piece from the end.
pub(crate) fn moved(py: Python<'_>, mut bytes: Vec<u8>) -> PyResult<Bound<'_, PyBytes>> {
    if bytes.len() <= PIECE {
        return Ok(PyBytes::new(py, &bytes));
    }
    let length = ffi::Py_ssize_t::try_from(bytes.len())?;
    // SAFETY: without content it returns a new object of this length, or null with an exception set.
    let object = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyBytes_FromStringAndSize(ptr::null(), length)) }?;
    // SAFETY: the object is a `bytes`, which owns its content as long as it lives.
    let content = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast::<u8>();
    while let Some(last) = bytes.len().checked_sub(1) {
        let start = last / PIECE * PIECE;
        let piece = bytes.get(start..).unwrap_or_default();
        // SAFETY: the content has the length of all pieces together, and no other code has the object yet.
        unsafe { ptr::copy_nonoverlapping(piece.as_ptr(), content.add(start), piece.len()) };
        bytes.truncate(start);
        bytes.shrink_to_fit();
    }
    Ok(object.cast_into()?)
}
