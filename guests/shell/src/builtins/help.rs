//! `help`: how each builtin is used, and what for.

use crate::shell::{Done, Shell};
use pattern::{Flags, Pattern};

/// Name, synopsis, purpose.
const TEXTS: &[(&str, &str, &str)] = &[
    (".", r". filename [arguments]", "Runs the commands of a file in this shell."),
    (":", r":", "Does nothing, successfully."),
    ("[", r"[ arg... ]", "Evaluates an expression; the last argument is `]'."),
    ("alias", r"alias [-p] [name[=value] ... ]", "Defines or shows aliases."),
    ("bg", r"bg [job_spec ...]", "Moves jobs to the background."),
    (
        "bind",
        r"bind [-lpsvPSVX] [-m keymap] [-f filename] [-q name] [-u name] [-r keyseq] [-x keyseq:shell-command] [keyseq:readline-function or readline-command]",
        "Sets key bindings; there are none here.",
    ),
    ("break", r"break [n]", "Leaves loops."),
    ("builtin", r"builtin [shell-builtin [arg ...]]", "Runs a builtin, whatever functions are defined."),
    ("caller", r"caller [expr]", "Shows where the current function was called."),
    ("cd", r"cd [-L|[-P [-e]] [-@]] [dir]", "Changes the working directory."),
    ("command", r"command [-pVv] command [arg ...]", "Runs a command, whatever functions are defined, or shows what it is."),
    (
        "compgen",
        r"compgen [-abcdefgjksuv] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [word]",
        "Shows possible completions.",
    ),
    (
        "complete",
        r"complete [-abcdefgjksuv] [-pr] [-DEI] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [name ...]",
        "Says how arguments are completed.",
    ),
    ("compopt", r"compopt [-o|+o option] [-DEI] [name ...]", "Changes completion options."),
    ("continue", r"continue [n]", "Continues with the next iteration of a loop."),
    (
        "declare",
        r"declare [-aAfFgiIlnrtux] [name[=value] ...] or declare -p [-aAfFilnrtux] [name ...]",
        "Sets values and attributes of variables.",
    ),
    ("dirs", r"dirs [-clpv] [+N] [-N]", "Shows the directory stack."),
    ("disown", r"disown [-h] [-ar] [jobspec ... | pid ...]", "Takes jobs off the list."),
    ("echo", r"echo [-neE] [arg ...]", "Writes its arguments."),
    ("enable", r"enable [-a] [-dnps] [-f filename] [name ...]", "Switches builtins on and off."),
    ("eval", r"eval [arg ...]", "Runs its arguments as a command."),
    ("exec", r"exec [-cl] [-a name] [command [argument ...]] [redirection ...]", "Replaces the shell with a command."),
    ("exit", r"exit [n]", "Ends the shell."),
    ("export", r"export [-fn] [name[=value] ...] or export -p", "Passes variables on to programs."),
    ("false", r"false", "Fails."),
    ("fc", r"fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]", "Shows or edits history."),
    ("fg", r"fg [job_spec]", "Moves a job to the foreground."),
    ("getopts", r"getopts optstring name [arg ...]", "Takes option arguments apart."),
    ("hash", r"hash [-lr] [-p pathname] [-dt] [name ...]", "Remembers or shows where commands are."),
    ("help", r"help [-dms] [pattern ...]", "Shows how builtins are used."),
    ("history", r"history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]", "Shows the history."),
    ("jobs", r"jobs [-lnprs] [jobspec ...] or jobs -x command [args]", "Shows jobs."),
    ("kill", r"kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]", "Sends a signal."),
    ("let", r"let arg [arg ...]", "Evaluates arithmetic."),
    ("local", r"local [option] name[=value] ...", "Defines variables of a function."),
    ("logout", r"logout [n]", "Leaves a login shell."),
    (
        "mapfile",
        r"mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
        "Reads lines into an array.",
    ),
    ("popd", r"popd [-n] [+N | -N]", "Takes directories off the stack."),
    ("printf", r"printf [-v var] format [arguments]", "Writes its arguments by a format."),
    ("pushd", r"pushd [-n] [+N | -N | dir]", "Puts directories on the stack."),
    ("pwd", r"pwd [-LP]", "Shows the working directory."),
    (
        "read",
        r"read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]",
        "Reads a line and splits it into variables.",
    ),
    (
        "readarray",
        r"readarray [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]",
        "Reads lines into an array.",
    ),
    ("readonly", r"readonly [-aAf] [name[=value] ...] or readonly -p", "Makes variables unchangeable."),
    ("return", r"return [n]", "Leaves a function."),
    ("set", r"set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]", "Sets options and positional parameters."),
    ("shift", r"shift [n]", "Drops positional parameters."),
    ("shopt", r"shopt [-pqsu] [-o] [optname ...]", "Sets shell options."),
    ("source", r"source filename [arguments]", "Runs the commands of a file in this shell."),
    ("suspend", r"suspend [-f]", "Suspends the shell."),
    ("test", r"test [expr]", "Evaluates an expression."),
    ("times", r"times", "Shows processor times."),
    ("trap", r"trap [-lp] [[arg] signal_spec ...]", "Runs commands on signals and other events."),
    ("true", r"true", "Succeeds."),
    ("type", r"type [-afptP] name [name ...]", "Shows what a name stands for."),
    (
        "typeset",
        r"typeset [-aAfFgiIlnrtux] name[=value] ... or typeset -p [-aAfFilnrtux] [name ...]",
        "Sets values and attributes of variables.",
    ),
    ("ulimit", r"ulimit [-SHabcdefiklmnpqrstuvxPRT] [limit]", "Shows or sets resource limits."),
    ("umask", r"umask [-p] [-S] [mode]", "Shows or sets the file mode mask."),
    ("unalias", r"unalias [-a] name [name ...]", "Takes aliases off."),
    ("unset", r"unset [-f] [-v] [-n] [name ...]", "Unsets variables and functions."),
    ("wait", r"wait [-fn] [-p var] [id ...]", "Waits for jobs."),
];

/// Returns the topics of `help`.
pub(super) fn topics() -> impl Iterator<Item = &'static str> {
    TEXTS.iter().map(|entry| entry.0)
}

/// Returns how a builtin is used.
pub(super) fn synopsis(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// Returns how a builtin is used, and what for.
pub(super) fn describe(name: &str) -> String {
    match TEXTS.iter().find(|entry| entry.0 == name) {
        Some((name, synopsis, purpose)) => format!("{name}: {synopsis}\n    {purpose}\n"),
        None => String::new(),
    }
}

pub(super) fn help(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match super::parse_options(args, "dms") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("help", &wrong)),
    };
    let style = options.last().map(|(letter, _)| *letter);
    let operands = args.get(at..).unwrap_or_default();
    if operands.is_empty() {
        let version = shell.get("BASH_VERSION").unwrap_or_default();
        let mut text = format!("GNU bash, version {version} (sandlite)\n");
        text.push_str("These shell commands are defined internally.  Type `help' to see this list.\n");
        text.push_str("Type `help name' to find out more about the function `name'.\n\n");
        for (_, synopsis, _) in TEXTS {
            text.push_str(&format!(" {synopsis}\n"));
        }
        shell.write(&text);
        return Ok(0);
    }
    let mut any = false;
    for operand in operands {
        let pattern = Pattern::compile(&[(operand.as_str(), false)], Flags::default());
        let mut found = false;
        for (name, synopsis, purpose) in TEXTS.iter().filter(|(name, ..)| pattern.matches(name) || name == operand) {
            found = true;
            let text = match style {
                Some('d') => format!("{name} - {purpose}\n"),
                Some('s') => format!("{name}: {synopsis}\n"),
                _ => describe(name),
            };
            shell.write(&text);
        }
        any |= found;
    }
    // One topic that is there makes up for all that are not.
    if !any && let Some(operand) = operands.last() {
        shell.complain(format_args!(
            "help: no help topics match `{operand}'.  Try `help help' or `man -k {operand}' or `info {operand}'."
        ));
    }
    Ok(i32::from(!any))
}
