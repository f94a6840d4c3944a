//! Dates as people write them: what GNU's `date -d` understands.

use common::strftime::{DAYS, MONTHS};
use sys::calendar;

use super::{SECOND, Zone};

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A number: sign if written, value, digits, nanoseconds after a point.
    Number {
        sign: Option<bool>,
        value: i64,
        digits: usize,
        fraction: Option<i64>,
    },
    Word(String),
    Mark(char),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            byte if byte.is_ascii_whitespace() => at += 1,
            b'(' => {
                let mut depth = 0;
                loop {
                    match bytes.get(at)? {
                        b'(' => depth += 1,
                        b')' => depth -= 1,
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            b'+' | b'-' => {
                let mut next = at + 1;
                while bytes.get(next).is_some_and(u8::is_ascii_whitespace) {
                    next += 1;
                }
                // A sign before a word is only a hyphen: 25-Dec-2023.
                at = if bytes.get(next).is_some_and(u8::is_ascii_digit) {
                    number(bytes, next, Some(byte == b'-'), &mut out)?
                } else {
                    next
                };
            }
            b'0'..=b'9' => at = number(bytes, at, None, &mut out)?,
            byte if byte.is_ascii_alphabetic() => {
                let length = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'.').count();
                out.push(Token::Word(text[at..at + length].to_ascii_lowercase().replace('.', "")));
                at += length;
            }
            byte => {
                out.push(Token::Mark(char::from(byte)));
                at += 1;
            }
        }
    }
    Some(out)
}

fn number(bytes: &[u8], start: usize, sign: Option<bool>, out: &mut Vec<Token>) -> Option<usize> {
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = start + digits;
    let value: i64 = std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?;
    let mut fraction = None;
    if matches!(bytes.get(end), Some(b'.' | b',')) && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        let count = bytes[end + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text: String =
            std::str::from_utf8(&bytes[end + 1..end + 1 + count]).ok()?.chars().chain("000000000".chars()).take(9).collect();
        fraction = text.parse().ok();
        end += 1 + count;
    }
    out.push(Token::Number { sign, value: if sign == Some(true) { -value } else { value }, digits, fraction });
    Some(end)
}

#[derive(Clone, Copy, Default)]
struct Relative {
    years: i64,
    months: i64,
    days: i64,
    seconds: i64,
    nanoseconds: i64,
}

#[derive(Default)]
struct Found {
    date: Option<(i64, i64, i64)>,
    year_given: bool,
    time: Option<(i64, i64, i64, i64)>,
    zone: Option<i64>,
    weekday: Option<(i64, u32)>,
    relative: Relative,
    relatives: u32,
}

/// Returns the moment that `text` means, counted from `now` in a zone.
pub fn parse(text: &str, now: i128, zone: &Zone) -> Option<i128> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("TZ=\"") {
        let (name, rest) = rest.split_once('"')?;
        return parse(rest, now, &Zone::named(name));
    }
    if let Some(epoch) = text.strip_prefix('@') {
        return epoch_seconds(epoch);
    }
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, found: Found::default() };
    let here = now.div_euclid(SECOND) as i64;
    let local = here + zone.at(here).0;
    let today = calendar::from_days(local.div_euclid(86400));
    while reader.at < tokens.len() {
        reader.item(today.0)?;
    }
    resolve(&reader.found, now, local, today, zone)
}

fn epoch_seconds(text: &str) -> Option<i128> {
    let (negative, digits) = text.trim().strip_prefix('-').map_or((false, text.trim()), |digits| (true, digits));
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let (whole, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, ""));
    let seconds: i128 = whole.parse::<i64>().ok()?.into();
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanoseconds: i128 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let total = seconds * SECOND + nanoseconds;
    Some(if negative { -total } else { total })
}

fn resolve(found: &Found, now: i128, local: i64, today: (i64, u32, u32), zone: &Zone) -> Option<i128> {
    let keep_time = found.time.is_none() && found.relatives > 0 && found.date.is_none() && found.weekday.is_none();
    let (seconds, nanoseconds) = match found.time {
        Some((hour, minute, second, nanosecond)) => (hour * 3600 + minute * 60 + second, nanosecond),
        None if keep_time => (local.rem_euclid(86400), now.rem_euclid(SECOND) as i64),
        None => (0, 0),
    };
    let (year, month, day) = found.date.unwrap_or((today.0, today.1.into(), today.2.into()));
    if !(1..=12).contains(&month) || day < 1 || day > calendar::days_in_month(year, month as u32).into() {
        return None;
    }
    let mut day_offset = 0;
    if let (Some((ordinal, weekday)), None) = (found.weekday, found.date) {
        let current = i64::from(calendar::weekday(calendar::to_days(year, month, day)));
        let wanted = i64::from(weekday);
        day_offset = (wanted - current).rem_euclid(7) + 7 * (ordinal - i64::from(ordinal > 0 && current != wanted));
    }
    let relative = found.relative;
    let days = calendar::to_days(year.checked_add(relative.years)?, month.checked_add(relative.months)?, 1)
        .checked_add(day - 1 + day_offset)?
        .checked_add(relative.days)?;
    let clock = days.checked_mul(86400)?.checked_add(seconds)?;
    let utc = match found.zone {
        Some(offset) => clock - offset,
        None => zone.to_utc(clock),
    };
    Some(i128::from(utc.checked_add(relative.seconds)?) * SECOND + i128::from(nanoseconds) + i128::from(relative.nanoseconds))
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    found: Found,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead)
    }

    fn word(&self, ahead: usize) -> Option<&str> {
        match self.peek(ahead) {
            Some(Token::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn unsigned(&self, ahead: usize) -> Option<(i64, usize)> {
        match self.peek(ahead) {
            Some(Token::Number { sign: None, value, digits, .. }) => Some((*value, *digits)),
            _ => None,
        }
    }

    fn negative(&self, ahead: usize) -> Option<(i64, usize)> {
        match self.peek(ahead) {
            Some(Token::Number { sign: Some(true), value, digits, fraction: None }) => Some((-value, *digits)),
            _ => None,
        }
    }

    fn mark(&self, ahead: usize, mark: char) -> bool {
        self.peek(ahead) == Some(&Token::Mark(mark))
    }

    fn set_date(&mut self, year: Option<i64>, month: i64, day: i64, this_year: i64) -> Option<()> {
        self.found.year_given |= year.is_some();
        self.found.date.replace((year.unwrap_or(this_year), month, day)).is_none().then_some(())
    }

    fn item(&mut self, this_year: i64) -> Option<()> {
        match self.peek(0)?.clone() {
            Token::Mark(',') => {
                self.at += 1;
                Some(())
            }
            Token::Mark(_) => None,
            Token::Number { sign: Some(_), value, .. } => {
                let unit = self.word(1)?.to_owned();
                self.at += 2;
                self.add(&unit, value)
            }
            Token::Number { sign: None, value, digits, fraction } => self.number(value, digits, fraction, this_year),
            Token::Word(word) => self.named(&word, this_year),
        }
    }

    fn number(&mut self, value: i64, digits: usize, fraction: Option<i64>, this_year: i64) -> Option<()> {
        if self.mark(1, ':') {
            return self.time(value);
        }
        if self.mark(1, '/') {
            return self.slashed(value, digits, this_year);
        }
        if let (Some((month, _)), Some((day, _))) = (self.negative(1), self.negative(2)) {
            self.at += 3;
            if self.word(0) == Some("t") && self.unsigned(1).is_some() {
                self.at += 1;
            }
            return self.set_date(Some(full_year(value, digits)), month, day, this_year);
        }
        if let Some(word) = self.word(1).map(str::to_owned) {
            if let Some(hour) = meridian(&word, value) {
                self.at += 2;
                return self.set_time((hour?, 0, 0, 0));
            }
            if let Some(month) = month(&word) {
                self.at += 2;
                let year = match (self.negative(0), self.unsigned(0)) {
                    (Some(year), _) => Some(year),
                    (_, Some(year))
                        if !self.mark(1, ':')
                            && !self.word(1).is_some_and(|word| unit(word).is_some() || meridian(word, 1).is_some()) =>
                    {
                        Some(year)
                    }
                    _ => None,
                };
                if year.is_some() {
                    self.at += 1;
                }
                return self.set_date(year.map(|(year, digits)| full_year(year, digits)), month, value, this_year);
            }
            if let Some(day) = weekday(&word) {
                self.at += 2;
                return self.set_weekday(value, day);
            }
            if unit(&word).is_some() {
                self.at += 2;
                if let (Some(fraction), "s" | "sec" | "secs" | "second" | "seconds") = (fraction, word.as_str()) {
                    self.found.relative.nanoseconds += fraction;
                }
                return self.add(&word, value);
            }
        }
        self.at += 1;
        if fraction.is_some() {
            return None;
        }
        self.lonely(value, digits, this_year)
    }

    /// Reads a number without a unit.
    fn lonely(&mut self, value: i64, digits: usize, this_year: i64) -> Option<()> {
        if let Some((year, ..)) = &mut self.found.date
            && !self.found.year_given
            && self.found.relatives == 0
            && (self.found.time.is_some() || digits > 2)
        {
            *year = full_year(value, digits);
            self.found.year_given = true;
            return Some(());
        }
        if digits > 4 {
            return self.set_date(Some(full_year(value / 10000, digits - 4)), value / 100 % 100, value % 100, this_year);
        }
        if digits <= 2 { self.set_time((value, 0, 0, 0)) } else { self.set_time((value / 100, value % 100, 0, 0)) }
    }

    fn time(&mut self, hour: i64) -> Option<()> {
        let (minute, _) = self.unsigned(2)?;
        let mut clock = (hour, minute, 0, 0);
        self.at += 3;
        if self.mark(0, ':') {
            let Some(Token::Number { sign: None, value, fraction, .. }) = self.peek(1) else { return None };
            (clock.2, clock.3) = (*value, fraction.unwrap_or(0));
            self.at += 2;
        }
        if let Some(hour) = self.word(0).and_then(|word| meridian(word, hour)) {
            clock.0 = hour?;
            self.at += 1;
        }
        self.set_time(clock)?;
        // `12:00 +2 days` is the zone +2 and then one day: so it is to GNU.
        if let Some(Token::Number { sign: Some(_), .. }) = self.peek(0) {
            let offset = self.offset()?;
            self.set_zone(offset)?;
        }
        Some(())
    }

    fn offset(&mut self) -> Option<i64> {
        let Some(Token::Number { sign: Some(negative), value, digits, .. }) = self.peek(0).cloned() else { return None };
        self.at += 1;
        let size = value.abs();
        let seconds = if self.mark(0, ':') {
            let (minutes, _) = self.unsigned(1)?;
            self.at += 2;
            size * 3600 + minutes * 60
        } else if digits <= 2 {
            size * 3600
        } else {
            size / 100 * 3600 + size % 100 * 60
        };
        (seconds <= 24 * 3600).then_some(if negative { -seconds } else { seconds })
    }

    fn slashed(&mut self, first: i64, digits: usize, this_year: i64) -> Option<()> {
        let (second, _) = self.unsigned(2)?;
        self.at += 3;
        if !self.mark(0, '/') {
            return self.set_date(None, first, second, this_year);
        }
        let (third, third_digits) = self.unsigned(1)?;
        self.at += 2;
        if digits >= 4 {
            self.set_date(Some(first), second, third, this_year)
        } else {
            self.set_date(Some(full_year(third, third_digits)), first, second, this_year)
        }
    }

    fn set_time(&mut self, clock: (i64, i64, i64, i64)) -> Option<()> {
        if clock.0 > 23 || clock.1 > 59 || clock.2 > 60 {
            return None;
        }
        self.found.time.replace(clock).is_none().then_some(())
    }

    fn set_zone(&mut self, offset: i64) -> Option<()> {
        self.found.zone.replace(offset).is_none().then_some(())
    }

    fn set_weekday(&mut self, ordinal: i64, day: u32) -> Option<()> {
        self.found.weekday.replace((ordinal, day)).is_none().then_some(())
    }

    fn named(&mut self, word: &str, this_year: i64) -> Option<()> {
        self.at += 1;
        if let Some(month) = month(word) {
            if let (Some((day, _)), Some((year, digits))) = (self.negative(0), self.negative(1)) {
                self.at += 2;
                return self.set_date(Some(full_year(year, digits)), month, day, this_year);
            }
            let (day, _) = self.unsigned(0)?;
            self.at += 1;
            if self.mark(0, ',')
                && let Some((year, digits)) = self.unsigned(1)
                && !self.mark(2, ':')
            {
                self.at += 2;
                return self.set_date(Some(full_year(year, digits)), month, day, this_year);
            }
            return self.set_date(None, month, day, this_year);
        }
        if let Some(day) = weekday(word) {
            return self.set_weekday(0, day);
        }
        if let Some(ordinal) = ordinal(word) {
            let next = self.word(0)?.to_owned();
            self.at += 1;
            return match weekday(&next) {
                Some(day) => self.set_weekday(ordinal, day),
                None => self.add(&next, ordinal),
            };
        }
        match word {
            "now" | "today" => {
                self.found.relatives += 1;
                return Some(());
            }
            "tomorrow" => return self.add("day", 1),
            "yesterday" => return self.add("day", -1),
            "dst" => return Some(()),
            _ => {}
        }
        if unit(word).is_some() {
            return self.add(word, 1);
        }
        let mut offset = zone_offset(word)?;
        if let Some(Token::Number { sign: Some(_), .. }) = self.peek(0)
            && self.word(1).is_none_or(|word| unit(word).is_none())
        {
            offset += self.offset()?;
        }
        self.set_zone(offset)
    }

    fn add(&mut self, name: &str, amount: i64) -> Option<()> {
        let (field, scale) = unit(name)?;
        let mut amount = amount.checked_mul(scale)?;
        if self.word(0) == Some("ago") {
            self.at += 1;
            amount = -amount;
        } else if self.word(0) == Some("hence") {
            self.at += 1;
        }
        self.found.relatives += 1;
        let relative = &mut self.found.relative;
        let slot = match field {
            'y' => &mut relative.years,
            'm' => &mut relative.months,
            'd' => &mut relative.days,
            _ => &mut relative.seconds,
        };
        *slot = slot.checked_add(amount)?;
        Some(())
    }
}

fn full_year(year: i64, digits: usize) -> i64 {
    match (digits, year) {
        (0..=2, 0..69) => year + 2000,
        (0..=2, 69..100) => year + 1900,
        _ => year,
    }
}

/// Reads an hour; `None` for an unknown word, `Some(None)` if the hour does not fit.
fn meridian(word: &str, hour: i64) -> Option<Option<i64>> {
    let afternoon = match word {
        "am" => false,
        "pm" => true,
        _ => return None,
    };
    Some(match (hour, afternoon) {
        (12, false) => Some(0),
        (12, true) => Some(12),
        (1..=11, false) => Some(hour),
        (1..=11, true) => Some(hour + 12),
        _ => None,
    })
}

fn month(word: &str) -> Option<i64> {
    let at = MONTHS.iter().position(|name| {
        let name = name.to_ascii_lowercase();
        name == word || name[..3] == *word
    });
    at.or_else(|| (word == "sept").then_some(8)).map(|at| at as i64 + 1)
}

fn weekday(word: &str) -> Option<u32> {
    let at = DAYS.iter().position(|name| {
        let name = name.to_ascii_lowercase();
        name == word || name[..3] == *word
    });
    let other = match word {
        "tues" => Some(2),
        "wednes" => Some(3),
        "thur" | "thurs" => Some(4),
        _ => None,
    };
    at.or(other).map(|at| at as u32)
}

fn ordinal(word: &str) -> Option<i64> {
    let numbers =
        ["first", "", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth"];
    match word {
        "last" => Some(-1),
        "this" => Some(0),
        "next" => Some(1),
        "" => None,
        word => numbers.iter().position(|name| *name == word).map(|at| at as i64 + 1),
    }
}

/// Returns the field and the number that a unit's name stands for.
fn unit(word: &str) -> Option<(char, i64)> {
    let single = word.strip_suffix('s').filter(|rest| rest.len() > 1).unwrap_or(word);
    Some(match single {
        "year" => ('y', 1),
        "month" => ('m', 1),
        "fortnight" => ('d', 14),
        "week" => ('d', 7),
        "day" => ('d', 1),
        "hour" => ('s', 3600),
        "minute" | "min" => ('s', 60),
        "second" | "sec" => ('s', 1),
        _ => return None,
    })
}

fn zone_offset(word: &str) -> Option<i64> {
    let hours = match word {
        "utc" | "gmt" | "ut" | "uct" | "z" | "wet" => 0,
        "west" | "bst" | "cet" | "met" => 1,
        "cest" | "mest" | "eet" | "sast" => 2,
        "eest" | "msk" | "eat" => 3,
        "msd" => 4,
        "ist" => return Some(5 * 3600 + 1800),
        "sgt" => 8,
        "kst" | "jst" => 9,
        "gst" => 10,
        "nzst" => 12,
        "nzdt" => 13,
        "art" | "brt" | "adt" => -3,
        "ast" | "clt" | "edt" => -4,
        "nst" => return Some(-(3 * 3600 + 1800)),
        "ndt" => return Some(-(2 * 3600 + 1800)),
        "est" | "cdt" => -5,
        "cst" | "mdt" => -6,
        "mst" | "pdt" => -7,
        "pst" | "akdt" => -8,
        "akst" => -9,
        "hst" => -10,
        "sst" => -11,
        word => {
            let [letter] = word.as_bytes() else { return None };
            match letter {
                b'a'..=b'i' => i64::from(letter - b'a') + 1,
                b'k'..=b'm' => i64::from(letter - b'k') + 10,
                b'n'..=b'y' => -(i64::from(letter - b'n') + 1),
                _ => return None,
            }
        }
    };
    Some(hours * 3600)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Monday, 2026-11-16 03:14:46 UTC.
    const NOW: i128 = 1_794_798_886 * SECOND;

    fn check(text: &str, expected: &str) {
        let shown = parse(text, NOW, &Zone::utc()).map_or("invalid".into(), |time| {
            String::from_utf8_lossy(&common::strftime::format(b"%F %T", time, &Zone::utc(), common::strftime::Dialect::Program))
                .into_owned()
        });
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn words_mean_what_they_mean_to_gnu() {
        for (text, expected) in [
            ("2024", "2026-11-16 20:24:00"),
            ("12", "2026-11-16 12:00:00"),
            ("10am", "2026-11-16 10:00:00"),
            ("tuesday", "2026-11-17 00:00:00"),
            ("next tuesday", "2026-11-17 00:00:00"),
            ("2024-01-31 +1 month", "2024-03-02 00:00:00"),
            ("Jan 5", "2026-01-05 00:00:00"),
            ("5 Jan", "2026-01-05 00:00:00"),
            ("third monday", "2026-12-07 00:00:00"),
            ("1 week ago monday", "2026-11-09 00:00:00"),
            ("2024-01-15T10:00:00+02:00", "2024-01-15 08:00:00"),
            ("20240115 1030", "2024-01-15 10:30:00"),
            ("2 days", "2026-11-18 03:14:46"),
            ("12:30 +2", "2026-11-16 10:30:00"),
            ("12:30 +2 hours", "2026-11-16 11:30:00"),
            ("", "2026-11-16 00:00:00"),
            ("1/2/99", "1999-01-02 00:00:00"),
            ("25-Dec-2023", "2023-12-25 00:00:00"),
            ("last month", "2026-10-16 03:14:46"),
            ("Mon, 15 Jan 2024 10:00:00 +0100", "2024-01-15 09:00:00"),
            ("2024-01-15 10:00 EST", "2024-01-15 15:00:00"),
            ("@-1", "1969-12-31 23:59:59"),
            ("tomorrow 5pm", "2026-11-17 17:00:00"),
            ("2024-02-30", "invalid"),
            ("a", "2026-11-15 23:00:00"),
            ("last friday", "2026-11-13 00:00:00"),
            ("12 hours ago", "2026-11-15 15:14:46"),
            ("10:00 next day", "2026-11-17 10:00:00"),
            ("noon", "invalid"),
            ("2024-01", "invalid"),
            ("+2", "invalid"),
            ("jan 2024", "invalid"),
            ("Jan 5 2024 10:00", "2024-01-05 10:00:00"),
            ("Tue Nov 14 22:13:20 UTC 2023", "2023-11-14 22:13:20"),
        ] {
            check(text, expected);
        }
    }
}
