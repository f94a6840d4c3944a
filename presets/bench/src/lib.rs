//! The overhead of the presets: the same work under each preset, compared in one run.
//!
//! `cargo xtask bench presets` writes the report to `docs/`; `sandlite bench` prints it for the current machine.
//!
//! ```no_run
//! let report = sandlite_bench::presets(sandlite_bench::Effort::Quick, |step| eprintln!("{step}"))?;
//! println!("{}", report.table());
//! # Ok::<(), runtime::Error>(())
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

mod chart;
mod measure;
mod report;
mod targets;
mod workloads;

pub use measure::{Effort, presets};
pub use report::{Cell, Report, Row};
pub use targets::{Target, targets};
