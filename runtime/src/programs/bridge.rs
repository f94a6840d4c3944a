//! The host bridge: programs of this machine that a sandbox may run, granted by name.
//!
//! A call is lent a tree of the sandbox: it is copied into a private directory, passed to the real program in a jail, and changes
//! are copied back as part of the run. Nothing is granted by default, and nothing at all if the jail does not work.

mod call;
mod jail;

use std::path::PathBuf;
use std::sync::Arc;

use crate::Error;
use crate::host::Prepared;
use crate::programs::{Function, Programs, Work, check_name};
pub(super) use call::run;

/// The program that runs any granted one on a given tree: `host [-p PATH] COMMAND [ARG]…`.
const HOST: &str = "host";

/// The granted programs.
#[derive(Debug)]
pub(crate) struct Bridge {
    jail: jail::Tools,
    programs: Vec<(String, PathBuf)>,
}

impl Bridge {
    /// Finds the programs and tests the jail.
    fn new(names: &[String]) -> Result<Self, Error> {
        let refused = |reason: String| Error::HostBridge { reason };
        let mut programs = Vec::new();
        for name in names {
            check_name(name)?;
            let path = jail::find(name).map_err(|reason| refused(format!("cannot grant `{name}`: {reason}")))?;
            programs.push((name.clone(), path));
        }
        let jail = jail::Tools::find().map_err(refused)?;
        jail.try_out().map_err(refused)?;
        Ok(Self { jail, programs })
    }

    /// Returns the real program of a granted name.
    fn program(&self, name: &str) -> Option<&PathBuf> {
        self.programs.iter().find(|(known, _)| known == name).map(|(_, path)| path)
    }
}

/// Adds the granted programs to those of a sandbox; without any there is no bridge.
///
/// # Errors
///
/// Returns [`Error::HostBridge`] if the jail does not work here or a program cannot be found.
pub(crate) fn grant(names: &[String], programs: &mut Programs) -> Result<(), Error> {
    if names.is_empty() {
        return Ok(());
    }
    let bridge = Arc::new(Bridge::new(names)?);
    let function = |name: &str, work| Prepared::function(Function { name: name.to_owned(), work });
    for (name, _) in &bridge.programs {
        programs.add(name, function(name, Work::Host { bridge: Arc::clone(&bridge), program: Some(name.clone()) }))?;
    }
    programs.add(HOST, function(HOST, Work::Host { bridge, program: None }))
}
