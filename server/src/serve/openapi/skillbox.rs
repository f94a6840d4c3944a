//! Skillbox's routes, for the document.

use super::Route;

/// The routes of `skillbox.rs`.
pub(super) static SKILLBOX_ROUTES: &[Route] = &[];
