//! Sandlite's limits as data: `strict.toml`, `normal.toml` and `permissive.toml`, and the types that read them.
//!
//! Defaults are never hard-coded, and nothing here acts: the runtime enforces the [`Limits`]. Zero is an error everywhere and
//! never means "unlimited"; a caller can only tighten the limits of a preset.
//!
//! ```
//! use sandlite_presets::{Limits, Overrides, Preset};
//!
//! let limits = Preset::Strict.limits();
//! let tighter = limits.tighten(&Overrides { wall: Some("1 s".parse()?), ..Overrides::default() })?;
//! assert!(tighter.within(&limits));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::cast_possible_truncation,
        clippy::missing_errors_doc
    )
)]

mod amount;
mod limits;
mod policy;
mod preset;

pub use amount::{Amount, AmountError, ByteSize, WallTime};
pub use limits::{LimitError, LimitName, LimitValue, Limits, Overrides};
pub use policy::{Access, Labels, Policy, PolicyError, Rule, is_label};
pub use preset::{Preset, UnknownPreset};
