//! Any bytes are a script or a syntax error, never a crash; what was read can be printed, and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shell::bytes;
use shell::syntax::{Options, Parser};

fuzz_target!(|data: &[u8]| {
    let source = bytes::decode(data);
    assert_eq!(bytes::encode(&source).as_ref(), data);
    for extglob in [false, true] {
        let mut parser = Parser::new(&source, Options { extglob, ..Options::default() });
        while let Ok(Some(list)) = parser.next() {
            assert!(!list.items.is_empty());
            let printed = shell::print::list(&list);
            let _ = Parser::new(&printed, Options { extglob, ..Options::default() }).all();
        }
    }
});
