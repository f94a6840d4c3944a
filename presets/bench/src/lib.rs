//! What the presets cost: the same work under each of them, side by side in one run.
//!
//! `cargo xtask bench presets` writes the report into `docs/`; `sandlite bench` prints it for the machine it runs on.
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
