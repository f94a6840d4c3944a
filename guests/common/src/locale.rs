//! The locale, of which a guest needs to know one thing: whether a character is a UTF-8 sequence or a byte.

use std::sync::OnceLock;

/// Returns whether the locale's characters are UTF-8. Without any variable they are bytes, as in the C locale.
#[must_use]
pub fn utf8() -> bool {
    static UTF8: OnceLock<bool> = OnceLock::new();
    *UTF8.get_or_init(|| {
        let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let value = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
        value.is_some_and(|value| {
            let value = value.to_ascii_lowercase();
            value.contains("utf-8") || value.contains("utf8")
        })
    })
}
