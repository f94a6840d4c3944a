//! `fmt`: paragraphs filled anew, with the breaks that make their lines most even.

use crate::lines::Lines;
use crate::options::{self, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, bytes, fail, or_stdin, warn};
use crate::quote;

/// How many columns a tab reaches.
const TAB: usize = 8;

/// Wishes of a paragraph, weighed against each other as squares of columns.
mod weight {
    /// One column away from the goal.
    pub const SHORT: i64 = 100;
    /// One column's difference between neighbouring lines.
    pub const RAGGED: i64 = 50;
    /// Having a line at all.
    pub const LINE: i64 = 70 * 70;
    /// A last word of a sentence that begins a line, by its length.
    pub const WIDOW: i64 = 200 * 200;
    /// A first word of a sentence that ends a line, by its length.
    pub const ORPHAN: i64 = 150 * 150;
    /// A sentence that ends with the line.
    pub const SENTENCE: i64 = 50 * 50;
    /// A break after a full stop that may not end a sentence.
    pub const NO_BREAK: i64 = 600 * 600;
    /// A line that begins with a parenthesis.
    pub const PAREN: i64 = 40 * 40;
    /// A line that ends with punctuation.
    pub const PUNCTUATION: i64 = 40 * 40;
}

struct Word {
    text: Vec<u8>,
    /// Blanks after it.
    space: usize,
    opens: bool,
    period: bool,
    punctuation: bool,
    /// Ends a sentence.
    last: bool,
}

#[derive(Default)]
struct Layout {
    width: usize,
    goal: usize,
    crown: bool,
    tagged: bool,
    split: bool,
    uniform: bool,
    prefix: Vec<u8>,
}

/// A line of input, looked at.
struct Line {
    text: Vec<u8>,
    /// Where the prefix begins, and where the words begin; nothing when the line is not to be filled.
    indents: Option<(usize, usize)>,
    body: usize,
}

/// Runs `fmt`.
pub fn main(mut args: Args) -> Outcome {
    let spec = Spec {
        short: "cp:stuw:g:0::1::2::3::4::5::6::7::8::9::",
        long: &[
            ("crown-margin", No, 'c'),
            ("prefix", Needs, 'p'),
            ("split-only", No, 's'),
            ("tagged-paragraph", No, 't'),
            ("uniform-spacing", No, 'u'),
            ("width", Needs, 'w'),
            ("goal", Needs, 'g'),
        ],
        help: "[-WIDTH] [OPTION]... [FILE]...",
    };
    // `-40` is `-w 40`, as the first argument only.
    if let Some(digits) = args.get(1).and_then(|arg| bytes(arg).strip_prefix(b"-").map(<[u8]>::to_vec))
        && digits.first().is_some_and(u8::is_ascii_digit)
    {
        args[1] = crate::program::os([b"-w".as_slice(), &digits].concat());
    }
    let given = options::parse(args, &spec)?;
    let number = |letter: char, most: usize| -> Result<Option<usize>, i32> {
        let Some(value) = given.value(letter) else { return Ok(None) };
        match value.to_str().and_then(|text| text.parse().ok()) {
            Some(value) if value <= most => Ok(Some(value)),
            Some(_) => Err(fail(format!("invalid width: {}: Numerical result out of range", quote::plain(value)))),
            None => Err(fail(format!("invalid width: {}", quote::plain(value)))),
        }
    };
    let width = number('w', 2500)?;
    let (width, goal) = match (width, number('g', width.unwrap_or(75))?) {
        (Some(width), Some(goal)) => (width, goal),
        (None, Some(goal)) => (goal + 10, goal),
        (width, None) => {
            let width = width.unwrap_or(75);
            (width, width * 187 / 200)
        }
    };
    let prefix = given.value('p').map(|text| bytes(text).trim_ascii_start().to_vec()).unwrap_or_default();
    let layout = Layout {
        width,
        goal,
        crown: given.has('c'),
        tagged: given.has('t'),
        split: given.has('s'),
        uniform: given.has('u'),
        prefix,
    };
    let mut out = Output::new();
    let mut status = 0;
    for file in or_stdin(given.operands.clone()) {
        let mut lines = match crate::program::open(&file) {
            Ok(input) => Lines::of_file(input, b'\n'),
            Err(error) => {
                out.send();
                warn(format!("cannot open {} for reading: {}", quote::always(&file), sys::message(&error)));
                status = 1;
                continue;
            }
        };
        let mut read = Vec::new();
        let result = loop {
            match lines.next_content() {
                Ok(Some(line)) => read.push(layout.look(line)),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        layout.file(&read, &mut out);
        if result.is_err() {
            out.send();
            warn("read error");
            status = 1;
        }
    }
    Ok(status)
}

/// Returns the column after the blanks at the start of `text`, from `column` on, and how many bytes they take.
fn skip_blanks(text: &[u8], mut column: usize) -> (usize, usize) {
    let mut at = 0;
    while let Some(byte @ (b' ' | b'\t')) = text.get(at) {
        column = if *byte == b'\t' { column / TAB * TAB + TAB } else { column + 1 };
        at += 1;
    }
    (column, at)
}

impl Layout {
    fn look(&self, line: &[u8]) -> Line {
        let (blanks, skipped) = skip_blanks(line, 0);
        let prefix_column = if self.prefix.is_empty() { 0 } else { blanks };
        let trimmed = self.prefix.trim_ascii_end();
        let rest = &line[skipped..];
        let mut indents = None;
        let mut body = 0;
        if rest.starts_with(trimmed) {
            let (column, blanks) = skip_blanks(&rest[trimmed.len()..], blanks + trimmed.len());
            body = skipped + trimmed.len() + blanks;
            let full = prefix_column + self.prefix.len();
            if body < line.len() && column >= full {
                indents = Some((prefix_column, column));
            }
        }
        Line { text: line.to_vec(), indents, body }
    }

    fn file(&self, lines: &[Line], out: &mut Output) {
        let tabs = lines.iter().any(|line| line.text.contains(&b'\t'));
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            let Some((prefix_column, first)) = line.indents else {
                // Blank lines and lines without the prefix stay as they are, but for blanks at the end.
                let kept = line.text.trim_ascii_end();
                if self.prefix.is_empty() {
                    out.line(b"", b'\n')
                } else {
                    out.line(kept, b'\n')
                }
                at += 1;
                continue;
            };
            let same = |line: Option<&Line>| line.and_then(|line| line.indents).filter(|(column, _)| *column == prefix_column);
            let mut end = at + 1;
            let second = same(lines.get(end)).map(|(_, column)| column);
            let other = match second {
                Some(column) if (self.crown || self.tagged) && !self.split => column,
                _ => first,
            };
            // A tag stands out from what follows; without that the line is a paragraph of its own.
            let joins = !self.split && (!self.tagged || other != first);
            while joins && same(lines.get(end)).is_some_and(|(_, column)| column == other) {
                end += 1;
            }
            let other = if self.tagged && end == at + 1 && second.is_none() { if first == 0 { 3 } else { 0 } } else { other };
            let words = self.words(&lines[at..end]);
            self.write(&words, prefix_column, first, other, tabs, out);
            at = end;
        }
    }

    fn words(&self, lines: &[Line]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        for line in lines {
            let mut rest = &line.text[line.body..];
            let mut column = 0;
            while !rest.is_empty() {
                let length = rest.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(rest.len());
                let text = rest[..length].to_vec();
                column += length;
                let (after, skipped) = skip_blanks(&rest[length..], column);
                rest = &rest[length + skipped..];
                let space = after - column;
                column = after;
                if text.is_empty() {
                    continue;
                }
                let core = text.trim_ascii_end();
                let closers = core.iter().rev().take_while(|byte| b")]'\"".contains(byte)).count();
                let core = core[..core.len() - closers].last().copied().unwrap_or(b' ');
                let period = matches!(core, b'.' | b'?' | b'!');
                let ends_line = rest.is_empty();
                let last = period && (ends_line || space > 1);
                let space = if ends_line || self.uniform { 1 + usize::from(last) } else { space };
                let opens = text.first().is_some_and(|byte| b"(['`\"".contains(byte));
                let punctuation = text.last().is_some_and(u8::is_ascii_punctuation);
                words.push(Word { text, space, opens, period, punctuation, last });
            }
        }
        // A paragraph ends a sentence, whatever its last word is.
        if let Some(word) = words.last_mut() {
            (word.period, word.last) = (true, true);
        }
        words
    }

    /// Returns where each line ends: the breaks whose lines cost least, found from the end backwards.
    fn breaks(&self, words: &[Word], first: usize, other: usize) -> Vec<usize> {
        let count = words.len();
        let mut cost = vec![0i64; count + 1];
        let mut next = vec![count; count + 1];
        let mut length = vec![0usize; count + 1];
        for start in (0..count).rev() {
            let mut best = i64::MAX;
            let mut column = if start == 0 { first } else { other };
            for end in start + 1..=count {
                column += words[end - 1].text.len();
                // A word that is alone on its line may be as long as it likes.
                if end > start + 1 && column >= self.width {
                    break;
                }
                let mut line = cost[end];
                if end < count {
                    let short = self.goal as i64 - column as i64;
                    line += short * short * weight::SHORT;
                    if next[end] != count {
                        let ragged = column as i64 - length[end] as i64;
                        line += ragged * ragged * weight::RAGGED;
                    }
                }
                if line < best {
                    best = line;
                    next[start] = end;
                    length[start] = column;
                }
                column += words[end - 1].space;
            }
            cost[start] = best + base(words, start);
        }
        next
    }

    fn write(&self, words: &[Word], prefix_column: usize, first: usize, other: usize, tabs: bool, out: &mut Output) {
        let next = self.breaks(words, first, other);
        let mut at = 0;
        while at < words.len() {
            let end = next[at];
            let mut column = 0;
            space(&mut column, prefix_column, tabs, out);
            let trimmed = self.prefix.trim_ascii_end();
            out.put(trimmed);
            column += trimmed.len();
            space(&mut column, if at == 0 { first } else { other }, tabs, out);
            for (index, word) in words[at..end].iter().enumerate() {
                out.put(&word.text);
                column += word.text.len();
                if at + index + 1 < end {
                    let target = column + word.space;
                    space(&mut column, target, tabs, out);
                }
            }
            out.byte(b'\n');
            at = end;
        }
    }
}

/// Returns the cost of beginning a line with this word.
fn base(words: &[Word], at: usize) -> i64 {
    let this = &words[at];
    let mut cost = weight::LINE;
    if at > 0 {
        let before = &words[at - 1];
        if before.period {
            cost += if before.last { -weight::SENTENCE } else { weight::NO_BREAK };
        } else if before.punctuation {
            cost -= weight::PUNCTUATION;
        } else if at > 1 && words[at - 2].last {
            cost += weight::WIDOW / (before.text.len() as i64 + 2);
        }
    }
    if this.opens {
        cost -= weight::PAREN;
    } else if this.last {
        cost += weight::ORPHAN / (this.text.len() as i64 + 2);
    }
    cost
}

/// Advances to a column, with tabs where the input had some.
fn space(column: &mut usize, target: usize, tabs: bool, out: &mut Output) {
    let stop = target / TAB * TAB;
    if tabs && *column + 1 < stop {
        while *column < stop {
            out.byte(b'\t');
            *column = *column / TAB * TAB + TAB;
        }
    }
    while *column < target {
        out.byte(b' ');
        *column += 1;
    }
}
