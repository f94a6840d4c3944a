//! `RECORD`: the files of a package, with their hashes and sizes, as lines of CSV.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Formats the line of a file.
pub(super) fn line(name: &str, content: &[u8]) -> String {
    format!("{},{},{}", quoted(name), hash(content), content.len())
}

/// Returns a file's hash in the format of `RECORD`.
pub(super) fn hash(content: &[u8]) -> String {
    format!("sha256={}", URL_SAFE_NO_PAD.encode(Sha256::digest(content)))
}

/// Returns the names in a record.
pub(super) fn names(text: &str) -> Vec<String> {
    rows(text).map(|[name, _, _]| name).collect()
}

/// Returns name, hash and size of each file.
pub(super) fn rows(text: &str) -> impl Iterator<Item = [String; 3]> {
    text.lines().filter(|line| !line.is_empty()).map(row)
}

fn quoted(name: &str) -> String {
    if name.contains([',', '"']) { format!("\"{}\"", name.replace('"', "\"\"")) } else { name.to_owned() }
}

fn row(line: &str) -> [String; 3] {
    let mut fields = [const { String::new() }; 3];
    let (mut at, mut inside) = (0, false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if inside && letters.next_if_eq(&'"').is_some() => fields[at].push('"'),
            '"' => inside = !inside,
            ',' if !inside => at = (at + 1).min(2),
            letter => fields[at].push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_commas_and_quotes_round_trip() {
        for name in ["a.py", "a,b.py", "a\"b.py"] {
            assert_eq!(names(&line(name, b"")), [name]);
        }
    }

    #[test]
    fn a_hash_is_written_as_wheels_write_it() {
        assert_eq!(line("a", b""), "a,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0");
    }
}
