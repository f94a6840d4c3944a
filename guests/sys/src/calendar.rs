//! The proleptic Gregorian calendar in days since 1970-01-01.

/// Returns the year, month and day of a day number.
pub fn from_days(days: i64) -> (i64, u32, u32) {
    // Years begin in March here, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

/// Returns the day number of a date; days past the month's end run on into the next.
pub fn to_days(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let year_of_era = shifted.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year + day - 1 - 719_468
}

/// Returns whether February has 29 days.
pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap(year)),
        _ => 31,
    }
}

/// Returns the day of the week; Sunday is 0.
pub fn weekday(days: i64) -> u32 {
    (days + 4).rem_euclid(7) as u32
}

/// Returns the day within its year, from 0.
pub fn day_of_year(days: i64) -> u32 {
    let (year, ..) = from_days(days);
    (days - to_days(year, 1, 1)) as u32
}

/// Returns the year and week as ISO 8601 counts them.
pub fn iso_week(days: i64) -> (i64, u32) {
    let from_monday = (days + 3).rem_euclid(7);
    // The week belongs to the year its Thursday is in.
    let thursday = days - from_monday + 3;
    let (year, ..) = from_days(thursday);
    (year, day_of_year(thursday) / 7 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for days in (-800_000..800_000).step_by(97) {
            let (year, month, day) = from_days(days);
            assert_eq!(to_days(year, month.into(), day.into()), days);
        }
        assert_eq!(from_days(0), (1970, 1, 1));
        assert_eq!(weekday(0), 4);
        assert_eq!(iso_week(to_days(2021, 1, 3)), (2020, 53));
    }
}
