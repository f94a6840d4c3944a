//! Git repositories and bundles: reads untrusted ones and writes new ones.
//!
//! ```no_run
//! let repository = git::Repository::open("/srv/project".as_ref(), git::Bounds::default())?;
//! let commit = repository.commit(repository.resolve("main")?)?;
//! for entry in repository.tree(commit.tree)? {
//!     println!("{} {}", entry.id, entry.name);
//! }
//! # Ok::<(), git::Error>(())
//! ```
//!
//! All input is treated as hostile: each object's hash is compared, sizes are known before memory is allocated, delta chains,
//! trees and the total work are limited, and no path leads out of the repository. Knows nothing about sandboxes, versions or
//! wasm.

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

mod bundle;
mod commit;
mod directory;
mod error;
mod id;
mod names;
mod pack;
mod refs;
mod repository;
mod tree;
mod zlib;

pub use bundle::write as write_bundle;
pub use commit::{Commit, Signature, Tag};
pub use directory::{NewRepository, Reference};
pub use error::Error;
pub use id::{Id, Kind};
pub use names::{is_dot_git, is_dot_gitmodules, reference_name};
pub use pack::write::{PackWriter, Packed};
pub use repository::{Bounds, Repository};
pub use tree::{Mode, TreeEntry, encode_tree};
