//! Placeholder tests module, filled below.
