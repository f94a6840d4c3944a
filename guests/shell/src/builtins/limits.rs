//! `umask`, `ulimit`, `times`.

use super::parse_options;
use crate::shell::{Done, Limit, Shell};

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
            Err((wrong, what)) => {
                shell.complain(format_args!("umask: `{wrong}': invalid symbolic mode {what}"));
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

fn apply_symbolic(mask: u32, text: &str) -> Result<u32, (char, &'static str)> {
    let mut allowed = !mask & 0o777;
    for (at, clause) in text.split(',').enumerate() {
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
        // If a clause ends too early, the unexpected character is the comma, or the end of the text.
        let end = if at < text.split(',').count() - 1 { ',' } else { '\0' };
        let operator = chars.next().unwrap_or(end);
        if !matches!(operator, '=' | '+' | '-') {
            return Err((operator, "operator"));
        }
        let mut bits = 0u32;
        for c in chars {
            bits |= match c {
                'r' => 0o444,
                'w' => 0o222,
                'x' => 0o111,
                other => return Err((other, "character")),
            };
        }
        match operator {
            '=' => allowed = allowed & !who | bits & who,
            '+' => allowed |= bits & who,
            _ => allowed &= !(bits & who),
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

/// Returns the limits that a sandbox starts with.
fn first_limit(letter: char) -> Limit {
    let both = |value| Limit { soft: value, hard: value };
    match letter {
        'c' => Limit { soft: Some(0), hard: None },
        'e' | 'r' => both(Some(0)),
        'n' => Limit { soft: Some(1024), hard: Some(1_048_576) },
        'p' => both(Some(8)),
        's' => Limit { soft: Some(8192), hard: None },
        _ => both(None),
    }
}

/// Returns how many bytes one unit of a resource is.
fn unit(letter: char) -> u64 {
    match letter {
        'c' | 'd' | 'f' | 'l' | 'm' | 's' | 'v' => 1024,
        'p' => 512,
        _ => 1,
    }
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or("unlimited".to_owned(), |value| value.to_string())
}

impl Shell {
    fn limit(&self, letter: char) -> Limit {
        self.limits.iter().rev().find(|(own, _)| *own == letter).map_or_else(|| first_limit(letter), |(_, limit)| *limit)
    }

    /// Returns the descriptor that is the first too many, when `ulimit -n` was used.
    pub(crate) fn descriptor_limit(&self) -> Option<u64> {
        if self.limits.is_empty() { None } else { self.limit('n').soft }
    }
}

/// Shows and sets limits. The sandbox's real ones are the host's to set: these are kept, and `-n` is obeyed.
pub(super) fn ulimit(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "HSabcdefiklmnpqrstuvxPRT") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("ulimit", &wrong)),
    };
    let has = |wanted: char| options.iter().any(|(letter, _)| *letter == wanted);
    let (hard, soft) = (has('H'), has('S'));
    let chosen = |limit: Limit| if hard && !soft { limit.hard } else { limit.soft };
    let describe = |shell: &Shell, &(letter, name, unit): &(char, &str, &str)| {
        let width = 40usize.saturating_sub(name.len());
        format!("{name}{unit:>width$}{}\n", shown(chosen(shell.limit(letter))))
    };
    if has('a') {
        let text: String = RESOURCES.iter().map(|resource| describe(shell, resource)).collect();
        shell.write(&text);
        return Ok(0);
    }
    let mut letters: Vec<char> =
        options.iter().map(|(letter, _)| *letter).filter(|letter| !matches!(letter, 'H' | 'S')).collect();
    if letters.is_empty() {
        letters.push('f');
    }
    let operands = args.get(at..).unwrap_or_default();
    let Some(value) = operands.first() else {
        let several = letters.len() > 1;
        for letter in letters {
            let resource = RESOURCES.iter().find(|resource| resource.0 == letter);
            let text = match resource {
                Some(resource) if several => describe(shell, resource),
                _ => format!("{}\n", shown(chosen(shell.limit(letter)))),
            };
            shell.write(&text);
        }
        return Ok(0);
    };
    let letter = letters.last().copied().unwrap_or('f');
    set_limit(shell, letter, value, hard || !soft, soft || !hard)
}

fn set_limit(shell: &mut Shell, letter: char, value: &str, hard: bool, soft: bool) -> Done {
    let old = shell.limit(letter);
    let wanted = match value {
        "unlimited" => None,
        "hard" => old.hard,
        "soft" => old.soft,
        digits => match digits.parse::<u64>() {
            Ok(number) if number.checked_mul(unit(letter)).is_some() => Some(number),
            Ok(_) => {
                shell.complain(format_args!("ulimit: {value}: limit out of range"));
                return Ok(1);
            }
            Err(_) => {
                shell.complain(format_args!("ulimit: {value}: invalid number"));
                return Ok(1);
            }
        },
    };
    let above = |value: Option<u64>, limit: Option<u64>| limit.is_some_and(|limit| value.is_none_or(|value| value > limit));
    let new = Limit { soft: if soft { wanted } else { old.soft }, hard: if hard { wanted } else { old.hard } };
    let problem = if above(new.hard, old.hard) {
        "Operation not permitted"
    } else if above(new.soft, new.hard) {
        "Invalid argument"
    } else {
        shell.limits.retain(|(own, _)| *own != letter);
        shell.limits.push((letter, new));
        return Ok(0);
    };
    let name = RESOURCES.iter().find(|resource| resource.0 == letter).map_or("", |resource| resource.1);
    shell.complain(format_args!("ulimit: {name}: cannot modify limit: {problem}"));
    Ok(1)
}

pub(super) fn times(shell: &mut Shell, _: &[String]) -> Done {
    let elapsed = (sys::now_ns() - shell.started) / 1_000_000;
    let own = format!("{}m{}.{:03}s", elapsed / 60_000, elapsed / 1000 % 60, elapsed % 1000);
    shell.write(&format!("{own} 0m0.000s\n0m0.000s 0m0.000s\n"));
    Ok(0)
}
