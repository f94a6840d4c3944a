//! The preopened directories of a custom module.

use std::sync::Arc;

use abi::Errno;
use sqlite_fs::path::Last;
use sqlite_fs::{FileType, Volume as _};

use super::State;
use super::descriptor::{HeldNode, Object, OpenFile, ROOT_DESCRIPTOR};
use crate::vfs::ROOT_NODE;
use crate::wasi::foreign::rights;

/// The files that custom modules can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Roots {
    /// All files of the sandbox, like its other programs.
    #[default]
    Whole,
    /// Only files below these directories: the module's names for them, and their paths in the sandbox.
    Only(Vec<(String, String)>),
}

impl Roots {
    fn list(&self) -> Vec<(String, String)> {
        match self {
            Self::Whole => vec![("/".to_owned(), "/".to_owned())],
            Self::Only(directories) => directories.clone(),
        }
    }
}

/// Sets the descriptors of a custom module: the inherited ones with their rights, and its directories from 3 on.
pub(super) fn preopen(state: &mut State) -> Result<(), Errno> {
    for fd in state.descriptors.numbers() {
        let grant = rights::inherited(state.descriptors.get(fd)?);
        *state.descriptors.grant_mut(fd)? = grant;
    }
    for (fd, (name, directory)) in (ROOT_DESCRIPTOR..).zip(directories(state)?) {
        state.descriptors.set(fd, directory, rights::preopened(&name))?;
    }
    Ok(())
}

/// Opens the directories of a custom module: its name for each, and the directory.
pub(crate) fn directories(state: &State) -> Result<Vec<(String, Arc<OpenFile>)>, Errno> {
    let view = &state.job.view;
    let open = |(name, path): (String, String)| match view.find(ROOT_NODE, &path, Last::Follow) {
        Ok((node, FileType::Directory)) => {
            Ok((name, OpenFile::new(Object::Directory(HeldNode::new(view, node)), true, false, false)))
        }
        _ => Err(Errno::NOTDIR),
    };
    state.job.roots.list().into_iter().map(open).collect()
}
