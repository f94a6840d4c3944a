//! The state of a running shell: variables, options, traps, jobs, output.

pub mod assign;
pub mod associative;
pub mod computed;
pub mod hash;
pub mod history;
pub mod jobs;
pub mod options;
pub mod output;
pub mod signals;
pub mod variables;
