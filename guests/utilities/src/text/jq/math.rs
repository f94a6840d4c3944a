//! The functions of C's mathematical library.

use super::functions::{Native, type_error};
use super::value::Json;

type Outcome = Result<Json, Json>;

fn number(value: &Json) -> Result<f64, Json> {
    value.as_number().ok_or_else(|| type_error(value, "number required"))
}

fn one(value: &Json, run: fn(f64) -> f64) -> Outcome {
    Ok(Json::Number(run(number(value)?)))
}

fn two(arguments: &[Json], run: fn(f64, f64) -> f64) -> Outcome {
    match arguments {
        [a, b] => Ok(Json::Number(run(number(a)?, number(b)?))),
        _ => Ok(Json::Null),
    }
}

fn three(arguments: &[Json], run: fn(f64, f64, f64) -> f64) -> Outcome {
    match arguments {
        [a, b, c] => Ok(Json::Number(run(number(a)?, number(b)?, number(c)?))),
        _ => Ok(Json::Null),
    }
}

fn pair(first: f64, second: f64) -> Outcome {
    Ok(Json::array(vec![Json::Number(first), Json::Number(second)]))
}

fn exponent(number: f64) -> f64 {
    if number == 0.0 {
        f64::NEG_INFINITY
    } else if number.is_infinite() {
        f64::INFINITY
    } else if number.is_nan() {
        number
    } else {
        f64::from(libm::ilogb(number))
    }
}

fn significand(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() { number } else { libm::scalbn(number, -libm::ilogb(number)) }
}

fn whole(number: f64) -> i32 {
    number as i32
}

fn gamma(number: f64) -> f64 {
    libm::lgamma(number)
}

macro_rules! functions {
    ($($name:literal $arity:tt $run:expr;)*) => { &[$(functions!(@ $name $arity $run)),*] };
    (@ $name:literal 1 $run:expr) => { Native { name: $name, arguments: 0, run: |_, value, _| one(&value, $run) } };
    (@ $name:literal 2 $run:expr) => { Native { name: $name, arguments: 2, run: |_, _, arguments| two(&arguments, $run) } };
    (@ $name:literal 3 $run:expr) => { Native { name: $name, arguments: 3, run: |_, _, arguments| three(&arguments, $run) } };
    (@ $name:literal n $run:expr) => { Native { name: $name, arguments: 0, run: |_, value, _| $run(number(&value)?) } };
}

pub(super) const NATIVES: &[Native] = functions! {
    "acos" 1 f64::acos;
    "acosh" 1 libm::acosh;
    "asin" 1 f64::asin;
    "asinh" 1 libm::asinh;
    "atan" 1 f64::atan;
    "atan2" 2 f64::atan2;
    "atanh" 1 libm::atanh;
    "cbrt" 1 libm::cbrt;
    "ceil" 1 f64::ceil;
    "copysign" 2 f64::copysign;
    "cos" 1 f64::cos;
    "cosh" 1 f64::cosh;
    "drem" 2 libm::remainder;
    "erf" 1 libm::erf;
    "erfc" 1 libm::erfc;
    "exp" 1 f64::exp;
    "exp10" 1 libm::exp10;
    "exp2" 1 f64::exp2;
    "expm1" 1 f64::exp_m1;
    "fabs" 1 f64::abs;
    "fdim" 2 libm::fdim;
    "floor" 1 f64::floor;
    "fma" 3 f64::mul_add;
    "fmax" 2 f64::max;
    "fmin" 2 f64::min;
    "fmod" 2 libm::fmod;
    "frexp" n |value| {
        let (fraction, exponent) = libm::frexp(value);
        pair(fraction, f64::from(exponent))
    };
    "gamma" 1 gamma;
    "hypot" 2 f64::hypot;
    "j0" 1 libm::j0;
    "j1" 1 libm::j1;
    "jn" 2 |order, value| libm::jn(whole(order), value);
    "ldexp" 2 |value, power| libm::ldexp(value, whole(power));
    "lgamma" 1 gamma;
    "lgamma_r" n |value| {
        let (result, sign) = libm::lgamma_r(value);
        pair(result, f64::from(sign))
    };
    "log" 1 f64::ln;
    "log10" 1 f64::log10;
    "log1p" 1 f64::ln_1p;
    "log2" 1 f64::log2;
    "logb" 1 exponent;
    "modf" n |value: f64| {
        let fraction = if value.is_infinite() { 0.0 } else { value.fract() };
        pair(fraction.copysign(value), value.trunc())
    };
    "nearbyint" 1 f64::round_ties_even;
    "nextafter" 2 libm::nextafter;
    "nexttoward" 2 libm::nextafter;
    "pow" 2 f64::powf;
    "pow10" 1 libm::exp10;
    "remainder" 2 libm::remainder;
    "rint" 1 f64::round_ties_even;
    "round" 1 f64::round;
    "scalb" 2 |value, power| value * libm::exp2(power);
    "scalbln" 2 |value, power| libm::scalbn(value, whole(power));
    "significand" 1 significand;
    "sin" 1 f64::sin;
    "sinh" 1 f64::sinh;
    "sqrt" 1 f64::sqrt;
    "tan" 1 f64::tan;
    "tanh" 1 f64::tanh;
    "tgamma" 1 libm::tgamma;
    "trunc" 1 f64::trunc;
    "y0" 1 libm::y0;
    "y1" 1 libm::y1;
    "yn" 2 |order, value| libm::yn(whole(order), value);
};
