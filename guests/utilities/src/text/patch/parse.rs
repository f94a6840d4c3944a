//! Reading diffs: unified, context and normal hunks behind the names of their files.

/// Lines with their marks.
type Marked = Vec<(u8, Vec<u8>)>;

/// One hunk: the lines it expects and the lines it produces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hunk {
    /// First line in the old file, from 1.
    pub start: usize,
    /// Mark (` `, `-`, `+`) and text, with its newline if it has one.
    pub lines: Vec<(u8, Vec<u8>)>,
    pub old_count: usize,
    pub new_start: usize,
    pub new_count: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Patch {
    pub old: Vec<u8>,
    pub new: Vec<u8>,
    pub index: Vec<u8>,
    pub hunks: Vec<Hunk>,
    old_epoch: bool,
    new_epoch: bool,
}

impl Patch {
    pub fn creates(&self) -> bool {
        (self.old == b"/dev/null" || self.old_epoch) && self.hunks.iter().all(|hunk| hunk.old_count == 0)
    }

    pub fn deletes(&self) -> bool {
        (self.new == b"/dev/null" || self.new_epoch) && self.hunks.iter().all(|hunk| hunk.new_count == 0)
    }
}

/// Returns the name in a `---` line, and whether its time is that of a file that does not exist.
fn name(line: &[u8]) -> (Vec<u8>, bool) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if let Some((name, rest)) = quoted(line) {
        return (name, rest.trim_ascii().starts_with(b"1970-01-01 00:00:00"));
    }
    let (name, time) = match memchr::memchr(b'\t', line) {
        Some(tab) => (&line[..tab], &line[tab + 1..]),
        None => (line, &b""[..]),
    };
    (name.to_vec(), time.starts_with(b"1970-01-01 00:00:00"))
}

/// Returns a name in double quotes with C escapes, as `git` and `diff` write unusual ones, and what follows it.
fn quoted(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = line.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                rest = after;
                name.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    b'0'..=b'7' => {
                        let digits = rest.iter().take(2).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                        let value = rest[..digits]
                            .iter()
                            .fold(u32::from(escape - b'0'), |value, digit| value << 3 | u32::from(digit - b'0'));
                        rest = &rest[digits..];
                        u8::try_from(value).ok()?
                    }
                    other => other,
                });
            }
            byte => name.push(byte),
        }
    }
}

fn pair(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

fn unified_head(line: &[u8]) -> Option<Hunk> {
    let text = String::from_utf8_lossy(line).into_owned();
    let body = text.strip_prefix("@@ -")?;
    let (old, rest) = body.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let ((start, old_count), (new_start, new_count)) = (pair(old)?, pair(new)?);
    Some(Hunk { start, old_count, new_start, new_count, lines: Vec::new() })
}

/// Returns all patches in a text.
pub(super) fn patches(text: &[u8]) -> Vec<Patch> {
    let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let mut patches: Vec<Patch> = Vec::new();
    let mut index = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(rest) = line.strip_prefix(b"Index: ") {
            index = rest.trim_ascii().to_vec();
            at += 1;
        } else if is_head(&lines[at..]) {
            let ((old, old_epoch), (new, new_epoch)) = (name(&line[4..]), name(&lines[at + 1][4..]));
            patches.push(Patch { old, new, index: std::mem::take(&mut index), hunks: Vec::new(), old_epoch, new_epoch });
            at += 2;
        } else if let Some(hunk) = unified_head(line) {
            let (hunk, next) = unified(hunk, &lines, at + 1);
            at = next;
            if let Some(patch) = patches.last_mut() {
                patch.hunks.push(hunk);
            }
        } else if line.starts_with(b"***************") {
            let (hunk, next) = context(&lines, at + 1);
            at = next.max(at + 1);
            if let (Some(patch), Some(hunk)) = (patches.last_mut(), hunk) {
                patch.hunks.push(hunk);
            }
        } else if let Some((hunk, next)) = normal(&lines, at) {
            if patches.is_empty() {
                patches.push(Patch { index: std::mem::take(&mut index), ..Patch::default() });
            }
            if let Some(patch) = patches.last_mut() {
                patch.hunks.push(hunk);
            }
            at = next;
        } else {
            at += 1;
        }
    }
    patches.retain(|patch| !patch.hunks.is_empty());
    patches
}

/// Returns whether the names of two files stand here: `---` and `+++`, or `***` and `---`.
fn is_head(lines: &[&[u8]]) -> bool {
    let starts = |at: usize, mark: &[u8]| lines.get(at).is_some_and(|line| line.starts_with(mark));
    starts(0, b"--- ") && starts(1, b"+++ ") || starts(0, b"*** ") && starts(1, b"--- ") && starts(2, b"***************")
}

fn no_newline(lines: &mut [(u8, Vec<u8>)]) {
    if let Some(last) = lines.last_mut() {
        last.1.pop();
    }
}

fn unified(mut hunk: Hunk, lines: &[&[u8]], mut at: usize) -> (Hunk, usize) {
    let (mut old, mut new) = (hunk.old_count, hunk.new_count);
    while at < lines.len() {
        let line = lines[at];
        match line.first() {
            Some(b'\\') => {
                no_newline(&mut hunk.lines);
                at += 1;
                continue;
            }
            _ if old == 0 && new == 0 => break,
            Some(mark @ (b' ' | b'-' | b'+')) => {
                old -= usize::from(*mark != b'+' && old > 0);
                new -= usize::from(*mark != b'-' && new > 0);
                hunk.lines.push((*mark, line[1..].to_vec()));
            }
            Some(b'\n') => {
                old = old.saturating_sub(1);
                new = new.saturating_sub(1);
                hunk.lines.push((b' ', b"\n".to_vec()));
            }
            _ => break,
        }
        at += 1;
    }
    (hunk, at)
}

fn context(lines: &[&[u8]], mut at: usize) -> (Option<Hunk>, usize) {
    let mut read = |open: &[u8], close: &[u8]| -> Option<(usize, Marked)> {
        let head = lines.get(at)?.strip_prefix(open)?;
        let range = String::from_utf8_lossy(head).into_owned();
        let range = range.split(' ').next()?.to_string();
        let start = range.split(',').next()?.parse().ok()?;
        at += 1;
        let mut side = Vec::new();
        while let Some(line) = lines.get(at) {
            if line.starts_with(b"\\") {
                no_newline(&mut side);
            } else if line.starts_with(close)
                || line.starts_with(b"***************")
                || line.len() < 2
                || line.starts_with(b"*** ")
                || line.starts_with(b"diff ")
            {
                break;
            } else {
                side.push((line[0], line[2..].to_vec()));
            }
            at += 1;
        }
        Some((start, side))
    };
    let Some((start, old)) = read(b"*** ", b"--- ") else { return (None, at) };
    let Some((new_start, new)) = read(b"--- ", b"\0") else { return (None, at) };
    let mut hunk = Hunk { start, new_start, ..Hunk::default() };
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if old.get(i).is_some_and(|line| line.0 != b' ') {
            hunk.lines.push((b'-', old[i].1.clone()));
            i += 1;
        } else if new.get(j).is_some_and(|line| line.0 != b' ') {
            hunk.lines.push((b'+', new[j].1.clone()));
            j += 1;
        } else {
            // One side may be left out when it only has context.
            let line = old.get(i).or_else(|| new.get(j)).map(|line| line.1.clone()).unwrap_or_default();
            hunk.lines.push((b' ', line));
            i += 1;
            j += 1;
        }
    }
    hunk.old_count = hunk.lines.iter().filter(|line| line.0 != b'+').count();
    hunk.new_count = hunk.lines.iter().filter(|line| line.0 != b'-').count();
    (Some(hunk), at)
}

fn normal(lines: &[&[u8]], at: usize) -> Option<(Hunk, usize)> {
    let head = String::from_utf8_lossy(lines[at]).trim_end().to_string();
    let letter = head.find(['a', 'c', 'd'])?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (first, last) = text.split_once(',').unwrap_or((text, text));
        Some((first.parse().ok()?, last.parse().ok()?))
    };
    let (old, new) = (range(&head[..letter])?, range(&head[letter + 1..])?);
    let kind = head.as_bytes()[letter];
    let mut hunk = Hunk { start: old.0, new_start: new.0, ..Hunk::default() };
    let mut at = at + 1;
    while let Some(line) = lines.get(at) {
        if let Some(text) = line.strip_prefix(b"< ") {
            hunk.lines.push((b'-', text.to_vec()));
        } else if let Some(text) = line.strip_prefix(b"> ") {
            hunk.lines.push((b'+', text.to_vec()));
        } else if line.starts_with(b"\\") {
            no_newline(&mut hunk.lines);
        } else if !line.starts_with(b"---\n") {
            break;
        }
        at += 1;
    }
    if kind == b'a' {
        hunk.start += 1;
    }
    hunk.old_count = hunk.lines.iter().filter(|line| line.0 == b'-').count();
    hunk.new_count = hunk.lines.iter().filter(|line| line.0 == b'+').count();
    Some((hunk, at))
}
