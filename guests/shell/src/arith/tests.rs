//! Values and errors, compared with bash 5.2's.

use std::collections::HashMap;

use super::*;

#[derive(Default)]
struct Map(HashMap<String, String>);

impl Variables for Map {
    fn get(&mut self, name: &str) -> Result<Option<&str>, String> {
        Ok(self.0.get(name).map(String::as_str))
    }
    fn set(&mut self, name: &str, value: i64) -> Result<(), String> {
        self.0.insert(name.to_owned(), value.to_string());
        Ok(())
    }
    fn is_associative(&mut self, name: &str) -> bool {
        name == "map"
    }
    fn expand(&mut self, subscript: &str) -> Result<String, String> {
        Ok(subscript.to_owned())
    }
    fn get_index(&mut self, name: &str, index: i64) -> Result<Option<&str>, String> {
        Ok(self.0.get(&format!("{name}[{index}]")).map(String::as_str))
    }
    fn set_index(&mut self, name: &str, index: i64, value: i64) -> Result<(), String> {
        self.set(&format!("{name}[{index}]"), value)
    }
    fn get_key(&mut self, name: &str, key: &str) -> Result<Option<&str>, String> {
        Ok(self.0.get(&format!("{name}[{key}]")).map(String::as_str))
    }
    fn set_key(&mut self, name: &str, key: &str, value: i64) -> Result<(), String> {
        self.set(&format!("{name}[{key}]"), value)
    }
}

fn check(text: &str, expected: &str) {
    let mut variables = Map::default();
    for (name, value) in [("x", "7"), ("y", "x"), ("loop", "loop"), ("bad", "1+"), ("z", "y+1"), ("map[k m]", "5")] {
        variables.0.insert(name.to_owned(), value.to_owned());
    }
    let got = match evaluate(text, &mut variables) {
        Ok(value) => value.to_string(),
        Err(error) => error.message,
    };
    assert_eq!(got, expected, "{text}");
}

#[test]
fn values_are_those_of_bash() {
    for (text, expected) in [
        ("", "0"),
        (" ", "0"),
        ("0x", "0"),
        ("99999999999999999999", "7766279631452241919"),
        ("16#ff", "255"),
        ("64#_@", "4094"),
        ("37#aA", "406"),
        ("++1", "1"),
        ("--a", "-1"),
        ("1<<2", "4"),
        ("1<<64", "1"),
        ("1<<-1", "-9223372036854775808"),
        ("1,2", "2"),
        ("- -1", "1"),
        ("!!5", "1"),
        ("0 && 1/0", "0"),
        ("1 || 1/0", "1"),
        ("1 ? 2 : 1/0", "2"),
        ("0 ? 1/0 : 2", "2"),
        ("q=w=3", "3"),
        ("0 ? a=1 : 2", "2"),
        ("-9223372036854775808 / -1", "-9223372036854775808"),
        ("-9223372036854775808 % -1", "0"),
        ("9223372036854775807+1", "-9223372036854775808"),
        ("9223372036854775808", "-9223372036854775808"),
        ("0xffffffffffffffff", "-1"),
        ("1?2:3?4:5", "2"),
        ("2+3*4**2", "50"),
        ("-2**2", "4"),
        ("2**3**2", "512"),
        ("5-3-1", "1"),
        ("!0 + 1", "2"),
        ("~0", "-1"),
        ("1<2<3", "1"),
        ("3>2>1", "0"),
        ("7&3|8^1", "11"),
        ("a+++b", "0"),
        ("+ + 3", "3"),
        ("1 +++ 2", "3"),
        ("1 -- 2", "3"),
        ("1++2", "3"),
        ("a=1,b=2,a+b", "3"),
        ("10#08", "8"),
        ("a <<= 2", "0"),
        ("a=3, a*=4", "12"),
        ("((1))", "1"),
        ("2**63", "-9223372036854775808"),
        ("3**50", "6048575297968530377"),
        ("- 5 % 3", "-2"),
        ("-7/2", "-3"),
        ("7/-2", "-3"),
        ("a[b[1]]", "0"),
        ("a[1]++", "0"),
        ("++a[1]", "1"),
        ("x+y+z", "22"),
        ("map[k m]+1", "6"),
        ("i=5, i++ + ++i", "12"),
        ("1+x=2, x", r#"1+x=2, x: attempted assignment to non-variable (error token is "=2, x")"#),
    ] {
        check(text, expected);
    }
}

#[test]
fn errors_are_those_of_bash() {
    for (text, expected) in [
        ("1+", r#"1+: syntax error: operand expected (error token is "+")"#),
        (" 1 + ", r#"1 + : syntax error: operand expected (error token is "+ ")"#),
        ("1/0", r#"1/0: division by 0 (error token is "0")"#),
        ("10 / ( 5 - 5 ) ", r#"10 / ( 5 - 5 ) : division by 0 (error token is "( 5 - 5 ) ")"#),
        ("1 2", r#"1 2: syntax error in expression (error token is "2")"#),
        ("1 + + ", r#"1 + + : syntax error: operand expected (error token is "+ ")"#),
        ("a b", r#"a b: syntax error in expression (error token is "b")"#),
        ("08", r#"08: value too great for base (error token is "08")"#),
        ("08+1", r#"08: value too great for base (error token is "08")"#),
        ("-08", r#"-08: value too great for base (error token is "08")"#),
        ("1a", r#"1a: value too great for base (error token is "1a")"#),
        ("65#1", r#"65#1: invalid arithmetic base (error token is "65#1")"#),
        ("10#", r#"10#: invalid integer constant (error token is "10#")"#),
        ("1=2", r#"1=2: attempted assignment to non-variable (error token is "=2")"#),
        ("(a)=2", r#"(a)=2: attempted assignment to non-variable (error token is "=2")"#),
        ("1++", r#"1++: syntax error: operand expected (error token is "+")"#),
        ("a++ ++", r#"a++ ++: syntax error: operand expected (error token is "+")"#),
        ("1 ? 2", r#"1 ? 2: `:' expected for conditional expression (error token is "2")"#),
        ("1 ? 2 :", r#"1 ? 2 :: expression expected (error token is ":")"#),
        ("1 : 2", r#"1 : 2: syntax error in expression (error token is ": 2")"#),
        ("? 1", r#"? 1: syntax error: operand expected (error token is "? 1")"#),
        ("1 ?: 2", r#"1 ?: 2: expression expected (error token is ": 2")"#),
        ("a=", r#"a=: syntax error: operand expected (error token is "=")"#),
        ("a+=", r#"a+=: syntax error: operand expected (error token is "+=")"#),
        ("2**-1", r#"2**-1: exponent less than 0 (error token is "1")"#),
        ("'1'", r#"'1': syntax error: operand expected (error token is "'1'")"#),
        ("1.5", r#"1.5: syntax error: invalid arithmetic operator (error token is ".5")"#),
        ("1 @ 2", r#"1 @ 2: syntax error: invalid arithmetic operator (error token is "@ 2")"#),
        ("a[", r#"a[: bad array subscript (error token is "a[")"#),
        ("a[1", r#"a[1: bad array subscript (error token is "a[1")"#),
        ("1 ? a=1 : a=2", r#"1 ? a=1 : a=2: attempted assignment to non-variable (error token is "=2")"#),
        ("1<>2", r#"1<>2: syntax error: operand expected (error token is ">2")"#),
        ("<<= 2", r#"<<= 2: syntax error: operand expected (error token is "<<= 2")"#),
        ("a/=0", r#"a/=0: division by 0 (error token is "0")"#),
        ("( )", r#"( ): syntax error: operand expected (error token is ")")"#),
        ("1 ()", r#"1 (): syntax error in expression (error token is "()")"#),
        ("++", r#"++: syntax error: operand expected (error token is "+")"#),
        ("a++b", r#"a++b: syntax error in expression (error token is "b")"#),
        ("++a++", r#"++a++: ++: assignment requires lvalue (error token is "++")"#),
        ("a[1][2]", r#"a[1][2]: syntax error: invalid arithmetic operator (error token is "[2]")"#),
        ("loop", r#"loop: expression recursion level exceeded (error token is "loop")"#),
        ("bad * 2", r#"1+: syntax error: operand expected (error token is "+")"#),
    ] {
        check(text, expected);
    }
}

#[test]
fn deep_nesting_is_an_error() {
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(Expression::parse(&deep).is_err());
    assert!(Expression::parse(&"-".repeat(100_000)).is_err());
    assert!(Expression::parse(&"a[".repeat(100_000)).is_err());
    let long = vec!["1"; 100_000].join("+");
    assert!(Expression::parse(&vec!["x"; 100_000].join("+")).is_err());
    assert_eq!(Expression::parse(&long).ok().and_then(|e| e.constant()), Some(100_000));
}
