//! `cal`: a month, or a year, as a table of days.

use crate::options::{self, Given, Needs, No, Spec};
use crate::program::{Args, Outcome, Output, extra_operand, fail};
use sys::calendar::{days_in_month, from_days, is_leap, to_days, weekday};
use sys::zone::Zone;

const SPEC: Spec = Spec {
    short: "13jmn:swyY",
    long: &[
        ("one", No, '1'),
        ("three", No, '3'),
        ("julian", No, 'j'),
        ("monday", No, 'm'),
        ("months", Needs, 'n'),
        ("sunday", No, 's'),
        ("year", No, 'y'),
        ("twelve", No, 'Y'),
    ],
    help: "[OPTION]... [[[DAY] MONTH] YEAR]",
};

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// The month in which Britain left out eleven days; the calendars of UNIX follow it.
const REFORM: (i64, u32) = (1752, 9);

/// Months beside each other when there are several.
const COLUMNS: usize = 3;

struct Style {
    monday: bool,
    julian: bool,
}

/// Runs `cal`.
pub fn main(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let style = Style { monday: given.has('m') && !given.has('s'), julian: given.has('j') };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |passed| passed.as_secs() as i64);
    let zone = Zone::local();
    let (this_year, this_month, _) = from_days((now + zone.at(now).0).div_euclid(86_400));
    let (year, month) = match given.operands.as_slice() {
        [] => (this_year, Some(this_month)),
        [only] => match month_named(&only.to_string_lossy()) {
            Some(month) => (this_year, Some(month)),
            None => (year_number(&only.to_string_lossy())?, None),
        },
        [month, year] | [_, month, year] => {
            (year_number(&year.to_string_lossy())?, Some(month_number(&month.to_string_lossy())?))
        }
        [_, _, _, extra, ..] => return Err(extra_operand(extra)),
    };
    let mut out = Output::new();
    match month {
        Some(month) if !given.has('y') => several(&given, year, month, &style, &mut out)?,
        _ => whole_year(year, &style, &mut out),
    }
    Ok(0)
}

fn month_named(text: &str) -> Option<u32> {
    let text = text.to_ascii_lowercase();
    let at = MONTHS.iter().position(|name| text.len() >= 3 && name.to_ascii_lowercase().starts_with(&text))?;
    Some(at as u32 + 1)
}

fn month_number(text: &str) -> Result<u32, i32> {
    let number = text.parse().ok().filter(|month| (1..=12).contains(month));
    number.or_else(|| month_named(text)).ok_or_else(|| {
        fail(if text.parse::<u32>().is_ok() {
            "illegal month value: use 1-12".to_owned()
        } else {
            format!("unknown month name: {text}")
        })
    })
}

fn year_number(text: &str) -> Result<i64, i32> {
    match text.parse::<i64>() {
        Ok(year) if (1..=999_999).contains(&year) => Ok(year),
        _ => Err(fail(format!("illegal year value: {text}"))),
    }
}

fn several(given: &Given, year: i64, month: u32, style: &Style, out: &mut Output) -> Result<(), i32> {
    let (first, count) = if given.has('3') {
        (i64::from(month) - 1, 3)
    } else if given.has('Y') {
        (i64::from(month), 12)
    } else if let Some(text) = given.value('n') {
        let count = text.to_string_lossy().parse::<usize>().ok().filter(|count| *count > 0);
        (i64::from(month), count.ok_or_else(|| fail("invalid month argument"))?)
    } else {
        (i64::from(month), 1)
    };
    let months: Vec<(i64, u32)> =
        (first..).take(count).map(|month| (year + (month - 1).div_euclid(12), ((month - 1).rem_euclid(12) + 1) as u32)).collect();
    for row in months.chunks(COLUMNS) {
        let tables: Vec<Vec<String>> =
            row.iter().map(|&(year, month)| table(year, month, &format!("{} {year}", name(month)), style)).collect();
        // A month alone is as long as it is; beside others each has six weeks.
        beside(&tables, count > 1, out);
    }
    Ok(())
}

fn whole_year(year: i64, style: &Style, out: &mut Output) {
    let columns = if style.julian { 2 } else { COLUMNS };
    let width = columns * width(style) + (columns - 1) * 2;
    out.text(format!("{}\n\n", centred(&year.to_string(), width).trim_end()));
    let months: Vec<u32> = (1..=12).collect();
    for row in months.chunks(columns) {
        let tables: Vec<Vec<String>> = row.iter().map(|&month| table(year, month, name(month), style)).collect();
        beside(&tables, true, out);
    }
}

fn name(month: u32) -> &'static str {
    MONTHS[(month as usize).saturating_sub(1) % 12]
}

fn width(style: &Style) -> usize {
    if style.julian { 27 } else { 20 }
}

fn centred(text: &str, width: usize) -> String {
    let left = width.saturating_sub(text.len()) / 2;
    format!("{:left$}{text:<rest$}", "", rest = width - left.min(width))
}

fn table(year: i64, month: u32, title: &str, style: &Style) -> Vec<String> {
    let cell = if style.julian { 3 } else { 2 };
    let mut names = ["Su", "Mo", "Tu", "We", "Th", "Fr", "Sa"];
    if style.monday {
        names.rotate_left(1);
    }
    let heads: Vec<String> = names.iter().map(|name| format!("{name:>cell$}")).collect();
    let mut lines = vec![centred(title, width(style)), heads.join(" ")];
    let first = first_day(year, month);
    let before = (weekday(first) + if style.monday { 6 } else { 0 }) % 7;
    let mut cells: Vec<String> = vec![" ".repeat(cell); before as usize];
    let start_of_year: u32 = (1..month).map(|month| length(year, month)).sum();
    for day in 1..=length(year, month) {
        let shown = if (year, month) == REFORM && day > 2 { day + 11 } else { day };
        let shown = if style.julian { start_of_year + day } else { shown };
        cells.push(format!("{shown:>cell$}"));
    }
    lines.extend(cells.chunks(7).map(|week| week.join(" ")));
    lines
}

/// Days that a month really had.
fn length(year: i64, month: u32) -> u32 {
    match (year, month) {
        REFORM => 19,
        (year, 2) if (year, month) < REFORM => 28 + u32::from(year % 4 == 0),
        _ if is_leap(year) || month != 2 => days_in_month(year, month),
        _ => 28,
    }
}

/// Returns the day number of the first; before the reform by the old calendar, whose leap years include every century.
fn first_day(year: i64, month: u32) -> i64 {
    if (year, month) > REFORM {
        return to_days(year, i64::from(month), 1);
    }
    let centuries = (if month <= 2 { year - 1 } else { year }).div_euclid(100);
    to_days(year, i64::from(month), 1) + centuries - centuries.div_euclid(4) - 2
}

fn beside(tables: &[Vec<String>], full: bool, out: &mut Output) {
    let rows = if full { 8 } else { tables.iter().map(Vec::len).max().unwrap_or(0) };
    for row in 0..rows {
        let cells: Vec<String> = tables
            .iter()
            .map(|table| {
                let width = table.get(1).map_or(0, String::len);
                format!("{:<width$}", table.get(row).map_or("", String::as_str))
            })
            .collect();
        out.text(format!("{}\n", cells.join("  ").trim_end()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_of_both_calendars_begin_on_the_right_day() {
        for (year, month, day) in
            [(2000, 1, 6), (1970, 1, 4), (1752, 9, 2), (1752, 10, 0), (1700, 3, 5), (1, 1, 6), (1066, 10, 0)]
        {
            assert_eq!(weekday(first_day(year, month)), day, "{year}-{month}");
        }
    }
}
