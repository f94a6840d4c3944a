//! The directories that a module of the owner has open from its start.

use abi::Errno;
use sqlite_fs::path::Last;
use sqlite_fs::{FileType, Volume as _};

use super::State;
use super::descriptor::{HeldNode, Object, OpenFile, ROOT_DESCRIPTOR};
use crate::vfs::ROOT_NODE;
use crate::wasi::foreign::rights;

/// Which files modules of the owner can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Roots {
    /// All that the sandbox has, as its other programs do.
    #[default]
    Whole,
    /// What is below these directories: the names that a module knows them by, and where they are in the sandbox.
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

/// Gives a module of the owner its descriptors: those that it inherits, with their rights, and from 3 on its directories.
pub(super) fn preopen(state: &mut State) -> Result<(), Errno> {
    for fd in state.descriptors.numbers() {
        let grant = rights::inherited(state.descriptors.get(fd)?);
        *state.descriptors.grant_mut(fd)? = grant;
    }
    for (fd, (name, path)) in (ROOT_DESCRIPTOR..).zip(state.job.roots.list()) {
        let view = &state.job.view;
        let node = match view.find(ROOT_NODE, &path, Last::Follow) {
            Ok((node, FileType::Directory)) => node,
            _ => return Err(Errno::NOTDIR),
        };
        let file = OpenFile::new(Object::Directory(HeldNode::new(view, node)), true, false, false);
        state.descriptors.set(fd, file, rights::preopened(&name))?;
    }
    Ok(())
}
