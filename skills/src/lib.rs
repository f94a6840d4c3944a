//! Skills: packages that an agent can find, read and run, with JSON in, JSON out and files.
//!
//! A skill is a directory or a zip file with a `SKILL.md`: YAML front matter and instructions. The reading order is its journey: [`Package`]
//! reads and checks it, [`lint`] and [`scan`] report its problems, [`Catalog`] stores its versions, [`Skills`] runs it in a
//! sandbox.
//!
//! Knows nothing about terminals and HTTP.
//!
//! ```no_run
//! use sandlite_skills::{Catalog, Package, Request, Skills};
//! # let host = runtime::Host::builder().build()?;
//! let skills = Skills::new(Catalog::open("skills".as_ref())?, &host, runtime::Preset::Normal.limits());
//! skills.push(&Package::from_directory("word-counter".as_ref())?, Default::default())?;
//! let result = skills.run(Request::new("word-counter").input(r#"{"text": "to be or not to be"}"#))?;
//! println!("{}", result.output.unwrap_or_default());
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

pub mod actions;
mod archive;
mod bounds;
mod catalog;
mod diff;
mod duration;
mod error;
mod front_matter;
mod lint;
mod manifest;
mod package;
mod requirements;
mod run;
mod scan;
mod template;
mod version;

pub use archive::pack;
pub use bounds::Bounds;
pub use catalog::{Catalog, Listed, Pushed, VersionRow};
pub use diff::{FileDiff, FileStatus, Line, LineKind, SkillDiff};
pub use duration::{format_duration, parse_duration};
pub use error::Error;
pub use lint::{CHECKS, Check, Finding, Severity, checks, lint};
pub use manifest::{Language, Manifest, Mode, Resources, is_name, read_front_matter};
pub use package::{File, Package};
pub use requirements::Needs;
pub use run::{Artifact, Request, RunResult, Skills, Status};
pub use scan::{scan, scanned_text};
pub use template::{Template, template};
pub use version::{is_version, next_patch, with_version};
