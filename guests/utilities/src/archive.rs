//! Programs that pack and unpack.

pub mod ar;
pub mod compress;
pub mod cpio;
pub mod decoder;
pub mod tar;
pub mod uu;
pub mod zip;
