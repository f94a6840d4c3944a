//! The library of `bc -l`: sine, cosine, arc tangent, logarithm, exponential, Bessel.

use super::number::Number;

/// Cuts a result that was calculated with more places than wanted; one that is all nines behind them was meant to be whole.
fn settle(value: &Number, scale: usize) -> Number {
    let mut least = Number { digits: 1.into(), scale: scale + 8 };
    if value.is_negative() {
        least = least.neg();
    }
    value.add(&least).rescaled(scale)
}

/// Sums a series whose terms shrink by `next` until they vanish.
fn series(first: Number, scale: usize, mut next: impl FnMut(&Number, i64) -> Option<Number>) -> Number {
    let mut sum = first.rescaled(scale);
    let mut term = sum.clone();
    let mut index = 1;
    while index < 100_000 {
        let Some(following) = next(&term, index) else { break };
        term = following.rescaled(scale);
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
        index += 1;
    }
    sum
}

pub(super) fn exp(x: &Number, scale: usize) -> Number {
    // As many digits more as the result has before its point: a relative error is what grows when squaring.
    let whole = x.to_i64().unwrap_or(0).clamp(0, 50_000) as usize * 4343 / 10_000;
    let work = scale + 12 + whole;
    let mut reduced = x.rescaled(work.max(x.scale));
    let mut halvings = 0;
    let one = Number::integer(1);
    while reduced.digits.magnitude() > one.rescaled(reduced.scale).digits.magnitude() && halvings < 200 {
        reduced = reduced.div(&Number::integer(2), work).unwrap_or_default();
        halvings += 1;
    }
    let precision = work + halvings;
    let mut result = series(one, precision, |term, index| term.mul(&reduced, precision).div(&Number::integer(index), precision));
    for _ in 0..halvings {
        result = result.mul(&result.clone(), precision).rescaled(precision);
    }
    settle(&result, scale)
}

pub(super) fn ln(x: &Number, scale: usize) -> Number {
    if x.is_zero() || x.is_negative() {
        // The result of GNU bc instead of an infinity.
        let nines = format!("-{}", "9".repeat(scale.max(1)));
        return Number { digits: nines.parse().unwrap_or_default(), scale: 0 }.rescaled(scale);
    }
    let work = scale + 10;
    let two = Number::integer(2);
    let mut reduced = x.rescaled(work.max(x.scale));
    let mut doublings = 0;
    let (low, high) = (Number::parse("0.8", 10), Number::parse("1.2", 10));
    while (reduced.cmp(&high).is_gt() || reduced.cmp(&low).is_lt()) && doublings < 400 {
        reduced = reduced.sqrt(work + doublings).unwrap_or_default();
        doublings += 1;
    }
    let precision = work + doublings;
    // ln x = 2 (z + z³/3 + z⁵/5 …) with z = (x-1)/(x+1).
    let one = Number::integer(1);
    let z = reduced.sub(&one).div(&reduced.add(&one), precision).unwrap_or_default();
    let square = z.mul(&z, precision);
    let mut power = z.clone();
    let mut sum = z;
    for index in 1..100_000 {
        power = power.mul(&square, precision).rescaled(precision);
        let term = power.div(&Number::integer(2 * index + 1), precision).unwrap_or_default();
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
    }
    let factor = two.pow(doublings as i64 + 1, 0).unwrap_or_default();
    settle(&sum.mul(&factor, precision), scale)
}

pub(super) fn atan(x: &Number, scale: usize) -> Number {
    if x.is_negative() {
        return atan(&x.neg(), scale).neg();
    }
    let work = scale + 10;
    let one = Number::integer(1);
    let mut reduced = x.rescaled(work.max(x.scale));
    let mut doublings = 0;
    let small = Number::parse("0.2", 10);
    // atan x = 2 atan(x / (1 + sqrt(1 + x²)))
    while reduced.cmp(&small).is_gt() && doublings < 60 {
        let root = one.add(&reduced.mul(&reduced, work)).sqrt(work).unwrap_or_default();
        reduced = reduced.div(&one.add(&root), work).unwrap_or_default();
        doublings += 1;
    }
    let square = reduced.mul(&reduced, work).neg();
    let mut power = reduced.clone();
    let mut sum = reduced;
    for index in 1..100_000 {
        power = power.mul(&square, work).rescaled(work);
        let term = power.div(&Number::integer(2 * index + 1), work).unwrap_or_default();
        if term.is_zero() {
            break;
        }
        sum = sum.add(&term);
    }
    let factor = Number::integer(2).pow(doublings, 0).unwrap_or_default();
    settle(&sum.mul(&factor, work), scale)
}

pub(super) fn sin(x: &Number, scale: usize) -> Number {
    let work = scale + 10 + x.rescaled(0).length();
    let pi = atan(&Number::integer(1), work).mul(&Number::integer(4), work);
    let turns = x.div(&pi, 0).unwrap_or_default();
    let reduced = x.rescaled(work.max(x.scale)).sub(&pi.mul(&turns, work));
    let odd = turns.to_i64().unwrap_or(0) % 2 != 0;
    let square = reduced.mul(&reduced, work).neg();
    let result =
        series(reduced, work, |term, index| term.mul(&square, work).div(&Number::integer(2 * index * (2 * index + 1)), work));
    let result = if odd { result.neg() } else { result };
    settle(&result, scale)
}

pub(super) fn cos(x: &Number, scale: usize) -> Number {
    let work = scale + 10;
    let half = atan(&Number::integer(1), work + 10).mul(&Number::integer(2), work + 10);
    settle(&sin(&x.add(&half), work), scale)
}

pub(super) fn bessel(order: i64, x: &Number, scale: usize) -> Number {
    let negative = order < 0 && order % 2 != 0;
    let order = order.abs();
    let work = scale + 10 + x.rescaled(0).length() * 2;
    let half = x.div(&Number::integer(2), work).unwrap_or_default();
    let mut first = Number::integer(1).rescaled(work);
    for index in 1..=order {
        first = first.mul(&half, work).div(&Number::integer(index), work).unwrap_or_default();
    }
    let square = half.mul(&half, work).neg();
    let result = series(first, work, |term, index| term.mul(&square, work).div(&Number::integer(index * (order + index)), work))
        .rescaled(scale);
    if negative { result.neg() } else { result }
}
