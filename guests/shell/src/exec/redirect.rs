//! Redirections: changing the shell's own descriptors, and changing them back.

use std::io;
use std::path::Path;

use super::process::OWN_DESCRIPTORS;
use crate::ast::{Redirect, RedirectFd, RedirectKind, Word};
use crate::bytes;
use crate::shell::{Done, Flow, Shell};
use crate::state::assign::split_subscript;
use crate::state::options::{SetOption, ShoptOption};

/// A size that always fits a pipe: longer here-documents are stored in a file.
const PIPE_ROOM: usize = 4096;
/// The first descriptor that `{name}>` may get.
const VARIABLE_DESCRIPTORS: u32 = 10;

/// Descriptors to restore: each with its saved copy, `None` if it was closed.
#[derive(Debug, Default)]
pub struct Saved(Vec<(u32, Option<u32>)>);

/// A redirection that did not work: the message, or why the command stops.
enum Refusal {
    Said(String),
    Flow(Flow),
}

impl From<Flow> for Refusal {
    fn from(flow: Flow) -> Self {
        Self::Flow(flow)
    }
}

fn refused(name: &str, error: &io::Error) -> Refusal {
    Refusal::Said(format!("{name}: {}", sys::message(error)))
}

impl Shell {
    /// Does redirections in order. `Err` is the status of the command that therefore does not run.
    pub(crate) fn apply_redirects(&mut self, redirects: &[Redirect]) -> Done<Result<Saved, i32>> {
        let mut saved = Saved::default();
        for redirect in redirects {
            match self.apply_redirect(redirect, &mut saved) {
                Ok(()) => {}
                Err(Refusal::Flow(flow)) => {
                    self.restore_redirects(saved);
                    return Err(flow);
                }
                Err(Refusal::Said(message)) => {
                    // Earlier redirections are in effect: `2>file` receives the message.
                    self.complain(message);
                    self.restore_redirects(saved);
                    return Ok(Err(1));
                }
            }
        }
        Ok(Ok(saved))
    }

    /// Puts the descriptors back.
    pub(crate) fn restore_redirects(&mut self, saved: Saved) {
        if saved.0.is_empty() {
            return;
        }
        if saved.0.iter().any(|(fd, _)| *fd == 1) {
            self.output.flush();
        }
        for (fd, copy) in saved.0.into_iter().rev() {
            match copy {
                Some(copy) => {
                    let _ = sys::dup2(copy, fd);
                    let _ = sys::close(copy);
                }
                None => {
                    let _ = sys::close(fd);
                }
            }
            if fd == 1 {
                self.output.look();
            }
        }
    }

    /// Keeps the changes: `exec > file`.
    pub(crate) fn keep_redirects(&mut self, saved: Saved) {
        for (_, copy) in saved.0 {
            if let Some(copy) = copy {
                let _ = sys::close(copy);
            }
        }
        self.output.look();
    }

    /// Makes `to` another name of `from`, saving what it was.
    pub(super) fn replace_fd(&mut self, from: u32, to: u32) -> Saved {
        let mut saved = Saved::default();
        self.save(to, &mut saved);
        let _ = sys::dup2(from, to);
        saved
    }

    fn save(&mut self, fd: u32, saved: &mut Saved) {
        if fd == 1 {
            self.output.flush();
            self.output.cautious = true;
        }
        if saved.0.iter().any(|(own, _)| *own == fd) {
            return;
        }
        saved.0.push((fd, sys::dup(fd, OWN_DESCRIPTORS, true).ok()));
    }

    /// Puts `from`, which is ours, at `to`.
    fn place(&mut self, from: u32, to: u32, saved: &mut Saved) -> Result<(), Refusal> {
        if from != to {
            self.save(to, saved);
            sys::dup2(from, to).map_err(|error| refused(&to.to_string(), &error))?;
            let _ = sys::close(from);
        } else {
            // The descriptor was closed, and opening took its very number.
            saved.0.push((to, None));
            let _ = sys::set_close_on_exec(to, false);
        }
        Ok(())
    }

    fn apply_redirect(&mut self, redirect: &Redirect, saved: &mut Saved) -> Result<(), Refusal> {
        let reads = matches!(
            redirect.kind,
            RedirectKind::Input(_)
                | RedirectKind::ReadWrite(_)
                | RedirectKind::DuplicateInput(_)
                | RedirectKind::HereDocument { .. }
                | RedirectKind::HereString(_)
        );
        match &redirect.kind {
            RedirectKind::DuplicateInput(word) | RedirectKind::DuplicateOutput(word) => {
                return self.duplicate(redirect, word, u32::from(!reads), saved);
            }
            RedirectKind::OutputAndError(word) | RedirectKind::AppendOutputAndError(word) => {
                let name = self.file_name(word)?;
                let append = matches!(redirect.kind, RedirectKind::AppendOutputAndError(_));
                return self.output_and_error(&name, append, saved);
            }
            _ => {}
        }
        let target = match &redirect.fd {
            RedirectFd::Default => Some(u32::from(!reads)),
            RedirectFd::Number(fd) => Some(*fd),
            RedirectFd::Variable(_) => None,
        };
        // A descriptor that will be replaced is not freed for others meanwhile.
        let opened = self.open_redirect(&redirect.kind)?;
        match (target, &redirect.fd) {
            (Some(target), _) => self.place(opened, target, saved),
            (None, RedirectFd::Variable(name)) => self.place_in_variable(opened, name, saved),
            _ => Ok(()),
        }
    }

    fn place_in_variable(&mut self, from: u32, name: &str, saved: &mut Saved) -> Result<(), Refusal> {
        let high = sys::dup(from, VARIABLE_DESCRIPTORS, false).map_err(|error| refused(name, &error))?;
        let _ = sys::close(from);
        if self.shopt(ShoptOption::VarRedirClose) {
            saved.0.push((high, None));
        }
        self.assign_text(name, high.to_string())?;
        Ok(())
    }

    /// Assigns to `name` or `name[subscript]`.
    fn assign_text(&mut self, name: &str, value: String) -> Done<()> {
        match split_subscript(name) {
            Some((base, subscript)) => {
                let subscript = self.subscript(base, subscript)?;
                self.assign_element(base, subscript, value, false)
            }
            None => self.assign(name, value, false),
        }
    }

    fn file_name(&mut self, word: &Word) -> Result<String, Refusal> {
        let mut names = Vec::new();
        self.expand_word(word, &mut names)?;
        match <[String; 1]>::try_from(names) {
            Ok([name]) => Ok(name),
            Err(_) => Err(Refusal::Said(format!("{}: ambiguous redirect", crate::print::word(word)))),
        }
    }

    /// Opens what a redirection names, out of the way of the descriptors that scripts use.
    fn open_redirect(&mut self, kind: &RedirectKind) -> Result<u32, Refusal> {
        let flags = sys::OpenFlags::default();
        let (word, flags) = match kind {
            RedirectKind::Input(word) => (word, sys::OpenFlags { read: true, ..flags }),
            RedirectKind::Output(word) => (
                word,
                sys::OpenFlags { write: true, create: true, truncate: true, exclusive: self.on(SetOption::NoClobber), ..flags },
            ),
            RedirectKind::Clobber(word) => (word, sys::OpenFlags { write: true, create: true, truncate: true, ..flags }),
            RedirectKind::Append(word) => (word, sys::OpenFlags { write: true, create: true, append: true, ..flags }),
            RedirectKind::ReadWrite(word) => (word, sys::OpenFlags { read: true, write: true, create: true, ..flags }),
            RedirectKind::HereString(word) => {
                let mut text = self.expand_string(word)?;
                text.push('\n');
                return self.text_descriptor(&text);
            }
            RedirectKind::HereDocument { body, .. } => {
                let text = self.expand_quoted(body)?;
                return self.text_descriptor(&text);
            }
            _ => return Err(Refusal::Said("redirection: not a file".to_owned())),
        };
        let name = self.file_name(word)?;
        self.open_file(&name, flags)
    }

    fn open_file(&mut self, name: &str, mut flags: sys::OpenFlags) -> Result<u32, Refusal> {
        if name.is_empty() {
            return Err(Refusal::Said(": No such file or directory".to_owned()));
        }
        let file = super::os(name);
        let path = Path::new(&file);
        if flags.exclusive {
            match sys::stat(path, true) {
                Ok(stat) if stat.kind() == sys::stat::S_IFREG => {
                    return Err(Refusal::Said(format!("{name}: cannot overwrite existing file")));
                }
                // Devices and pipes may be written to.
                Ok(_) => flags.exclusive = false,
                Err(_) => {}
            }
        }
        flags.close_on_exec = true;
        let fd = sys::open(path, flags, 0o666).map_err(|error| refused(name, &error))?;
        if self.descriptor_limit().is_some_and(|limit| u64::from(fd) >= limit) {
            let _ = sys::close(fd);
            return Err(Refusal::Said(format!("{name}: Too many open files")));
        }
        Ok(fd)
    }

    fn output_and_error(&mut self, name: &str, append: bool, saved: &mut Saved) -> Result<(), Refusal> {
        let flags = sys::OpenFlags {
            write: true,
            create: true,
            truncate: !append,
            append,
            exclusive: !append && self.on(SetOption::NoClobber),
            ..sys::OpenFlags::default()
        };
        let fd = self.open_file(name, flags)?;
        self.place(fd, 1, saved)?;
        self.save(2, saved);
        sys::dup2(1, 2).map_err(|error| refused(name, &error))
    }

    /// `n>&m`, `n>&m-`, `n>&-`, `>& file`.
    fn duplicate(&mut self, redirect: &Redirect, word: &Word, default: u32, saved: &mut Saved) -> Result<(), Refusal> {
        let name = self.file_name(word)?;
        let (source, moves) = match name.strip_suffix('-') {
            Some("") => (None, false),
            Some(number) => (Some(number), true),
            None => (Some(name.as_str()), false),
        };
        let Some(source) = source else { return self.close_redirect(redirect, default, saved) };
        let Ok(from) = source.parse::<u32>() else {
            if default == 1 && matches!(redirect.fd, RedirectFd::Default | RedirectFd::Number(1)) && !moves {
                return self.output_and_error(&name, false, saved);
            }
            return Err(Refusal::Said(format!("{name}: ambiguous redirect")));
        };
        if !sys::is_open(from) {
            let shown = crate::print::word(word);
            return Err(Refusal::Said(format!("{}: Bad file descriptor", if moves { source } else { &shown })));
        }
        match &redirect.fd {
            RedirectFd::Variable(name) => {
                let high = sys::dup(from, VARIABLE_DESCRIPTORS, false).map_err(|error| refused(name, &error))?;
                self.assign_text(name, high.to_string())?;
            }
            fd => {
                let target = match fd {
                    RedirectFd::Number(fd) => *fd,
                    _ => default,
                };
                if from == 1 {
                    self.output.flush();
                }
                if from != target {
                    self.save(target, saved);
                    sys::dup2(from, target).map_err(|error| refused(source, &error))?;
                }
            }
        }
        if moves {
            self.save(from, saved);
            let _ = sys::close(from);
        }
        Ok(())
    }

    fn close_redirect(&mut self, redirect: &Redirect, default: u32, saved: &mut Saved) -> Result<(), Refusal> {
        let fd = match &redirect.fd {
            RedirectFd::Default => default,
            RedirectFd::Number(fd) => *fd,
            RedirectFd::Variable(name) => {
                let value = match split_subscript(name) {
                    Some((base, subscript)) => {
                        let subscript = self.subscript(base, subscript)?;
                        self.get_element(base, &subscript)
                    }
                    None => self.get(name),
                };
                let Some(Ok(fd)) = value.map(|value| value.parse::<u32>()) else {
                    return Err(Refusal::Said(format!("{name}: Bad file descriptor")));
                };
                let _ = sys::close(fd);
                return Ok(());
            }
        };
        if sys::is_open(fd) {
            self.save(fd, saved);
            let _ = sys::close(fd);
        }
        Ok(())
    }

    /// Returns a descriptor from which `text` can be read.
    fn text_descriptor(&mut self, text: &str) -> Result<u32, Refusal> {
        let content = bytes::encode(text).into_owned();
        let failed =
            |error: io::Error| Refusal::Said(format!("cannot create temp file for here-document: {}", sys::message(&error)));
        if content.len() > PIPE_ROOM
            && let Some(fd) = self.temporary_file(&content)
        {
            return Ok(fd);
        }
        let [read, write] = self.high_pipe().map_err(failed)?;
        if content.len() <= PIPE_ROOM {
            let _ = sys::write_all(write, &content);
            let _ = sys::close(write);
            return Ok(read);
        }
        // Nowhere to put it: another process feeds the pipe.
        let fed = self.fork(|_| {
            let _ = sys::close(read);
            Ok(i32::from(sys::write_all(write, &content).is_err()))
        });
        let _ = sys::close(write);
        fed.map(|_| read).map_err(failed)
    }

    /// A file that is already gone from its directory.
    fn temporary_file(&mut self, content: &[u8]) -> Option<u32> {
        let directory = self.get("TMPDIR").filter(|text| !text.is_empty()).unwrap_or_else(|| "/tmp".to_owned());
        let name = format!("{directory}/sh-thd.{}.{}", sys::process_ids()[0], sys::now_ns());
        let file = super::os(&name);
        let path = Path::new(&file);
        let flags =
            sys::OpenFlags { write: true, create: true, exclusive: true, close_on_exec: true, ..sys::OpenFlags::default() };
        let fd = sys::open(path, flags, 0o600).ok()?;
        let written = sys::write_all(fd, content);
        let _ = sys::close(fd);
        let flags = sys::OpenFlags { read: true, close_on_exec: true, ..sys::OpenFlags::default() };
        let opened = sys::open(path, flags, 0);
        let _ = std::fs::remove_file(path);
        written.ok()?;
        opened.ok()
    }
}
