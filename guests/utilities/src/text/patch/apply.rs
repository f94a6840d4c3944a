//! Finding the place of each hunk and putting it in.

use super::parse::{Hunk, Patch};

pub(super) struct Applied {
    pub content: Vec<u8>,
    pub messages: Vec<String>,
    pub rejects: Vec<Hunk>,
    /// Whether the first hunk only fits the other way round.
    pub reversed: bool,
    /// Whether a hunk only fitted with some of its context left out or elsewhere.
    pub fuzzy: bool,
}

fn reversed(hunk: &Hunk) -> Hunk {
    let mut lines: Vec<(u8, Vec<u8>)> = Vec::new();
    let mut added: Vec<(u8, Vec<u8>)> = Vec::new();
    for (mark, text) in &hunk.lines {
        match mark {
            b'+' => lines.push((b'-', text.clone())),
            b'-' => added.push((b'+', text.clone())),
            _ => {
                lines.append(&mut added);
                lines.push((b' ', text.clone()));
            }
        }
    }
    lines.append(&mut added);
    Hunk { start: hunk.new_start, new_start: hunk.start, old_count: hunk.new_count, new_count: hunk.old_count, lines }
}

/// Applies all hunks to `original`; with `watch`, stops when the first one seems to be there already.
pub(super) fn apply(original: &[u8], patch: &Patch, reverse: bool, max_fuzz: usize, watch: bool) -> Applied {
    let mut lines: Vec<Vec<u8>> = original.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    let mut applied = Applied { content: Vec::new(), messages: Vec::new(), rejects: Vec::new(), reversed: false, fuzzy: false };
    // How far lines have moved: by what earlier hunks added, and by how far they were from their place.
    let (mut grown, mut drift, mut floor) = (0isize, 0isize, 0usize);
    for (index, hunk) in patch.hunks.iter().enumerate() {
        let hunk = if reverse { reversed(hunk) } else { hunk.clone() };
        let base = hunk.start as isize - isize::from(hunk.old_count > 0);
        let expected = base + grown + drift;
        let mut found = None;
        for fuzz in 0..=max_fuzz {
            if let Some((at, first, last)) = locate(&lines, &hunk, expected, floor, fuzz) {
                found = Some((at, first, last, fuzz));
                break;
            }
            if index == 0 && watch {
                let back = reversed(&hunk);
                let base = back.start as isize - isize::from(back.old_count > 0);
                if back.old_count > 0 && locate(&lines, &back, base, 0, fuzz).is_some() {
                    applied.reversed = true;
                    return applied;
                }
            }
        }
        let Some((at, first, last, fuzz)) = found else {
            applied.messages.push(format!("Hunk #{} FAILED at {}.", index + 1, hunk.start as isize + grown));
            applied.rejects.push(hunk);
            continue;
        };
        let offset = at as isize - first as isize - (base + grown);
        if fuzz > 0 || offset != 0 {
            let fuzzed = if fuzz > 0 { format!(" with fuzz {fuzz}") } else { String::new() };
            let moved = if offset != 0 {
                format!(" (offset {offset} line{})", if offset.abs() == 1 { "" } else { "s" })
            } else {
                String::new()
            };
            let line = hunk.new_start as isize + offset;
            applied.messages.push(format!("Hunk #{} succeeded at {line}{fuzzed}{moved}.", index + 1));
            applied.fuzzy = true;
        }
        drift = offset;
        let used = &hunk.lines[first..hunk.lines.len() - last];
        let removed = used.iter().filter(|line| line.0 != b'+').count();
        let mut old_at = at;
        let mut inserted = Vec::new();
        for (mark, text) in used {
            match mark {
                b'+' => inserted.push(text.clone()),
                b' ' => {
                    // The file's own line stays, whatever its line end.
                    inserted.push(lines[old_at].clone());
                    old_at += 1;
                }
                _ => old_at += 1,
            }
        }
        let added = inserted.len();
        if at > 0 && at == lines.len() && lines[at - 1].last() != Some(&b'\n') && added > 0 && removed == 0 {
            lines[at - 1].push(b'\n');
        }
        lines.splice(at..at + removed, inserted);
        grown += added as isize - removed as isize;
        floor = at + added;
    }
    applied.content = lines.concat();
    applied
}

/// Returns where the old side of a hunk is, nearest to `expected`; how many lines of context were left out on each end.
fn locate(lines: &[Vec<u8>], hunk: &Hunk, expected: isize, floor: usize, fuzz: usize) -> Option<(usize, usize, usize)> {
    let before = hunk.lines.iter().take_while(|line| line.0 == b' ').count();
    let after = hunk.lines.iter().rev().take_while(|line| line.0 == b' ').count();
    let context = before.max(after);
    let first = (fuzz + before).saturating_sub(context).min(before);
    let last = (fuzz + after).saturating_sub(context).min(after);
    if fuzz > 0 && first == 0 && last == 0 {
        return None;
    }
    let wanted: Vec<&Vec<u8>> =
        hunk.lines[first..hunk.lines.len() - last].iter().filter(|line| line.0 != b'+').map(|line| &line.1).collect();
    let matches =
        |at: usize| wanted.iter().enumerate().all(|(index, text)| lines.get(at + index).is_some_and(|line| line == *text));
    let start = expected + first as isize;
    let most = lines.len().checked_sub(wanted.len())? as isize;
    // A hunk with less context before than after starts at the file's beginning, and only there; with less after, it ends
    // with the file.
    if fuzz + before < context && hunk.start <= 1 && hunk.old_count > 0 {
        return (floor == 0 && matches(0)).then_some((0, first, last));
    }
    if fuzz + after < context && hunk.old_count > 0 {
        return (most >= floor as isize && matches(most as usize)).then_some((most as usize, first, last));
    }
    let reach = (most - start).abs().max(start.abs()) + 1;
    for distance in 0..=reach {
        for at in [start + distance, start - distance] {
            if at >= floor as isize && at <= most && matches(at as usize) {
                return Some((at as usize, first, last));
            }
            if distance == 0 {
                break;
            }
        }
    }
    None
}

/// Returns the hunks that did not fit, as a unified diff.
pub(super) fn reject_text(patch: &Patch, hunks: &[Hunk]) -> Vec<u8> {
    let mut out = [b"--- ", patch.old.as_slice(), b"\n+++ ", &patch.new, b"\n"].concat();
    let range = |start: usize, count: usize| if count == 1 { start.to_string() } else { format!("{start},{count}") };
    for hunk in hunks {
        out.extend_from_slice(
            format!("@@ -{} +{} @@\n", range(hunk.start, hunk.old_count), range(hunk.new_start, hunk.new_count)).as_bytes(),
        );
        for (mark, text) in &hunk.lines {
            out.push(*mark);
            out.extend_from_slice(text);
            if text.last() != Some(&b'\n') {
                out.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
    out
}
