//! What the parser accepts, refuses and says.

use super::*;

fn check_error(source: &str, expected: &str) {
    let mut parser = Parser::new(source, Options::default());
    let error = loop {
        match parser.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("`{source}` was accepted"),
            Err(error) => break error,
        }
    };
    let mut text = format!("line {}: {}", error.line, error.message);
    if let Some(second) = error.second {
        text.push_str(&format!("|{second}"));
    }
    assert_eq!(text, expected, "{source}");
}

#[test]
fn errors_are_worded_as_bash_words_them() {
    check_error("if true", "line 2: syntax error: unexpected end of file");
    check_error("echo )", "line 1: syntax error near unexpected token `)'|`echo )'");
    check_error("echo a\nfoo ( bar", "line 2: syntax error near unexpected token `bar'|`foo ( bar'");
    check_error("echo \"abc", "line 1: unexpected EOF while looking for matching `\"'");
}
