//! Which lines differ: Myers' shortest edit script in linear space, slid to where people expect it.

/// A stretch of lines that was replaced: lines `old` of the first file by lines `new` of the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub old: std::ops::Range<usize>,
    pub new: std::ops::Range<usize>,
}

struct Search<'a> {
    old: &'a [u32],
    new: &'a [u32],
    old_changed: Vec<bool>,
    new_changed: Vec<bool>,
    forward: Vec<isize>,
    backward: Vec<isize>,
}

/// Returns the changes between two files whose equal beginnings and ends are left out but for `horizon` lines: changes do not
/// slide into what was left out.
pub(crate) fn between(old: &[u32], new: &[u32], horizon: usize) -> Vec<Change> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - prefix;
    let suffix = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let skip = prefix.saturating_sub(horizon);
    let cut = suffix.saturating_sub(horizon);
    let mut changes = compare(&old[skip..old.len() - cut], &new[skip..new.len() - cut]);
    for change in &mut changes {
        change.old = change.old.start + skip..change.old.end + skip;
        change.new = change.new.start + skip..change.new.end + skip;
    }
    changes
}

/// Returns the lines of a file that the other one has too, and where they are.
fn common(lines: &[u32], other: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let known: std::collections::HashSet<u32> = other.iter().copied().collect();
    lines.iter().enumerate().filter(|(_, line)| known.contains(line)).map(|(at, line)| (*line, at)).unzip()
}

/// Returns whether each line changed: `changed` for the lines at the positions `at`, true for all others.
fn spread(length: usize, at: &[usize], changed: &[bool]) -> Vec<bool> {
    let mut all = vec![true; length];
    for (place, changed) in at.iter().zip(changed) {
        all[*place] = *changed;
    }
    all
}

/// Returns the changes from `old` to `new`; equal numbers are equal lines.
pub(crate) fn compare(old: &[u32], new: &[u32]) -> Vec<Change> {
    // Lines that only one file has are changed in any case; without them two unlike files are compared at once.
    let ((old_common, old_at), (new_common, new_at)) = (common(old, new), common(new, old));
    let diagonals = old_common.len() + new_common.len() + 3;
    let mut search = Search {
        old: &old_common,
        new: &new_common,
        old_changed: vec![false; old_common.len()],
        new_changed: vec![false; new_common.len()],
        forward: vec![0; diagonals],
        backward: vec![0; diagonals],
    };
    search.section(0, old_common.len() as isize, 0, new_common.len() as isize);
    let mut old_changed = spread(old.len(), &old_at, &search.old_changed);
    let mut new_changed = spread(new.len(), &new_at, &search.new_changed);
    slide(&mut old_changed, &new_changed, old);
    slide(&mut new_changed, &old_changed, new);
    let mut changes = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        let (old_start, new_start) = (i, j);
        while i < old.len() && old_changed[i] {
            i += 1;
        }
        while j < new.len() && new_changed[j] {
            j += 1;
        }
        if i > old_start || j > new_start {
            changes.push(Change { old: old_start..i, new: new_start..j });
        }
        i += 1;
        j += 1;
    }
    changes
}

impl Search<'_> {
    fn same(&self, x: isize, y: isize) -> bool {
        self.old[x as usize] == self.new[y as usize]
    }

    fn section(&mut self, mut x: isize, mut x_end: isize, mut y: isize, mut y_end: isize) {
        while x < x_end && y < y_end && self.same(x, y) {
            x += 1;
            y += 1;
        }
        while x < x_end && y < y_end && self.same(x_end - 1, y_end - 1) {
            x_end -= 1;
            y_end -= 1;
        }
        if x == x_end {
            self.new_changed[y as usize..y_end as usize].fill(true);
        } else if y == y_end {
            self.old_changed[x as usize..x_end as usize].fill(true);
        } else {
            let (x_middle, y_middle) = self.middle(x, x_end, y, y_end);
            self.section(x, x_middle, y, y_middle);
            self.section(x_middle, x_end, y_middle, y_end);
        }
    }

    /// Returns a point on a shortest path, found by searching from both corners until the searches meet.
    fn middle(&mut self, x: isize, x_end: isize, y: isize, y_end: isize) -> (isize, isize) {
        let shift = self.new.len() as isize + 1;
        let at = |diagonal: isize| (diagonal + shift) as usize;
        let (lowest, highest) = (x - y_end, x_end - y);
        let (forward_middle, backward_middle) = (x - y, x_end - y_end);
        let odd = (forward_middle - backward_middle) & 1 != 0;
        let (mut f_low, mut f_high) = (forward_middle, forward_middle);
        let (mut b_low, mut b_high) = (backward_middle, backward_middle);
        self.forward[at(forward_middle)] = x;
        self.backward[at(backward_middle)] = x_end;
        loop {
            if f_low > lowest {
                f_low -= 1;
                self.forward[at(f_low - 1)] = -1;
            } else {
                f_low += 1;
            }
            if f_high < highest {
                f_high += 1;
                self.forward[at(f_high + 1)] = -1;
            } else {
                f_high -= 1;
            }
            let mut diagonal = f_high;
            while diagonal >= f_low {
                let (low, high) = (self.forward[at(diagonal - 1)], self.forward[at(diagonal + 1)]);
                let mut i = if low < high { high } else { low + 1 };
                let mut j = i - diagonal;
                while i < x_end && j < y_end && self.same(i, j) {
                    i += 1;
                    j += 1;
                }
                self.forward[at(diagonal)] = i;
                if odd && b_low <= diagonal && diagonal <= b_high && self.backward[at(diagonal)] <= i {
                    return (i, j);
                }
                diagonal -= 2;
            }
            if b_low > lowest {
                b_low -= 1;
                self.backward[at(b_low - 1)] = isize::MAX;
            } else {
                b_low += 1;
            }
            if b_high < highest {
                b_high += 1;
                self.backward[at(b_high + 1)] = isize::MAX;
            } else {
                b_high -= 1;
            }
            let mut diagonal = b_high;
            while diagonal >= b_low {
                let (low, high) = (self.backward[at(diagonal - 1)], self.backward[at(diagonal + 1)]);
                let mut i = if low < high { low } else { high - 1 };
                let mut j = i - diagonal;
                while x < i && y < j && self.same(i - 1, j - 1) {
                    i -= 1;
                    j -= 1;
                }
                self.backward[at(diagonal)] = i;
                if !odd && f_low <= diagonal && diagonal <= f_high && i <= self.forward[at(diagonal)] {
                    return (i, j);
                }
                diagonal -= 2;
            }
        }
    }
}

/// Moves each run of changed lines as far down as it goes, joining runs on the way, but back to a run in the other
/// file when it can stand beside one.
fn slide(changed: &mut [bool], other: &[bool], lines: &[u32]) {
    let end = lines.len();
    let is = |flags: &[bool], at: isize| at >= 0 && (at as usize) < flags.len() && flags[at as usize];
    let (mut i, mut j) = (0usize, 0isize);
    loop {
        while i < end && !changed[i] {
            while is(other, j) {
                j += 1;
            }
            j += 1;
            i += 1;
        }
        if i == end {
            return;
        }
        let mut start = i;
        while i < end && changed[i] {
            i += 1;
        }
        while is(other, j) {
            j += 1;
        }
        let mut corresponding;
        loop {
            let length = i - start;
            while start > 0 && lines[start - 1] == lines[i - 1] {
                start -= 1;
                i -= 1;
                changed[start] = true;
                changed[i] = false;
                while start > 0 && changed[start - 1] {
                    start -= 1;
                }
                j -= 1;
                while is(other, j) {
                    j -= 1;
                }
            }
            corresponding = if is(other, j - 1) { i } else { end };
            while i != end && lines[start] == lines[i] {
                changed[start] = false;
                changed[i] = true;
                start += 1;
                i += 1;
                while i < end && changed[i] {
                    i += 1;
                }
                j += 1;
                while is(other, j) {
                    corresponding = i;
                    j += 1;
                }
            }
            if length == i - start {
                break;
            }
        }
        while corresponding < i {
            start -= 1;
            i -= 1;
            changed[start] = true;
            changed[i] = false;
            j -= 1;
            while is(other, j) {
                j -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inserted_line_is_found() {
        assert_eq!(compare(&[1, 2, 3], &[1, 4, 2, 3]), [Change { old: 1..1, new: 1..2 }]);
    }

    #[test]
    fn everything_differs() {
        assert_eq!(compare(&[1, 2], &[3]), [Change { old: 0..2, new: 0..1 }]);
        assert_eq!(compare(&[], &[3]), [Change { old: 0..0, new: 0..1 }]);
    }

    #[test]
    fn a_repeated_block_is_added_at_its_end() {
        assert_eq!(compare(&[1, 2], &[1, 2, 1, 2]), [Change { old: 2..2, new: 2..4 }]);
    }
}
