//! `pwd`: the working directory.

use std::path::Path;

use crate::files::paths::{Must, resolve};
use crate::options::{self, No, Spec};
use crate::program::{self, Args, Outcome, Output, bytes, fail};

/// Runs `pwd`.
pub fn pwd(args: Args) -> Outcome {
    let spec = Spec { short: "LP", long: &[("logical", No, 'L'), ("physical", No, 'P')], help: "[OPTION]..." };
    let given = options::parse(args, &spec)?;
    if !given.operands.is_empty() {
        program::warn("ignoring non-option arguments");
    }
    let logical = given.options.last().is_some_and(|(letter, _)| *letter == 'L');
    if logical
        && let Some(pwd) = std::env::var_os("PWD")
        && Path::new(&pwd).is_absolute()
        && !bytes(&pwd).split(|&byte| byte == b'/').any(|part| part == b"." || part == b"..")
        && let (Ok(there), Ok(here)) = (sys::stat(Path::new(&pwd), true), sys::stat(Path::new("."), true))
        && (there.dev, there.ino) == (here.dev, here.ino)
    {
        Output::new().line(bytes(&pwd), b'\n');
        return Ok(0);
    }
    match resolve(Path::new("."), Must::Exist, true).or_else(|_| std::env::current_dir()) {
        Ok(path) => {
            Output::new().line(bytes(path.as_os_str()), b'\n');
            Ok(0)
        }
        Err(error) => Err(fail(sys::message(&error))),
    }
}
