//! `sandlite fs`: access to the sandbox's files without running a guest.

mod copy;
mod look;

pub(crate) use copy::{done, get, tree_done};
pub(crate) use look::{Entry, fact, letters, usage};

use runtime::{HOME, Sandbox, absolute};

use crate::args::{Files, FilesVerb, Global};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Files, printer: &Printer) -> anyhow::Result<Code> {
    let sandbox = match &args.verb {
        FilesVerb::Put { .. } | FilesVerb::Mkdir { .. } => super::stored(global, printer)?,
        FilesVerb::Rm { .. } | FilesVerb::Mv { .. } | FilesVerb::Cp { .. } => super::existing_bound(global, printer)?,
        _ => super::looking_bound(global, printer)?,
    };
    Ok(super::answered(act(&sandbox, &args.verb, printer).map(|()| Code::Success), printer))
}

fn act(sandbox: &Sandbox, verb: &FilesVerb, printer: &Printer) -> anyhow::Result<()> {
    match verb {
        FilesVerb::Ls { long, path } => look::ls(sandbox, &guest(path), *long, printer),
        FilesVerb::Cat { paths } => paths.iter().try_for_each(|path| look::cat(sandbox, &guest(path), printer)),
        FilesVerb::Stat { path } => look::stat(sandbox, &guest(path), printer),
        FilesVerb::Find(find) => look::find(sandbox, find, printer),
        FilesVerb::Du { path } => look::du(sandbox, &guest(path), printer),
        FilesVerb::Tree { path } => look::tree(sandbox, &guest(path), printer),
        FilesVerb::Put { host, guest } => copy::put(sandbox, host, guest.as_deref(), printer),
        FilesVerb::Get { guest: path, host } => copy::get(sandbox, &guest(path), host.as_deref(), printer),
        FilesVerb::Rm { recursive, paths } => copy::rm(sandbox, *recursive, paths, printer),
        FilesVerb::Mkdir { paths } => copy::mkdir(sandbox, paths, printer),
        FilesVerb::Mv { from, to } => copy::mv(sandbox, &guest(from), &guest(to), printer),
        FilesVerb::Cp { recursive, from, to } => copy::cp(sandbox, *recursive, from, to, printer),
    }
}

/// Returns an absolute path in the sandbox without `.` components.
pub(super) fn guest(path: &str) -> String {
    let whole = absolute(HOME, path);
    let names: Vec<&str> = whole.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    format!("/{}", names.join("/"))
}

/// Returns the last component of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns a path below a directory.
fn below(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_at_the_root_or_at_home() {
        assert_eq!(guest("/a//b/./c/"), "/a/b/c");
        assert_eq!(guest("."), "/home/user");
        assert_eq!(guest("notes/x"), "/home/user/notes/x");
        assert_eq!(guest("/"), "/");
        assert_eq!(guest("../../etc"), "/home/user/../../etc");
    }
}
