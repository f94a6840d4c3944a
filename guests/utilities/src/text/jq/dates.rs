//! Moments: seconds since 1970, broken down times, and their texts.

use common::strftime::{DAYS, Dialect, MONTHS};
use sys::calendar;
use sys::zone::Zone;

use super::functions::{Native, error};
use super::value::Json;

type Outcome = Result<Json, Json>;

/// Days that are certainly far enough from now: years of ten digits.
const MAX_SECONDS: f64 = 6.7e16;

fn broken_down(seconds: f64, offset: i64) -> Outcome {
    if seconds.is_nan() || seconds.abs() > MAX_SECONDS {
        return Err(error("error converting number of seconds since epoch to datetime"));
    }
    let whole = seconds.trunc() as i64 + offset;
    let (days, rest) = (whole.div_euclid(86400), whole.rem_euclid(86400));
    let (year, month, day) = calendar::from_days(days);
    let second = (rest % 60) as f64 + (seconds - seconds.floor());
    let fields = [
        year as f64,
        f64::from(month) - 1.0,
        f64::from(day),
        (rest / 3600) as f64,
        (rest / 60 % 60) as f64,
        second,
        f64::from(calendar::weekday(days)),
        f64::from(calendar::day_of_year(days)),
    ];
    Ok(Json::array(fields.into_iter().map(Json::Number).collect()))
}

fn local(seconds: f64) -> Outcome {
    broken_down(seconds, if seconds.is_finite() { Zone::local().at(seconds as i64).0 } else { 0 })
}

/// Returns the seconds that a broken down time means, read as UTC.
fn seconds(value: &Json, complaint: &str) -> Result<i64, Json> {
    let Json::Array(fields) = value else { return Err(error(complaint)) };
    let mut numbers = [0i64; 6];
    for (at, number) in numbers.iter_mut().enumerate() {
        let field = fields.0.get(at).and_then(Json::as_number).ok_or_else(|| error(complaint))?;
        *number = i64::from(field as i32);
    }
    if fields.0.iter().take(8).any(|field| field.as_number().is_none()) {
        return Err(error(complaint));
    }
    let [year, month, day, hour, minute, second] = numbers;
    let (year, month) = (year + month.div_euclid(12), month.rem_euclid(12));
    let days = calendar::to_days(year, month + 1, 1) + day - 1;
    Ok(days * 86400 + hour * 3600 + minute * 60 + second)
}

fn formatted(name: &str, value: Json, format: &Json, here: bool) -> Outcome {
    let complaint = format!("{name}/1 requires parsed datetime inputs");
    let value = match value.as_number() {
        Some(number) if here => local(number)?,
        Some(number) => broken_down(number, 0)?,
        None => value,
    };
    if !matches!(value, Json::Array(_)) {
        return Err(error(complaint));
    }
    let Json::String(format) = format else { return Err(error(format!("{name}/1 requires a string format"))) };
    let moment = seconds(&value, &complaint)?;
    let zone = if here { Zone::local() } else { Zone::utc() };
    let moment = if here { zone.to_utc(moment) } else { moment };
    let text = common::strftime::format(format.as_bytes(), i128::from(moment) * 1_000_000_000, &zone, Dialect::Library);
    if text.is_empty() {
        return Err(error(format!("{name}/1: unknown system failure")));
    }
    Ok(Json::text(&text))
}

fn make_time(value: &Json) -> Outcome {
    let Json::Array(fields) = value else { return Err(error("mktime requires array inputs")) };
    let complaint = "mktime requires parsed datetime inputs";
    if fields.0.len() < 6 {
        return Err(error(complaint));
    }
    Ok(Json::Number(seconds(value, complaint)? as f64))
}

/// What `strptime` has read so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    weekday: Option<i64>,
    year_day: Option<i64>,
    afternoon: Option<bool>,
    epoch: Option<i64>,
}

struct Reader<'t> {
    text: &'t [u8],
}

impl Reader<'_> {
    fn blanks(&mut self) {
        self.text = self.text.trim_ascii_start();
    }

    fn number(&mut self, low: i64, high: i64, width: usize) -> Option<i64> {
        while let Some(rest) = self.text.strip_prefix(b" ") {
            self.text = rest;
        }
        let digits = self.text.iter().take(width).take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = self.text.split_at(digits);
        let number = std::str::from_utf8(number).ok()?.parse().ok().filter(|number| (low..=high).contains(number))?;
        self.text = rest;
        Some(number)
    }

    /// Returns the number of the name that comes next, in full or by its first three letters.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        for (index, name) in names.iter().enumerate() {
            for name in [*name, &name[..3]] {
                if self.text.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes())) {
                    self.text = &self.text[name.len()..];
                    return Some(index as i64);
                }
            }
        }
        None
    }

    fn read(&mut self, format: &[u8], fields: &mut Fields) -> Option<()> {
        let mut format = format.iter();
        while let Some(&byte) = format.next() {
            if byte.is_ascii_whitespace() {
                self.blanks();
                continue;
            }
            if byte != b'%' {
                self.text = self.text.strip_prefix(&[byte])?;
                continue;
            }
            let mut letter = *format.next()?;
            while matches!(letter, b'E' | b'O' | b'-' | b'_' | b'0' | b'^' | b'#') {
                letter = *format.next()?;
            }
            self.directive(letter, fields)?;
        }
        Some(())
    }

    fn directive(&mut self, letter: u8, fields: &mut Fields) -> Option<()> {
        match letter {
            b'%' => self.text = self.text.strip_prefix(b"%")?,
            b'n' | b't' => self.blanks(),
            b'a' | b'A' => fields.weekday = Some(self.name(&DAYS)?),
            b'b' | b'B' | b'h' => fields.month = Some(self.name(&MONTHS)?),
            b'C' => fields.century = Some(self.number(0, 99, 2)?),
            b'd' | b'e' => fields.day = Some(self.number(1, 31, 2)?),
            b'H' | b'k' => (fields.hour, fields.afternoon) = (self.number(0, 23, 2)?, None),
            b'I' | b'l' => {
                fields.hour = self.number(1, 12, 2)? % 12;
                fields.afternoon = Some(fields.afternoon.unwrap_or(false));
            }
            b'j' => fields.year_day = Some(self.number(1, 366, 3)? - 1),
            b'm' => fields.month = Some(self.number(1, 12, 2)? - 1),
            b'M' => fields.minute = self.number(0, 59, 2)?,
            b'p' | b'P' => {
                let (word, rest) = self.text.split_at_checked(2)?;
                fields.afternoon = Some(match word.to_ascii_uppercase().as_slice() {
                    b"AM" => false,
                    b"PM" => true,
                    _ => return None,
                });
                self.text = rest;
            }
            b's' => fields.epoch = Some(self.number(0, i64::MAX, 18)?),
            b'S' => fields.second = self.number(0, 61, 2)?,
            b'u' => fields.weekday = Some(self.number(1, 7, 1)? % 7),
            b'w' => fields.weekday = Some(self.number(0, 6, 1)?),
            b'U' | b'W' | b'V' => {
                self.number(0, 53, 2)?;
            }
            b'g' => {
                self.number(0, 99, 2)?;
            }
            b'G' => {
                self.number(0, 9999, 4)?;
            }
            b'y' => {
                let year = self.number(0, 99, 2)?;
                fields.year = Some(if year >= 69 { 1900 + year } else { 2000 + year });
            }
            b'Y' => fields.year = Some(self.number(0, 9999, 4)?),
            b'z' => {
                self.blanks();
                match self.text.split_first()? {
                    (b'Z', rest) => self.text = rest,
                    (b'+' | b'-', rest) => {
                        let mut digits = 0;
                        let mut length = 0;
                        for byte in rest.iter().take(5) {
                            match byte {
                                b':' if digits == 2 => {}
                                byte if byte.is_ascii_digit() && digits < 4 => digits += 1,
                                _ => break,
                            }
                            length += 1;
                        }
                        if digits != 2 && digits != 4 {
                            return None;
                        }
                        self.text = &rest[length..];
                    }
                    _ => return None,
                }
            }
            b'Z' => {
                self.blanks();
                let length = self.text.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                self.text = &self.text[length..];
            }
            b'D' | b'x' => self.read(b"%m/%d/%y", fields)?,
            b'T' | b'X' => self.read(b"%H:%M:%S", fields)?,
            b'R' => self.read(b"%H:%M", fields)?,
            b'r' => self.read(b"%I:%M:%S %p", fields)?,
            b'F' => self.read(b"%Y-%m-%d", fields)?,
            b'c' => self.read(b"%a %b %e %H:%M:%S %Y", fields)?,
            _ => return None,
        }
        Some(())
    }
}

/// Reads a text by its format.
fn parsed(value: &Json, format: &Json) -> Outcome {
    let (Json::String(text), Json::String(format)) = (value, format) else {
        return Err(error("strptime/1 requires string inputs and arguments"));
    };
    let mut reader = Reader { text: text.as_bytes() };
    let mut fields = Fields::default();
    let read = reader.read(format.as_bytes(), &mut fields);
    if read.is_none() || reader.text.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
        return Err(error(format!("date \"{text}\" does not match format \"{format}\"")));
    }
    if let Some(epoch) = fields.epoch {
        return local(epoch as f64);
    }
    if let Some(afternoon) = fields.afternoon {
        fields.hour = fields.hour % 12 + if afternoon { 12 } else { 0 };
    }
    let year = match (fields.year, fields.century) {
        (Some(year), Some(century)) => century * 100 + year.rem_euclid(100),
        (None, Some(century)) => century * 100,
        (year, None) => year.unwrap_or(1900),
    };
    let dated = fields.year.is_some() || fields.century.is_some();
    let (mut month, mut day) = (fields.month.unwrap_or(0), fields.day.unwrap_or(0));
    if let (Some(year_day), None, None) = (fields.year_day, fields.month, fields.day)
        && dated
    {
        let (_, found, at) = calendar::from_days(calendar::to_days(year, 1, 1) + year_day);
        (month, day) = (i64::from(found) - 1, i64::from(at));
    }
    let days = calendar::to_days(year, month + 1, day);
    // The C library works out the day of the week from a whole date; jq does it from a month and a day.
    let whole = day != 0;
    let weekday = if whole { i64::from(calendar::weekday(days)) } else { fields.weekday.unwrap_or(8) };
    let year_day = if whole { i64::from(calendar::day_of_year(days)) } else { fields.year_day.unwrap_or(367) };
    let numbers = [year, month, day, fields.hour, fields.minute, fields.second, weekday, year_day];
    let mut result: Vec<Json> = numbers.into_iter().map(|number| Json::Number(number as f64)).collect();
    if !reader.text.is_empty() {
        result.push(Json::text(reader.text));
    }
    Ok(Json::array(result))
}

fn numeric(value: &Json, name: &str) -> Result<f64, Json> {
    value.as_number().ok_or_else(|| error(format!("{name}() requires numeric inputs")))
}

pub(super) const NATIVES: &[Native] = &[
    Native { name: "mktime", arguments: 0, run: |_, value, _| make_time(&value) },
    Native { name: "gmtime", arguments: 0, run: |_, value, _| broken_down(numeric(&value, "gmtime")?, 0) },
    Native { name: "localtime", arguments: 0, run: |_, value, _| local(numeric(&value, "localtime")?) },
    Native { name: "now", arguments: 0, run: |_, _, _| Ok(Json::Number((sys::now_ns() / 1000) as f64 / 1_000_000.0)) },
    Native {
        name: "strftime",
        arguments: 1,
        run: |_, value, arguments| formatted("strftime", value, arguments.first().unwrap_or(&Json::Null), false),
    },
    Native {
        name: "strflocaltime",
        arguments: 1,
        run: |_, value, arguments| formatted("strflocaltime", value, arguments.first().unwrap_or(&Json::Null), true),
    },
    Native {
        name: "strptime",
        arguments: 1,
        run: |_, value, arguments| parsed(&value, arguments.first().unwrap_or(&Json::Null)),
    },
];
