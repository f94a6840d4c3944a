//! `find`: walking directories; `parse` reads the expression, `eval` decides and acts.

mod eval;
mod parse;
mod printf;

use std::ffi::OsString;
use std::fs;

use common::getopt;

use crate::files::basename::last_component;
use crate::io::{self, show};

/// A file that was found.
pub(crate) struct Entry {
    path: Vec<u8>,
    /// Length of the starting point in `path`.
    start: usize,
    depth: usize,
    /// Metadata, following a link where the options say so.
    stat: std::cell::OnceCell<Option<sys::Stat>>,
    /// Type bits of the mode, known without metadata.
    kind: u32,
    follow: bool,
}

impl Entry {
    fn stat(&self) -> Option<&sys::Stat> {
        self.stat.get_or_init(|| stat(&self.path, self.follow).ok()).as_ref()
    }

    fn name(&self) -> &[u8] {
        last_component(&self.path)
    }
}

fn stat(path: &[u8], follow: bool) -> std::io::Result<sys::Stat> {
    let path = io::path(path);
    if follow { sys::stat(&path, true).or_else(|_| sys::stat(&path, false)) } else { sys::stat(&path, false) }
}

/// Runs `find`.
pub fn find(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let mut options = parse::Options::new();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        match arg.as_slice() {
            b"-P" => (options.follow, options.follow_operands) = (false, false),
            b"-L" => (options.follow, options.follow_operands) = (true, true),
            b"-H" => (options.follow, options.follow_operands) = (false, true),
            b"--" => {
                at += 1;
                break;
            }
            b"-D" => at += 1,
            word if word.starts_with(b"-O") && word.len() > 2 => {}
            b"--version" | b"-version" => {
                let mut out = io::Out::new("find", 1);
                out.put(b"find (GNU findutils) 4.9.0\n");
                out.flush();
                return 0;
            }
            b"--help" | b"-help" => {
                let mut out = io::Out::new("find", 1);
                out.put(b"Usage: find [-H] [-L] [-P] [-Olevel] [-D debugopts] [path...] [expression]\n");
                out.flush();
                return 0;
            }
            _ => break,
        }
        at += 1;
    }
    let mut starts: Vec<Vec<u8>> = Vec::new();
    let is_expression = |arg: &[u8]| arg.starts_with(b"-") && arg.len() > 1 || matches!(arg, b"(" | b"!");
    while let Some(arg) = args.get(at).filter(|arg| !is_expression(arg)) {
        starts.push(arg.clone());
        at += 1;
    }
    if starts.is_empty() {
        starts.push(b".".to_vec());
    }
    let expr = match parse::parse(&args[at..], &mut options) {
        Ok(expr) => expr,
        Err(message) => {
            warn!("find: {message}");
            return 1;
        }
    };
    let mut eval = match eval::Eval::new(&options) {
        Ok(eval) => eval,
        Err(message) => {
            warn!("find: {message}");
            return 1;
        }
    };
    for start in starts {
        let follow = options.follow || options.follow_operands;
        let stat = match stat(&start, follow) {
            Ok(stat) => stat,
            Err(error) => {
                eval.complain(&format!("‘{}’: {}", show(&start), sys::message(&error)));
                continue;
            }
        };
        let entry = Entry {
            start: start.len(),
            path: start,
            depth: 0,
            stat: std::cell::OnceCell::from(Some(stat)),
            kind: stat.kind(),
            follow,
        };
        let device = stat.dev;
        visit(&entry, &expr, &mut eval, device, &mut Vec::new());
        if eval.quit {
            break;
        }
    }
    eval.finish()
}

fn visit(entry: &Entry, expr: &parse::Expr, eval: &mut eval::Eval<'_>, device: u64, above: &mut Vec<(u64, u64)>) {
    let options = eval.options;
    let shown = entry.depth >= options.min_depth;
    let directory = entry.kind == sys::stat::S_IFDIR;
    if directory
        && options.follow
        && let Some(stat) = entry.stat()
        && above.contains(&(stat.dev, stat.ino))
    {
        let text = format!(
            "File system loop detected; ‘{}’ is part of the same file system loop as ‘{}’.",
            show(&entry.path),
            show(&entry.path[..entry.start])
        );
        return eval.complain(&text);
    }
    eval.prune = false;
    if shown && !(directory && options.depth_first) {
        eval.test(expr, entry);
        if eval.quit {
            return;
        }
    }
    if directory {
        let pruned = eval.prune && !options.depth_first;
        let foreign = options.one_device && entry.stat().is_some_and(|stat| stat.dev != device);
        if !pruned && entry.depth < options.max_depth && !foreign {
            descend(entry, expr, eval, device, above);
            if eval.quit {
                return;
            }
        }
        if shown && options.depth_first {
            eval.test(expr, entry);
        }
    }
}

fn descend(entry: &Entry, expr: &parse::Expr, eval: &mut eval::Eval<'_>, device: u64, above: &mut Vec<(u64, u64)>) {
    let options = eval.options;
    if options.follow
        && let Some(stat) = entry.stat()
    {
        above.push((stat.dev, stat.ino));
    }
    let children = match fs::read_dir(io::path(&entry.path)) {
        Ok(children) => children,
        Err(error) => {
            eval.complain(&format!("‘{}’: {}", show(&entry.path), sys::message(&error)));
            if options.follow {
                above.pop();
            }
            return;
        }
    };
    let mut names: Vec<(Vec<u8>, Option<u32>)> = children
        .filter_map(Result::ok)
        .map(|child| {
            let kind = child.file_type().ok().and_then(|kind| {
                if kind.is_dir() {
                    Some(sys::stat::S_IFDIR)
                } else if kind.is_file() {
                    Some(sys::stat::S_IFREG)
                } else if kind.is_symlink() {
                    Some(sys::stat::S_IFLNK)
                } else {
                    None
                }
            });
            (child.file_name().into_encoded_bytes(), kind)
        })
        .collect();
    names.sort_unstable();
    for (name, kind) in names {
        let mut path = entry.path.clone();
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(&name);
        let child = match kind.filter(|kind| !(options.follow && *kind == sys::stat::S_IFLNK)) {
            Some(kind) => Entry {
                path,
                start: entry.start,
                depth: entry.depth + 1,
                stat: std::cell::OnceCell::new(),
                kind,
                follow: options.follow,
            },
            None => {
                let Ok(stat) = stat(&path, options.follow) else { continue };
                let known = std::cell::OnceCell::from(Some(stat));
                Entry { path, start: entry.start, depth: entry.depth + 1, stat: known, kind: stat.kind(), follow: options.follow }
            }
        };
        visit(&child, expr, eval, device, above);
        if eval.quit {
            break;
        }
    }
    if options.follow {
        above.pop();
    }
}
