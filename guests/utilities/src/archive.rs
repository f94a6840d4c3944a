//! Old and simple archives: `uuencode`, `uudecode`, `ar` and `cpio`. `tar` and `zip` live with the text tools.

pub mod ar;
pub mod cpio;
pub mod uu;
