//! Time zones: POSIX rules such as `UTC0` and `EST5EDT,M3.2.0,M11.1.0`, and names, whose past and rules are in the files below
//! `/usr/share/zoneinfo`.

use crate::calendar;

/// A zone: standard time, summer time with its rules, and what was in force before them.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    offset: i64,
    summer: Option<Summer>,
    past: Vec<Period>,
}

/// A stretch of the past with one time, up to the next.
#[derive(Clone, Debug)]
struct Period {
    from: i64,
    offset: i64,
    name: String,
}

#[derive(Clone, Debug)]
struct Summer {
    name: String,
    offset: i64,
    start: Rule,
    end: Rule,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    day: Day,
    time: i64,
}

#[derive(Clone, Copy, Debug)]
enum Day {
    InMonth(u32, u32, u32),
    Julian(i64),
    Zero(i64),
}

impl Zone {
    /// Returns Coordinated Universal Time.
    pub fn utc() -> Self {
        Self { name: "UTC".into(), offset: 0, summer: None, past: Vec::new() }
    }

    /// Returns the zone that `TZ` names; UTC without it.
    pub fn local() -> Self {
        std::env::var("TZ").map_or_else(|_| Self::utc(), |text| Self::named(&text))
    }

    /// Returns the zone behind a `TZ` value; UTC when it cannot be understood.
    pub fn named(text: &str) -> Self {
        let text = text.strip_prefix(':').unwrap_or(text);
        from_file(text).or_else(|| Self::parse(text)).unwrap_or_else(|| {
            // An invalid zone is UTC under the given name, as in glibc.
            let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
            Self { name: if word.len() >= 3 && !text.contains('/') { word } else { "UTC".into() }, ..Self::utc() }
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let name = zone_name(&mut rest)?;
        let offset = -span(&mut rest)?;
        if rest.is_empty() {
            return Some(Self { name, offset, summer: None, past: Vec::new() });
        }
        let summer_name = zone_name(&mut rest)?;
        let summer_offset = if rest.is_empty() || rest.starts_with(',') { offset + 3600 } else { -span(&mut rest)? };
        let rules = rest.strip_prefix(',').unwrap_or("M3.2.0,M11.1.0");
        let (start, end) = rules.split_once(',')?;
        let summer = Summer { name: summer_name, offset: summer_offset, start: Rule::parse(start)?, end: Rule::parse(end)? };
        Some(Self { name, offset, summer: Some(summer), past: Vec::new() })
    }

    /// Seconds east of UTC at a moment, and what the zone is called then.
    pub fn at(&self, utc: i64) -> (i64, &str) {
        // The rules begin with the last of the periods.
        let begun = self.past.partition_point(|period| period.from <= utc);
        if begun < self.past.len()
            && let Some(period) = self.past.get(begun.saturating_sub(1))
        {
            return (period.offset, &period.name);
        }
        let Some(summer) = &self.summer else { return (self.offset, &self.name) };
        let (year, ..) = calendar::from_days((utc + self.offset).div_euclid(86400));
        let start = summer.start.at(year) - self.offset;
        let end = summer.end.at(year) - summer.offset;
        let is_summer = if start < end { (start..end).contains(&utc) } else { !(end..start).contains(&utc) };
        if is_summer { (summer.offset, &summer.name) } else { (self.offset, &self.name) }
    }

    /// Returns the moment at which clocks here show `local`.
    pub fn to_utc(&self, local: i64) -> i64 {
        let guess = local - self.at(local - self.offset).0;
        let again = local - self.at(guess).0;
        if again + self.at(again).0 == local { again } else { guess }
    }
}

/// Returns the zone in a file, where the sandbox has one of that name.
fn from_file(name: &str) -> Option<Zone> {
    if name.is_empty() || name.contains("..") || name.starts_with('/') {
        return None;
    }
    read_zone(&std::fs::read(format!("/usr/share/zoneinfo/{name}")).ok()?)
}

/// Reads the second part of a TZif file, with times of eight bytes, and the rule at its end.
fn read_zone(file: &[u8]) -> Option<Zone> {
    let body = file.strip_suffix(b"\n")?;
    let rule = body.get(body.iter().rposition(|&byte| byte == b'\n')? + 1..)?;
    let mut rest = file;
    let first = Counts::read(&mut rest)?;
    take(&mut rest, first.length(4)?)?;
    let counts = Counts::read(&mut rest)?;
    let times = take(&mut rest, counts.times.checked_mul(8)?)?;
    let kinds = take(&mut rest, counts.times)?;
    let types = take(&mut rest, counts.types.checked_mul(6)?)?;
    let names = take(&mut rest, counts.letters)?;
    let period = |from: i64, kind: usize| {
        let [a, b, c, d, _, at] = *types.chunks_exact(6).nth(kind)? else { return None };
        let name = names.get(usize::from(at)..)?.split(|&byte| byte == 0).next()?;
        let offset = i64::from(i32::from_be_bytes([a, b, c, d]));
        Some(Period { from, offset, name: String::from_utf8_lossy(name).into_owned() })
    };
    let mut past = vec![period(i64::MIN, 0)?];
    for (time, kind) in times.chunks_exact(8).zip(kinds) {
        past.push(period(i64::from_be_bytes(time.try_into().ok()?), usize::from(*kind))?);
    }
    let last = past.last()?;
    let rules = Zone::parse(std::str::from_utf8(rule).ok()?);
    let (name, offset) = (last.name.clone(), last.offset);
    Some(Zone { past, ..rules.unwrap_or(Zone { name, offset, ..Zone::utc() }) })
}

/// How much there is of each kind in one part of a TZif file.
struct Counts {
    universal: usize,
    standard: usize,
    leaps: usize,
    times: usize,
    types: usize,
    letters: usize,
}

impl Counts {
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let head = take(rest, 44)?.strip_prefix(b"TZif")?;
        let number = |at: usize| {
            let four = head.get(16 + at * 4..)?.first_chunk()?;
            usize::try_from(u32::from_be_bytes(*four)).ok()
        };
        Some(Self {
            universal: number(0)?,
            standard: number(1)?,
            leaps: number(2)?,
            times: number(3)?,
            types: number(4)?,
            letters: number(5)?,
        })
    }

    /// Returns the length of the part, with times of `time` bytes.
    fn length(&self, time: usize) -> Option<usize> {
        let times = self.times.checked_mul(time + 1)?;
        let leaps = self.leaps.checked_mul(time + 4)?;
        let rest = self.types.checked_mul(6)?.checked_add(self.letters)?;
        times.checked_add(leaps)?.checked_add(rest)?.checked_add(self.standard)?.checked_add(self.universal)
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn zone_name(rest: &mut &str) -> Option<String> {
    if let Some(quoted) = rest.strip_prefix('<') {
        let (name, after) = quoted.split_once('>')?;
        *rest = after;
        return Some(name.to_owned());
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    *rest = after;
    (name.len() >= 3).then(|| name.to_owned())
}

/// `[+-]hh[:mm[:ss]]` in seconds.
fn span(rest: &mut &str) -> Option<i64> {
    let sign = match rest.chars().next()? {
        '-' => {
            *rest = &rest[1..];
            -1
        }
        '+' => {
            *rest = &rest[1..];
            1
        }
        _ => 1,
    };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(rest.len());
    let (text, after) = rest.split_at(end);
    *rest = after;
    let mut parts = text.split(':').map(str::parse::<i64>);
    let hours = parts.next()?.ok()?;
    let minutes = parts.next().map_or(Some(0), Result::ok)?;
    let seconds = parts.next().map_or(Some(0), Result::ok)?;
    Some(sign * (hours * 3600 + minutes * 60 + seconds))
}

impl Rule {
    fn parse(text: &str) -> Option<Self> {
        let (day, time) = match text.split_once('/') {
            Some((day, mut time)) => (day, span(&mut time)?),
            None => (text, 7200),
        };
        let day = if let Some(rest) = day.strip_prefix('M') {
            let mut parts = rest.split('.').map(str::parse::<u32>);
            Day::InMonth(parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?)
        } else if let Some(rest) = day.strip_prefix('J') {
            Day::Julian(rest.parse().ok()?)
        } else {
            Day::Zero(day.parse().ok()?)
        };
        Some(Self { day, time })
    }

    /// Returns the local seconds since 1970 at which the rule applies in a year.
    fn at(self, year: i64) -> i64 {
        let day = match self.day {
            Day::InMonth(month, week, weekday) => {
                let first = calendar::to_days(year, month.into(), 1);
                let ahead = (i64::from(weekday) - i64::from(calendar::weekday(first))).rem_euclid(7);
                let mut day = ahead + 7 * (i64::from(week) - 1);
                if day >= i64::from(calendar::days_in_month(year, month)) {
                    day -= 7;
                }
                first + day
            }
            Day::Julian(day) => calendar::to_days(year, 1, day) + i64::from(calendar::is_leap(year) && day >= 60),
            Day::Zero(day) => calendar::to_days(year, 1, 1) + day,
        };
        day * 86400 + self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// New York around the year in which summer time became longer, as in a current TZif file.
    fn file() -> Vec<u8> {
        let mut file = b"TZif2".to_vec();
        file.extend([0; 15]);
        file.extend([0; 24]);
        file.extend(b"TZif2");
        file.extend([0; 15]);
        [0u32, 0, 0, 3, 3, 12].iter().for_each(|count| file.extend(count.to_be_bytes()));
        [-2_717_650_800i64, 1_143_961_200, 1_162_101_600].iter().for_each(|time| file.extend(time.to_be_bytes()));
        file.extend([1, 2, 1]);
        for (offset, summer, name) in [(-17_762i32, 0, 0), (-18_000, 0, 4), (-14_400, 1, 8)] {
            file.extend(offset.to_be_bytes());
            file.extend([summer, name]);
        }
        file.extend(b"LMT\0EST\0EDT\0\nEST5EDT,M3.2.0,M11.1.0\n");
        file
    }

    #[test]
    fn summer_comes_and_goes() {
        let zone = Zone::named("EST5EDT,M3.2.0,M11.1.0");
        assert_eq!(zone.at(1_704_067_200), (-18000, "EST"));
        assert_eq!(zone.at(1_720_000_000), (-14400, "EDT"));
        assert_eq!(zone.to_utc(1_720_000_000 - 14400), 1_720_000_000);
        assert_eq!(Zone::named("NZST-12NZDT,M9.5.0,M4.1.0/3").at(1_704_067_200), (46800, "NZDT"));
    }

    #[test]
    fn the_past_has_its_own_rules() {
        let zone = read_zone(&file()).expect("a zone");
        assert_eq!(zone.at(-3_000_000_000), (-17_762, "LMT"));
        // 20 March 2006: summer time began in April then; a year later it begins in March.
        assert_eq!(zone.at(1_142_866_800), (-18_000, "EST"));
        assert_eq!(zone.at(1_150_000_000), (-14_400, "EDT"));
        assert_eq!(zone.at(1_174_402_800), (-14_400, "EDT"));
    }

    #[test]
    fn a_truncated_file_is_rejected_without_a_panic() {
        let file = file();
        for length in 0..file.len() - 1 {
            assert!(read_zone(&file[..length]).is_none(), "{length} bytes");
        }
        let mut huge = file.clone();
        huge[44 + 32..44 + 36].fill(0xff);
        assert!(read_zone(&huge).is_none());
    }
}
