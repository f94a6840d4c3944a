//! `set` and `shopt`.

use super::declare_print::Shown;
use super::parse_options;
use crate::shell::{Done, Shell};
use crate::state::options::{SetOption, ShoptOption};
use crate::state::variables::Attributes;

impl Shell {
    /// Switches an option of `set`, with what goes along.
    pub(crate) fn switch(&mut self, option: SetOption, on: bool) {
        self.options.set(option, on);
        match option {
            SetOption::Posix if on => {
                self.set_plain("POSIXLY_CORRECT", "y");
                self.options.set_shopt(ShoptOption::ExpandAliases, true);
                self.options.set_shopt(ShoptOption::InheritErrExit, true);
            }
            SetOption::Emacs if on => self.options.set(SetOption::Vi, false),
            SetOption::Vi if on => self.options.set(SetOption::Emacs, false),
            _ => {}
        }
    }
}

fn list_set(shell: &mut Shell, as_commands: bool) {
    let mut text = String::new();
    for &(option, name, ..) in SetOption::ALL {
        let on = shell.on(option);
        if as_commands {
            text.push_str(&format!("set {}o {name}\n", if on { '-' } else { '+' }));
        } else {
            text.push_str(&format!("{name:<15}\t{}\n", if on { "on" } else { "off" }));
        }
    }
    shell.write(&text);
}

pub(super) fn set(shell: &mut Shell, args: &[String]) -> Done {
    if shell.wants_help(args) {
        return Ok(2);
    }
    if args.len() <= 1 {
        return shell.print_declarations(Attributes::default(), false, false, Shown::Set);
    }
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        if arg == "--" {
            shell.positional_set = true;
            shell.positional = args.get(at + 1..).unwrap_or_default().to_vec();
            return Ok(0);
        }
        if arg == "-" {
            shell.switch(SetOption::XTrace, false);
            shell.switch(SetOption::Verbose, false);
            if args.len() > at + 1 {
                shell.positional_set = true;
                shell.positional = args.get(at + 1..).unwrap_or_default().to_vec();
            }
            return Ok(0);
        }
        let (on, letters) = match arg.as_bytes() {
            [b'-', _, ..] => (true, &arg[1..]),
            [b'+', ..] => (false, &arg[1..]),
            _ => break,
        };
        for letter in letters.chars() {
            if letter == 'o' {
                match args.get(at + 1) {
                    None => list_set(shell, !on),
                    Some(name) => {
                        let Some(option) = SetOption::named(name) else {
                            shell.complain(format_args!("set: {name}: invalid option name"));
                            return Ok(2);
                        };
                        shell.switch(option, on);
                        at += 1;
                    }
                }
                continue;
            }
            let Some(option) = SetOption::lettered(letter) else {
                let sign = if on { '-' } else { '+' };
                return Ok(shell.refuse_option("set", &format!("{sign}{letter}")));
            };
            shell.switch(option, on);
        }
        at += 1;
    }
    if at < args.len() {
        shell.positional_set = true;
        shell.positional = args.get(at..).unwrap_or_default().to_vec();
    }
    Ok(0)
}

pub(super) fn shopt(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "suqpo") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("shopt", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let (set, unset, quiet, print, of_set) = (has('s'), has('u'), has('q'), has('p'), has('o'));
    if set && unset {
        shell.complain("shopt: cannot set and unset shell options simultaneously");
        return Ok(1);
    }
    let names = args.get(at..).unwrap_or_default();
    if names.is_empty() {
        let wanted = |on: bool| (!set || on) && (!unset || !on);
        let mut text = String::new();
        if of_set {
            for &(option, name, ..) in SetOption::ALL {
                let on = shell.on(option);
                if wanted(on) {
                    text.push_str(&line(name, on, print, true));
                }
            }
        } else {
            for &(option, name, ..) in ShoptOption::ALL {
                let on = shell.shopt(option);
                if wanted(on) {
                    text.push_str(&line(name, on, print, false));
                }
            }
        }
        if !quiet {
            shell.write(&text);
        }
        return Ok(0);
    }
    let mut status = 0;
    for name in names {
        let known = if of_set { SetOption::named(name).map(Err) } else { ShoptOption::named(name).map(Ok) };
        let Some(option) = known else {
            let kind = if of_set { "option" } else { "shell option" };
            shell.complain(format_args!("shopt: {name}: invalid {kind} name"));
            // As bash does, whether or not it means to.
            status = if of_set && (set || unset) { status } else { 1 };
            continue;
        };
        if set || unset {
            match option {
                Ok(option) => shell.options.set_shopt(option, set),
                Err(option) => shell.switch(option, set),
            }
            continue;
        }
        let on = match option {
            Ok(option) => shell.shopt(option),
            Err(option) => shell.on(option),
        };
        if !on {
            status = 1;
        }
        if !quiet {
            shell.write(&line(name, on, print, of_set));
        }
    }
    Ok(status)
}

fn line(name: &str, on: bool, as_command: bool, of_set: bool) -> String {
    match (as_command, of_set) {
        (true, false) => format!("shopt -{} {name}\n", if on { 's' } else { 'u' }),
        (true, true) => format!("set {}o {name}\n", if on { '-' } else { '+' }),
        (false, _) => format!("{name:<15}\t{}\n", if on { "on" } else { "off" }),
    }
}
