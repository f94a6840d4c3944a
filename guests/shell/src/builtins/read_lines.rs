//! `mapfile` and `readarray`.

use super::parse_options;
use crate::bytes;
use crate::shell::{Done, Shell};
use crate::state::assign::{Subscript, is_name};
use crate::state::variables::Value;

pub(super) fn mapfile(shell: &mut Shell, args: &[String]) -> Done {
    let (options, at) = match parse_options(args, "d:n:O:s:tu:C:c:") {
        Ok(parsed) => parsed,
        Err(wrong) => return Ok(shell.refuse_parsed("mapfile", &wrong)),
    };
    let mut delimiter = b'\n';
    let (mut most, mut skip, mut quantum) = (0usize, 0usize, 5000usize);
    let mut origin = None;
    let (mut trim, mut fd) = (false, 0);
    let mut callback = None;
    for (letter, value) in options {
        let number = value.parse::<usize>();
        match (letter, number) {
            ('d', _) => delimiter = bytes::encode(&value).first().copied().unwrap_or(0),
            ('t', _) => trim = true,
            ('C', _) => callback = Some(value),
            ('n', Ok(number)) => most = number,
            ('s', Ok(number)) => skip = number,
            ('O', Ok(number)) => origin = Some(number),
            ('c', Ok(number)) if number > 0 => quantum = number,
            ('u', Ok(number)) => fd = u32::try_from(number).unwrap_or(u32::MAX),
            (letter, _) => {
                let what = match letter {
                    'n' | 's' => "invalid line count",
                    'O' => "invalid array origin",
                    'c' => "invalid callback quantum",
                    _ => "invalid file descriptor specification",
                };
                shell.complain(format_args!("mapfile: {value}: {what}"));
                return Ok(1);
            }
        }
    }
    let name = args.get(at).cloned().unwrap_or_else(|| "MAPFILE".to_owned());
    if !is_name(&name) {
        shell.complain(format_args!("mapfile: `{name}': not a valid identifier"));
        return Ok(1);
    }
    if !sys::is_open(fd) {
        shell.complain(format_args!("mapfile: {fd}: invalid file descriptor: Bad file descriptor"));
        return Ok(1);
    }
    let (name, _) = shell.resolve(&name);
    if shell.refuse_readonly(&name) {
        return Ok(1);
    }
    if matches!(shell.variables.get(&name).map(|variable| &variable.value), Some(Value::Associative(_))) {
        shell.complain(format_args!("mapfile: {name}: not an indexed array"));
        return Ok(1);
    }
    shell.output.flush();
    let lines = take_lines(fd, delimiter, skip, most, trim);
    if origin.is_none() {
        shell.set_array(&name, []);
    } else {
        shell.ensure_array(&name, false);
    }
    let start = origin.unwrap_or(0);
    for (at, line) in lines.into_iter().enumerate() {
        let index = i64::try_from(start + at).unwrap_or(i64::MAX);
        if let Some(callback) = &callback
            && (at + 1).is_multiple_of(quantum)
        {
            let call = format!("{callback} {index} {}", crate::quote::single(&line));
            shell.run_eval(&call)?;
        }
        shell.assign_element(&name, Subscript::Number(index), line, false)?;
    }
    Ok(0)
}

/// Reads to the end, or to the last wanted line; what was read ahead is given back where that is possible.
fn take_lines(fd: u32, delimiter: u8, skip: usize, most: usize, trim: bool) -> Vec<String> {
    let seekable = sys::seek_current(fd, 0).is_ok();
    let wanted = if most == 0 { usize::MAX } else { skip.saturating_add(most) };
    let mut data: Vec<u8> = Vec::new();
    let mut chunk = vec![0; if most == 0 || seekable { 64 * 1024 } else { 1 }];
    let mut count = 0;
    'reading: while count < wanted {
        match sys::read(fd, &mut chunk) {
            Ok(0) => break,
            Ok(n) => {
                for (at, &byte) in chunk[..n].iter().enumerate() {
                    data.push(byte);
                    if byte == delimiter {
                        count += 1;
                        if count >= wanted {
                            let ahead = n - at - 1;
                            if ahead > 0 {
                                let _ = sys::seek_current(fd, -i64::try_from(ahead).unwrap_or(0));
                            }
                            break 'reading;
                        }
                    }
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    data.split_inclusive(|&byte| byte == delimiter)
        .skip(skip)
        .map(|line| if trim { line.strip_suffix(&[delimiter]).unwrap_or(line) } else { line })
        .map(|line| {
            let end = line.iter().position(|&byte| byte == 0).unwrap_or(line.len());
            bytes::decode(&line[..end])
        })
        .collect()
}
