//! `umask`, `ulimit`, `times`.

use super::parse_options;
use crate::shell::{Done, Shell};

pub(super) fn umask(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "pS") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("umask", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let mask = sys::umask(0);
    sys::umask(mask);
    let Some(operand) = args.get(at) else {
        let text = if has('S') { symbolic(mask) } else { format!("{mask:04o}") };
        let prefix = match (has('p'), has('S')) {
            (true, true) => "umask -S ",
            (true, false) => "umask ",
            _ => "",
        };
        shell.write(&format!("{prefix}{text}\n"));
        return Ok(0);
    };
    let new = if operand.starts_with(|c: char| c.is_ascii_digit()) {
        match u32::from_str_radix(operand, 8) {
            Ok(mask) if mask <= 0o7777 => mask & 0o777,
            _ => {
                shell.complain(format_args!("umask: {operand}: octal number out of range"));
                return Ok(1);
            }
        }
    } else {
        match apply_symbolic(mask, operand) {
            Ok(mask) => mask,
            Err(wrong) => {
                shell.complain(format_args!("umask: `{wrong}': invalid symbolic mode operator"));
                return Ok(1);
            }
        }
    };
    sys::umask(new);
    if has('S') {
        shell.write(&format!("{}\n", symbolic(new)));
    }
    Ok(0)
}

fn symbolic(mask: u32) -> String {
    let allowed = !mask & 0o777;
    let part = |who: char, shift: u32| {
        let bits = allowed >> shift & 7;
        let mut text = format!("{who}=");
        for (bit, letter) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            if bits & bit != 0 {
                text.push(letter);
            }
        }
        text
    };
    format!("{},{},{}", part('u', 6), part('g', 3), part('o', 0))
}

fn apply_symbolic(mask: u32, text: &str) -> Result<u32, char> {
    let mut allowed = !mask & 0o777;
    for clause in text.split(',') {
        let mut chars = clause.chars().peekable();
        let mut who = 0u32;
        while let Some(&c) = chars.peek() {
            who |= match c {
                'u' => 0o700,
                'g' => 0o070,
                'o' => 0o007,
                'a' => 0o777,
                _ => break,
            };
            chars.next();
        }
        if who == 0 {
            who = 0o777;
        }
        let Some(operator) = chars.next() else { return Err(' ') };
        if !matches!(operator, '=' | '+' | '-') {
            return Err(operator);
        }
        let mut bits = 0u32;
        for c in chars {
            bits |= match c {
                'r' => 0o444,
                'w' => 0o222,
                'x' => 0o111,
                other => return Err(other),
            };
        }
        match operator {
            '=' => allowed = allowed & !who | bits & who,
            '+' => allowed |= bits & who,
            '-' => allowed &= !(bits & who),
            other => return Err(other),
        }
    }
    Ok(!allowed & 0o777)
}

/// The resources as `ulimit -a` lists them: letter, description, unit and value of a sandbox.
const RESOURCES: &[(char, &str, &str)] = &[
    ('R', "real-time non-blocking time", "(microseconds, -R) "),
    ('c', "core file size", "(blocks, -c) "),
    ('d', "data seg size", "(kbytes, -d) "),
    ('e', "scheduling priority", "(-e) "),
    ('f', "file size", "(blocks, -f) "),
    ('i', "pending signals", "(-i) "),
    ('l', "max locked memory", "(kbytes, -l) "),
    ('m', "max memory size", "(kbytes, -m) "),
    ('n', "open files", "(-n) "),
    ('p', "pipe size", "(512 bytes, -p) "),
    ('q', "POSIX message queues", "(bytes, -q) "),
    ('r', "real-time priority", "(-r) "),
    ('s', "stack size", "(kbytes, -s) "),
    ('t', "cpu time", "(seconds, -t) "),
    ('u', "max user processes", "(-u) "),
    ('v', "virtual memory", "(kbytes, -v) "),
    ('x', "file locks", "(-x) "),
];

fn limit(letter: char) -> String {
    match letter {
        'c' | 'e' | 'r' => "0".to_owned(),
        'n' => "1024".to_owned(),
        'p' => "8".to_owned(),
        's' => "8192".to_owned(),
        _ => "unlimited".to_owned(),
    }
}

/// Shows limits. The sandbox's real ones are the host's to set: a request to change one is taken and kept for show.
pub(super) fn ulimit(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "HSabcdefiklmnpqrstuvxPRT") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("ulimit", &wrong)),
    };
    if options.iter().any(|(letter, _)| *letter == 'a') {
        let text: String = RESOURCES
            .iter()
            .map(|&(letter, name, unit)| {
                let width = 40usize.saturating_sub(name.len());
                format!("{name}{unit:>width$}{}\n", limit(letter))
            })
            .collect();
        shell.write(&text);
        return Ok(0);
    }
    let letter = options.iter().map(|(letter, _)| *letter).find(|letter| !matches!(letter, 'H' | 'S')).unwrap_or('f');
    let Some(value) = args.get(at) else {
        let kept = shell.limits.iter().rev().find(|(own, _)| *own == letter).map(|(_, value)| value.clone());
        let text = kept.unwrap_or_else(|| limit(letter));
        shell.write(&format!("{text}\n"));
        return Ok(0);
    };
    let valid = matches!(value.as_str(), "unlimited" | "hard" | "soft") || value.parse::<u64>().is_ok();
    if !valid {
        shell.complain(format_args!("ulimit: {value}: invalid number"));
        return Ok(1);
    }
    shell.limits.push((letter, value.clone()));
    Ok(0)
}

pub(super) fn times(shell: &mut Shell, _: &[String]) -> Done {
    let elapsed = (sys::now_ns() - shell.started) / 1_000_000;
    let own = format!("{}m{}.{:03}s", elapsed / 60_000, elapsed / 1000 % 60, elapsed % 1000);
    shell.write(&format!("{own} 0m0.000s\n0m0.000s 0m0.000s\n"));
    Ok(0)
}
