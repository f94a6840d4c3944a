//! The shape of a message, scanned while its bytes arrive: limited before a parser builds anything (T-NET-04).
//!
//! Knows only that a message is one object with an `id` and a `method`.

use serde_json::Value;

/// Maximum size of a message: a file of a few megabytes in base64.
pub(crate) const LARGEST: usize = 16 << 20;
/// Maximum nesting of arrays and objects.
const DEEPEST: usize = 64;
/// Maximum number of values, because a parsed value takes many times the memory of its text, such as `0,`.
const MOST_VALUES: usize = 250_000;
/// Memory of a parsed value besides its text.
const VALUE_BYTES: usize = 64;
/// Maximum length of an `id`, which is stored while the request runs and sent back with the response.
const LONGEST_ID: usize = 256;
/// Maximum length of a `method`.
const LONGEST_METHOD: usize = 64;

/// The reason a message is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLarge,
    TooDeep,
    TooManyValues,
    LongId,
    Batch,
}

impl Fault {
    /// Returns the reason for the client.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "the message is too large: the maximum is 16 MB; send large files in parts",
            Self::TooDeep => "the message is nested too deeply: the maximum is 64 levels",
            Self::TooManyValues => "the message has too many values: the maximum is 250000",
            Self::LongId => "the `id` of the message is too long: the maximum is 256 bytes",
            Self::Batch => "batches are not supported: send one message at a time",
        }
    }
}

/// The field whose value is being scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Field {
    #[default]
    Other,
    Id,
    Method,
}

/// The scan state of a message. Bytes arrive in any pieces, and only `id` and `method` are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    size: usize,
    values: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// Whether the next string of the outermost object is a name.
    expects_name: bool,
    name: Vec<u8>,
    field: Field,
    id: Vec<u8>,
    id_is_cut: bool,
    method: Vec<u8>,
    fault: Option<Fault>,
}

impl Shape {
    /// Scans a whole message.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut shape = Self::default();
        shape.feed(bytes);
        shape
    }

    /// Scans the next bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.size = self.size.saturating_add(bytes.len());
        if self.size > LARGEST {
            self.refuse(Fault::TooLarge);
        }
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            // Most bytes of a large message are inside strings that are skipped.
            if self.in_string && !self.escaped && !self.keeps() {
                let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
                if end > 0 {
                    rest = rest.get(end..).unwrap_or_default();
                    continue;
                }
            }
            self.step(byte);
            rest = after;
        }
    }

    // Whether the scanned text is a name, an `id` or a `method` of the outermost object.
    fn keeps(&self) -> bool {
        self.depth == 1 && (self.expects_name || self.field != Field::Other)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if self.depth == 1 && self.expects_name {
                    self.name.clear();
                }
                self.keep(byte);
            }
            b'[' | b'{' => {
                if self.depth == 0 && byte == b'[' {
                    self.refuse(Fault::Batch);
                }
                self.keep(byte);
                self.depth += 1;
                self.count();
                self.expects_name |= self.depth == 1;
                if self.depth > DEEPEST {
                    self.refuse(Fault::TooDeep);
                }
            }
            b']' | b'}' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.expects_name = false;
                // As the parser reads it: a letter may be written as `\u006d`.
                self.field = match serde_json::from_slice::<String>(&self.name).as_deref() {
                    Ok("id") => Field::Id,
                    Ok("method") => Field::Method,
                    _ => Field::Other,
                };
            }
            b',' => {
                self.count();
                if self.depth == 1 {
                    (self.expects_name, self.field) = (true, Field::Other);
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.keep(byte),
        }
    }

    fn count(&mut self) {
        self.values += 1;
        if self.values > MOST_VALUES {
            self.refuse(Fault::TooManyValues);
        }
    }

    // Only the first fault is reported.
    fn refuse(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    fn keep(&mut self, byte: u8) {
        if !self.keeps() {
            return;
        }
        let (kept, longest) = match self.field {
            _ if self.expects_name => (&mut self.name, LONGEST_METHOD),
            Field::Id => (&mut self.id, LONGEST_ID),
            Field::Method => (&mut self.method, LONGEST_METHOD),
            Field::Other => return,
        };
        if kept.len() < longest {
            kept.push(byte);
        } else if self.field == Field::Id && !self.expects_name {
            self.id_is_cut = true;
            self.refuse(Fault::LongId);
        }
    }

    /// Returns the reason the message is rejected, if any.
    pub(crate) fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Returns the `id`, if it is valid.
    pub(crate) fn id(&self) -> Option<Value> {
        // A truncated ID would be a different one.
        let whole = Some(&self.id).filter(|_| !self.id_is_cut)?;
        let id: Value = serde_json::from_slice(whole).ok()?;
        (id.is_string() || id.is_number()).then_some(id)
    }

    /// Returns the `method`.
    pub(crate) fn method(&self) -> Option<String> {
        serde_json::from_slice(&self.method).ok()
    }

    /// Returns the memory of the parsed message.
    pub(crate) fn weight(&self) -> usize {
        self.size.saturating_add(self.values.saturating_mul(VALUE_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(text: &str, id: Option<Value>, method: Option<&str>, fault: Option<Fault>) {
        let whole = Shape::of(text.as_bytes());
        let mut bytewise = Shape::default();
        text.as_bytes().iter().for_each(|&byte| bytewise.feed(&[byte]));
        for shape in [whole, bytewise] {
            let start: String = text.chars().take(60).collect();
            assert_eq!((shape.id(), shape.method().as_deref(), shape.fault()), (id.clone(), method, fault), "{start}");
        }
    }

    #[test]
    fn id_and_method_are_those_of_the_message_itself() {
        check(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, Some(json!(7)), Some("ping"), None);
        check(
            r#" { "method" : "a/b" , "params":{"id":1,"method":"x"}, "id" : "se\"ven" } "#,
            Some(json!("se\"ven")),
            Some("a/b"),
            None,
        );
        check(r#"{"params":["id",{"id":3}],"method":"m"}"#, None, Some("m"), None);
        check(r#"{"id":null,"x":"\"id\":5"}"#, None, None, None);
        check(r#"{"id":{"a":1}}"#, None, None, None);
        check(r#"{"\u0069d":7,"m\u0065thod":"tools\/call"}"#, Some(json!(7)), Some("tools/call"), None);
        let escaped: String = "method".chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
        check(&format!("{{\"{escaped}\":\"ping\"}}"), None, Some("ping"), None);
    }

    // T-NET-04.
    #[test]
    fn deep_and_joined_messages_and_those_with_long_ids_are_refused() {
        let nested = |depth: usize| format!("{{\"id\":1,\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        check(&nested(63), Some(json!(1)), None, None);
        check(&nested(64), Some(json!(1)), None, Some(Fault::TooDeep));
        check(" \n[{}]", None, None, Some(Fault::Batch));
        check(&"[".repeat(100_000), None, None, Some(Fault::Batch));
        check(&format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(99)), None, None, None);
        check(&format!("{{\"id\":\"{}\"}}", "x".repeat(253)), Some(json!("x".repeat(253))), None, None);
        check(&format!("{{\"id\":\"{}\"}}", "x".repeat(255)), None, None, Some(Fault::LongId));
        check(&format!("{{\"id\":{}}}", "9".repeat(999)), None, None, Some(Fault::LongId));
    }

    // T-NET-04: two bytes of text take dozens of bytes of memory.
    #[test]
    fn many_small_values_are_refused_and_weighed() {
        let list = |count: usize| format!("{{\"id\":2,\"a\":[{}0]}}", "0,".repeat(count));
        check(&list(MOST_VALUES - 3), Some(json!(2)), None, None);
        check(&list(MOST_VALUES), Some(json!(2)), None, Some(Fault::TooManyValues));
        assert_eq!(Shape::of(b"{\"a\":[0,0]}").weight(), 11 + 3 * VALUE_BYTES);
    }

    // T-NET-04: the ID of a discarded message is still known, so that its client does not wait forever.
    #[test]
    fn a_message_that_is_too_large_still_has_its_id() {
        let mut shape = Shape::default();
        shape.feed(b"{\"params\":\"");
        (0..17).for_each(|_| shape.feed(&vec![b'x'; 1 << 20]));
        shape.feed(b"\",\"id\":9}");
        assert_eq!((shape.fault(), shape.id()), (Some(Fault::TooLarge), Some(json!(9))));
    }
}
