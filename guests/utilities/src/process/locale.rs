//! `locale`: the settings of the environment, and the languages of the sandbox, of which there is one.

use crate::options::{self, No, Spec};
use crate::program::{Args, Outcome, Output, fail, utf8};

const CATEGORIES: [&str; 12] = [
    "LC_CTYPE",
    "LC_NUMERIC",
    "LC_TIME",
    "LC_COLLATE",
    "LC_MONETARY",
    "LC_MESSAGES",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
];

const SPEC: Spec = Spec {
    short: "amckv",
    long: &[
        ("all-locales", No, 'a'),
        ("charmaps", No, 'm'),
        ("category-name", No, 'c'),
        ("keyword-name", No, 'k'),
        ("verbose", No, 'v'),
    ],
    help: "[OPTION...] NAME\n  or:  locale [OPTION...] [-a|-m]",
};

/// Runs `locale`.
pub fn locale(args: Args) -> Outcome {
    let given = options::parse(args, &SPEC)?;
    let mut out = Output::new();
    if given.has('a') {
        out.text("C\nC.utf8\nPOSIX\n");
        return Ok(0);
    }
    if given.has('m') {
        out.text("ANSI_X3.4-1968\nUTF-8\n");
        return Ok(0);
    }
    if given.operands.is_empty() {
        out.text(settings());
        return Ok(0);
    }
    let mut status = 0;
    for name in &given.operands {
        let (keyword, value) = match name.to_string_lossy().as_ref() {
            "charmap" => ("charmap", if utf8() { "UTF-8" } else { "ANSI_X3.4-1968" }),
            "decimal_point" => ("decimal_point", "."),
            "thousands_sep" => ("thousands_sep", ""),
            "yesexpr" => ("yesexpr", "^[yY]"),
            "noexpr" => ("noexpr", "^[nN]"),
            category if CATEGORIES.contains(&category) => continue,
            other => {
                status = fail(format!("unknown name \"{other}\""));
                continue;
            }
        };
        if given.has('k') {
            out.text(format!("{keyword}=\"{value}\"\n"));
        } else {
            out.text(format!("{value}\n"));
        }
    }
    Ok(status)
}

// Values that only follow from others are quoted.
fn settings() -> String {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (lang, all) = (variable("LANG"), variable("LC_ALL"));
    let mut text = format!("LANG={lang}\nLANGUAGE={}\n", variable("LANGUAGE"));
    for category in CATEGORIES {
        let own = variable(category);
        let line = match (all.is_empty(), own.is_empty()) {
            (false, _) => format!("{category}=\"{all}\"\n"),
            (true, false) => format!("{category}={own}\n"),
            (true, true) if lang.is_empty() => format!("{category}=\"POSIX\"\n"),
            (true, true) => format!("{category}=\"{lang}\"\n"),
        };
        text.push_str(&line);
    }
    text + &format!("LC_ALL={all}\n")
}
