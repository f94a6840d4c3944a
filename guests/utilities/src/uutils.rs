//! The utilities that come from uutils: the large and the rarely started ones.
//!
//! Their own complaints about options are worded by `clap`; [`run`] looks at the options first and words them as GNU does.

pub mod csplit;

use std::ffi::OsString;

use crate::options::{self, May, Needs, No, Spec};
use crate::program::{self, Args, Outcome};

fn run(args: Args, name: &str, spec: &Spec, main: fn(std::vec::IntoIter<OsString>) -> i32) -> Outcome {
    options::check(&args, spec)?;
    // English is built in: this fails only when it was done before.
    let _ = uucore::locale::setup_localization(name);
    Ok(main(args.into_iter()))
}

macro_rules! utilities {
    ($($(#[$doc:meta])* $name:ident, $failure:literal, $main:path, $short:literal, [$($long:expr),* $(,)?];)*) => {
        $(
            $(#[$doc])*
            pub fn $name(args: Args) -> Outcome {
                program::set_failure($failure);
                run(args, stringify!($name), &Spec { short: $short, long: &[$($long),*], help: "" }, |args| $main(args))
            }
        )*
    };
}

utilities! {
    /// `basenc`.
    basenc, 1, uu_basenc::uumain, "diw:", [
        ("base64", No, 'A'), ("base64url", No, 'B'), ("base58", No, 'C'), ("base32", No, 'D'), ("base32hex", No, 'E'), ("base16", No, 'F'),
        ("base2msbf", No, 'G'), ("base2lsbf", No, 'H'), ("z85", No, 'I'), ("decode", No, 'd'), ("ignore-garbage", No, 'i'), ("wrap", Needs, 'w'),
    ];
    /// `csplit`.
    csplit, 1, uu_csplit::uumain, "b:f:kn:sqz0123456789", [
        ("suffix-format", Needs, 'b'), ("prefix", Needs, 'f'), ("keep-files", No, 'k'), ("suppress-matched", No, 'm'), ("digits", Needs, 'n'),
        ("quiet", No, 's'), ("silent", No, 's'), ("elide-empty-files", No, 'z'),
    ];
    /// `dircolors`.
    dircolors, 1, uu_dircolors::uumain, "bcp", [
        ("sh", No, 'b'), ("bourne-shell", No, 'b'), ("csh", No, 'c'), ("c-shell", No, 'c'), ("print-database", No, 'p'), ("print-ls-colors", No, 'l'),
    ];
    /// `factor`.
    factor, 1, uu_factor::uumain, "h", [("exponents", No, 'h')];
    /// `join`.
    join, 1, uu_join::uumain, "a:e:i1:2:j:o:t:v:z", [
        ("ignore-case", No, 'i'), ("check-order", No, 'c'), ("nocheck-order", No, 'n'), ("header", No, 'h'), ("zero-terminated", No, 'z'),
    ];
    /// `od`.
    od, 1, uu_od::uumain, "A:aBbcDdeFfHhIij:LlN:OoS:st:vw::Xx", [
        ("skip-bytes", Needs, 'j'), ("address-radix", Needs, 'A'), ("read-bytes", Needs, 'N'), ("format", Needs, 't'), ("output-duplicates", No, 'v'),
        ("strings", May, 'S'), ("traditional", No, 'T'), ("width", May, 'w'), ("endian", Needs, 'E'),
    ];
    /// `pathchk`.
    pathchk, 1, uu_pathchk::uumain, "+pP", [("portability", No, 'x')];
    /// `ptx`.
    ptx, 1, uu_ptx::uumain, "AF:GM:ORS:TW:b:i:fg:o:rtw:", [
        ("auto-reference", No, 'A'), ("traditional", No, 'G'), ("flag-truncation", Needs, 'F'), ("macro-name", Needs, 'M'), ("format", Needs, 'x'),
        ("right-side-refs", No, 'R'), ("sentence-regexp", Needs, 'S'), ("word-regexp", Needs, 'W'), ("break-file", Needs, 'b'), ("ignore-case", No, 'f'),
        ("gap-size", Needs, 'g'), ("ignore-file", Needs, 'i'), ("only-file", Needs, 'o'), ("references", No, 'r'), ("typeset-mode", No, 't'), ("width", Needs, 'w'),
    ];
    /// `shred`.
    shred, 1, uu_shred::uumain, "fn:s:uvxz", [
        ("force", No, 'f'), ("iterations", Needs, 'n'), ("size", Needs, 's'), ("remove", May, 'u'), ("verbose", No, 'v'), ("exact", No, 'x'),
        ("zero", No, 'z'), ("random-source", Needs, 'R'),
    ];
}

/// `join`, whose operands are counted here: in GNU's words.
pub fn join_two(args: Args) -> Outcome {
    let words = args.iter().skip(1);
    let asks = words.clone().any(|word| matches!(word.to_str(), Some("--help" | "--version")));
    let spec = Spec {
        short: "a:e:i1:2:j:o:t:v:z",
        long: &[
            ("ignore-case", No, 'i'),
            ("check-order", No, 'c'),
            ("nocheck-order", No, 'n'),
            ("header", No, 'h'),
            ("zero-terminated", No, 'z'),
        ],
        help: "",
    };
    if !asks {
        let given = options::parse(args.clone(), &spec)?;
        match given.operands.as_slice() {
            [_, _] => {}
            [_, _, extra, ..] => return Err(program::usage(format!("extra operand '{}'", extra.to_string_lossy()))),
            few => return Err(program::missing_operand(few.last())),
        }
    }
    join(args)
}

/// `factor`, which says in GNU's words what is no number.
pub fn factor_each(args: Args) -> Outcome {
    let is_number = |word: &OsString| {
        let text = program::bytes(word).strip_prefix(b"+").unwrap_or(program::bytes(word));
        !text.is_empty() && text.iter().all(u8::is_ascii_digit)
    };
    let (mut kept, mut wrong) = (Vec::new(), false);
    let mut words = args.into_iter();
    kept.extend(words.next());
    for word in words {
        if is_number(&word) || program::bytes(&word).starts_with(b"-") {
            kept.push(word);
        } else {
            program::warn(format!("{} is not a valid positive integer", crate::quote::plain(&word)));
            wrong = true;
        }
    }
    // Without a number it would read them from standard input.
    if wrong && kept.len() == 1 {
        return Ok(1);
    }
    factor(kept).map(|status| status.max(i32::from(wrong)))
}

/// `od`, with the old name of an option.
pub fn od_any(mut args: Args) -> Outcome {
    args.iter_mut().skip(1).filter(|word| *word == "-B").for_each(|word| *word = "-o".into());
    od(args)
}
