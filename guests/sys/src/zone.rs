//! Time zones as POSIX rules: `UTC0`, `EST5EDT,M3.2.0,M11.1.0`, and the common names for them.
//!
//! Only today's rules are known: a date of long ago is shown with them too.

use crate::calendar;

/// A zone: standard time, and summer time with its rules.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    offset: i64,
    summer: Option<Summer>,
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

/// Names that people write in `TZ`, with today's rules.
const NAMED: &[(&str, &str)] = &[
    ("Africa/Cairo", "EET-2EEST,M4.5.5/0,M10.5.4/24"),
    ("Africa/Johannesburg", "SAST-2"),
    ("Africa/Lagos", "WAT-1"),
    ("Africa/Nairobi", "EAT-3"),
    ("America/Anchorage", "AKST9AKDT,M3.2.0,M11.1.0"),
    ("America/Argentina/Buenos_Aires", "<-03>3"),
    ("America/Bogota", "<-05>5"),
    ("America/Chicago", "CST6CDT,M3.2.0,M11.1.0"),
    ("America/Denver", "MST7MDT,M3.2.0,M11.1.0"),
    ("America/Halifax", "AST4ADT,M3.2.0,M11.1.0"),
    ("America/Los_Angeles", "PST8PDT,M3.2.0,M11.1.0"),
    ("America/Mexico_City", "CST6"),
    ("America/New_York", "EST5EDT,M3.2.0,M11.1.0"),
    ("America/Phoenix", "MST7"),
    ("America/Sao_Paulo", "<-03>3"),
    ("America/St_Johns", "NST3:30NDT,M3.2.0,M11.1.0"),
    ("America/Toronto", "EST5EDT,M3.2.0,M11.1.0"),
    ("America/Vancouver", "PST8PDT,M3.2.0,M11.1.0"),
    ("Asia/Bangkok", "<+07>-7"),
    ("Asia/Calcutta", "IST-5:30"),
    ("Asia/Dhaka", "<+06>-6"),
    ("Asia/Dubai", "<+04>-4"),
    ("Asia/Hong_Kong", "HKT-8"),
    ("Asia/Jakarta", "WIB-7"),
    ("Asia/Jerusalem", "IST-2IDT,M3.4.4/26,M10.5.0"),
    ("Asia/Karachi", "PKT-5"),
    ("Asia/Kathmandu", "<+0545>-5:45"),
    ("Asia/Kolkata", "IST-5:30"),
    ("Asia/Manila", "PST-8"),
    ("Asia/Seoul", "KST-9"),
    ("Asia/Shanghai", "CST-8"),
    ("Asia/Singapore", "<+08>-8"),
    ("Asia/Taipei", "CST-8"),
    ("Asia/Tehran", "<+0330>-3:30"),
    ("Asia/Tokyo", "JST-9"),
    ("Australia/Adelaide", "ACST-9:30ACDT,M10.1.0,M4.1.0/3"),
    ("Australia/Brisbane", "AEST-10"),
    ("Australia/Melbourne", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ("Australia/Perth", "AWST-8"),
    ("Australia/Sydney", "AEST-10AEDT,M10.1.0,M4.1.0/3"),
    ("CET", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("EST", "EST5"),
    ("EST5EDT", "EST5EDT,M3.2.0,M11.1.0"),
    ("Etc/GMT", "GMT0"),
    ("Etc/UTC", "UTC0"),
    ("Europe/Amsterdam", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Athens", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Brussels", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Budapest", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Copenhagen", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Dublin", "GMT0IST,M3.5.0/1,M10.5.0"),
    ("Europe/Helsinki", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Europe/Istanbul", "<+03>-3"),
    ("Europe/Kiev", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Europe/Kyiv", "EET-2EEST,M3.5.0/3,M10.5.0/4"),
    ("Europe/Lisbon", "WET0WEST,M3.5.0/1,M10.5.0"),
    ("Europe/London", "GMT0BST,M3.5.0/1,M10.5.0"),
    ("Europe/Madrid", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Moscow", "MSK-3"),
    ("Europe/Oslo", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Paris", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Prague", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Rome", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Stockholm", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Vienna", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Warsaw", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("Europe/Zurich", "CET-1CEST,M3.5.0,M10.5.0/3"),
    ("GMT", "GMT0"),
    ("Japan", "JST-9"),
    ("MST", "MST7"),
    ("PST8PDT", "PST8PDT,M3.2.0,M11.1.0"),
    ("Pacific/Auckland", "NZST-12NZDT,M9.5.0,M4.1.0/3"),
    ("Pacific/Honolulu", "HST10"),
    ("US/Central", "CST6CDT,M3.2.0,M11.1.0"),
    ("US/Eastern", "EST5EDT,M3.2.0,M11.1.0"),
    ("US/Mountain", "MST7MDT,M3.2.0,M11.1.0"),
    ("US/Pacific", "PST8PDT,M3.2.0,M11.1.0"),
    ("UTC", "UTC0"),
    ("Zulu", "UTC0"),
];

impl Zone {
    /// Coordinated Universal Time.
    pub fn utc() -> Self {
        Self { name: "UTC".into(), offset: 0, summer: None }
    }

    /// The zone that `TZ` names; UTC without it.
    pub fn local() -> Self {
        std::env::var("TZ").map_or_else(|_| Self::utc(), |text| Self::named(&text))
    }

    /// The zone behind a `TZ` value; UTC when it cannot be understood.
    pub fn named(text: &str) -> Self {
        let text = text.strip_prefix(':').unwrap_or(text);
        let rule = NAMED.iter().find(|(name, _)| *name == text).map(|(_, rule)| (*rule).to_owned());
        let rule = rule.or_else(|| from_file(text)).unwrap_or_else(|| text.to_owned());
        Self::parse(&rule).unwrap_or_else(|| {
            // What cannot be understood is UTC under the name that was given, as glibc has it.
            let word: String = text.chars().take_while(char::is_ascii_alphabetic).collect();
            Self { name: if word.len() >= 3 && !text.contains('/') { word } else { "UTC".into() }, ..Self::utc() }
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let name = zone_name(&mut rest)?;
        let offset = -span(&mut rest)?;
        if rest.is_empty() {
            return Some(Self { name, offset, summer: None });
        }
        let summer_name = zone_name(&mut rest)?;
        let summer_offset = if rest.is_empty() || rest.starts_with(',') { offset + 3600 } else { -span(&mut rest)? };
        let rules = rest.strip_prefix(',').unwrap_or("M3.2.0,M11.1.0");
        let (start, end) = rules.split_once(',')?;
        let summer = Summer { name: summer_name, offset: summer_offset, start: Rule::parse(start)?, end: Rule::parse(end)? };
        Some(Self { name, offset, summer: Some(summer) })
    }

    /// Seconds east of UTC at a moment, and what the zone is called then.
    pub fn at(&self, utc: i64) -> (i64, &str) {
        let Some(summer) = &self.summer else { return (self.offset, &self.name) };
        let (year, ..) = calendar::from_days((utc + self.offset).div_euclid(86400));
        let start = summer.start.at(year) - self.offset;
        let end = summer.end.at(year) - summer.offset;
        let is_summer = if start < end { (start..end).contains(&utc) } else { !(end..start).contains(&utc) };
        if is_summer { (summer.offset, &summer.name) } else { (self.offset, &self.name) }
    }

    /// The moment at which clocks here show `local`.
    pub fn to_utc(&self, local: i64) -> i64 {
        let guess = local - self.at(local - self.offset).0;
        let again = local - self.at(guess).0;
        if again + self.at(again).0 == local { again } else { guess }
    }
}

/// The rule at the end of a zone file, where the sandbox has one.
fn from_file(name: &str) -> Option<String> {
    if name.is_empty() || name.contains("..") || name.starts_with('/') {
        return None;
    }
    let content = std::fs::read(format!("/usr/share/zoneinfo/{name}")).ok()?;
    let body = content.strip_suffix(b"\n")?;
    let start = body.iter().rposition(|&byte| byte == b'\n')? + 1;
    String::from_utf8(body[start..].to_vec()).ok().filter(|rule| !rule.is_empty())
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

    /// Local seconds since 1970 at which the rule applies in a year.
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

    #[test]
    fn summer_comes_and_goes() {
        let zone = Zone::named("America/New_York");
        assert_eq!(zone.at(1_704_067_200), (-18000, "EST"));
        assert_eq!(zone.at(1_720_000_000), (-14400, "EDT"));
        assert_eq!(zone.to_utc(1_720_000_000 - 14400), 1_720_000_000);
        assert_eq!(Zone::named("Pacific/Auckland").at(1_704_067_200), (46800, "NZDT"));
    }
}
