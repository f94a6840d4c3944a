//! Patterns, arithmetic, braces and quotes take any text and end soon.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shell::ast::{Part, Word};
use pattern::{Flags, Pattern};
use shell::{arith, brace, bytes, quote, syntax};

fuzz_target!(|data: &[u8]| {
    let text = bytes::decode(data);
    let (pattern, subject) = text.split_once('\n').unwrap_or((&text, "aab[x]"));
    for (extglob, nocase) in [(false, false), (true, false), (true, true)] {
        let compiled = Pattern::compile(&[(pattern, false)], Flags { extglob, nocase, ..Flags::default() });
        let whole = compiled.matches(subject);
        assert_eq!(whole, compiled.prefix(subject, true) == Some(subject.len()));
        assert_eq!(whole, compiled.suffix(subject, true) == Some(0));
        assert!(compiled.prefix(subject, false) <= compiled.prefix(subject, true));
        let _ = compiled.replace(subject, true, str::to_owned);
    }
    let _ = arith::Expression::parse(&text);
    let _ = brace::expand(&Word { parts: vec![Part::Literal(text.clone())] }, 10_000);
    if !text.contains('\0') {
        for quoted in [quote::backslashes(&text).into_owned(), quote::single_or_ansi_c(&text), quote::declared(&text)] {
            let word = syntax::parse_shell_word(&quoted, syntax::Options::default()).expect("quoted text is a word");
            assert_eq!(plain(&word.parts), text);
        }
    }
});

fn plain(parts: &[Part]) -> String {
    parts
        .iter()
        .map(|part| match part {
            Part::Literal(text) | Part::Quoted(text, _) => text.clone(),
            Part::DoubleQuoted { parts, .. } => plain(parts),
            _ => panic!("quoted text holds an expansion"),
        })
        .collect()
}
