//! `which`: where a command would be found.

use std::ffi::OsString;

use common::getopt::{self, Item, Spec};

use crate::command;
use crate::io::{self, Out};

/// Runs `which`: where a command would be found.
pub fn which(args: Vec<OsString>) -> i32 {
    let args = getopt::bytes(args);
    let spec = Spec { short: "as", long: &[] };
    let items = match spec.parse(&args[1..]) {
        Ok(items) => items,
        Err(_) => {
            warn!("Usage: /usr/bin/which [-as] args");
            return 2;
        }
    };
    let all = items.contains(&Item::Opt('a', None));
    let silent = items.contains(&Item::Opt('s', None));
    let mut out = Out::new("which", 1);
    let mut status = i32::from(!items.iter().any(|item| matches!(item, Item::Operand(_))));
    for item in items {
        let Item::Operand(name) = item else { continue };
        let found: Vec<Vec<u8>> = if name.contains(&b'/') {
            command::executable(&io::path(&name)).map(|_| name).into_iter().collect()
        } else {
            let candidates = command::candidates(&io::os(&name), command::own_path().as_deref());
            let runs = candidates.iter().filter_map(|path| command::executable(path).ok());
            runs.map(|path| path.into_os_string().into_encoded_bytes()).collect()
        };
        if found.is_empty() {
            status = 1;
        }
        for path in found.iter().take(if all { usize::MAX } else { 1 }) {
            if !silent {
                out.put(path);
                out.byte(b'\n');
            }
        }
    }
    out.flush();
    status
}
