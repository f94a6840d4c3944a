//! The additional programs of a sandbox.

use std::fmt;
use std::sync::Arc;

use super::Sandbox;
use crate::host::{Host, Prepared};
use crate::programs::{Function, Programs, Work, bridge};
use crate::vfs::Scope;
use crate::{CommandCall, Error};

type Action = dyn Fn(&mut CommandCall) -> Result<u8, String> + Send + Sync;

/// The requested programs.
#[derive(Default)]
pub(super) struct Own {
    /// Modules by name; one without bytes is an installed one.
    pub(super) modules: Vec<(String, Option<Vec<u8>>)>,
    /// Functions of the embedding program.
    pub(super) commands: Vec<(String, Arc<Action>)>,
    /// Host programs.
    pub(super) hosts: Vec<String>,
}

impl Own {
    /// Prepares all of them.
    pub(super) fn prepare(self, host: &Host) -> Result<Programs, Error> {
        let mut programs = Programs::default();
        for (name, wasm) in self.modules {
            let wasm = wasm.map_or_else(|| host.installed_program(&name), Ok)?;
            programs.add(&name, host.program(&name, &wasm)?)?;
        }
        for (name, action) in self.commands {
            programs.add(&name, command(&name, action))?;
        }
        bridge::grant(&self.hosts, &mut programs)?;
        Ok(programs)
    }
}

fn command(name: &str, action: Arc<Action>) -> Prepared {
    Prepared::function(Function { name: name.to_owned(), work: Work::Command(action) })
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let modules = self.modules.iter().map(|(name, _)| name);
        f.debug_list().entries(modules.chain(self.commands.iter().map(|(name, _)| name))).finish()
    }
}

impl Sandbox {
    /// Returns the programs of `/usr/local/bin`, by name.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.scope.programs.names()
    }

    /// Returns the same sandbox with an additional command, or with another function for an existing command: programs that are
    /// run through it find it in `/usr/local/bin`.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the name is invalid or belongs to a module.
    pub fn with_command(
        &self,
        name: &str,
        action: impl Fn(&mut CommandCall) -> Result<u8, String> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let mut programs = Programs::clone(&self.scope.programs);
        programs.put_command(name, command(name, Arc::new(action)))?;
        let scope = Scope { programs: Arc::new(programs), ..self.scope.clone() };
        Ok(Self { scope, ..self.clone() })
    }
}
