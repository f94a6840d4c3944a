//! The utilities that come from uutils: the large and the rarely started ones.
//!
//! Their own complaints about options are worded by `clap`; [`run`] looks at the options first and words them as GNU does.

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
    /// `pr`.
    pr, 1, uu_pr::uumain, "0123456789abcdD:e::fFh:i::JlL:mn::N:o:rs::S::tTvw:W:l:", [
        ("pages", Needs, 'P'), ("columns", Needs, 'C'), ("across", No, 'a'), ("show-control-chars", No, 'c'), ("double-space", No, 'd'),
        ("date-format", Needs, 'D'), ("expand-tabs", May, 'e'), ("form-feed", No, 'f'), ("header", Needs, 'h'), ("output-tabs", May, 'i'),
        ("join-lines", No, 'J'), ("length", Needs, 'l'), ("merge", No, 'm'), ("number-lines", May, 'n'), ("first-line-number", Needs, 'N'),
        ("indent", Needs, 'o'), ("no-file-warnings", No, 'r'), ("separator", May, 's'), ("sep-string", May, 'S'), ("omit-header", No, 't'),
        ("omit-pagination", No, 'T'), ("show-nonprinting", No, 'v'), ("width", Needs, 'w'), ("page-width", Needs, 'W'),
    ];
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
    /// `split`.
    split, 1, uu_split::uumain, "0123456789a:b:C:del:n:t:ux", [
        ("suffix-length", Needs, 'a'), ("additional-suffix", Needs, 'A'), ("bytes", Needs, 'b'), ("line-bytes", Needs, 'C'), ("numeric-suffixes", May, 'd'),
        ("hex-suffixes", May, 'x'), ("elide-empty-files", No, 'e'), ("filter", Needs, 'f'), ("lines", Needs, 'l'), ("number", Needs, 'n'),
        ("separator", Needs, 't'), ("unbuffered", No, 'u'), ("verbose", No, 'v'), ("-io-blksize", Needs, 'B'),
    ];
}

fn without_options(args: Args, name: &str, main: fn(std::vec::IntoIter<OsString>) -> i32) -> Outcome {
    let _ = uucore::locale::setup_localization(name);
    Ok(main(args.into_iter()))
}

/// `printf`.
pub fn printf(args: Args) -> Outcome {
    without_options(args, "printf", uu_printf::uumain)
}
