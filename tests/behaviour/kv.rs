//! Keys and values: JSON next to the files, with versions for concurrent writers.

use runtime::{Error, Preset, Sandbox};
use serde_json::json;

use super::{host, sandbox};

#[test]
fn any_json_is_a_value() {
    let sandbox = sandbox();
    for value in [json!(null), json!("text"), json!(-1.5), json!([1, {"a": [true]}])] {
        sandbox.kv().set("key", value.clone()).unwrap();
        assert_eq!(sandbox.kv().get("key").unwrap(), Some(value));
    }
}

#[test]
fn one_of_two_concurrent_writers_wins() {
    let sandbox = sandbox();
    let first = sandbox.kv().compare_and_set("turn", 0, "a").unwrap();
    assert!(sandbox.kv().compare_and_set("turn", 0, "b").is_err());
    let second = sandbox.kv().compare_and_set("turn", first, "c").unwrap();
    let error = sandbox.kv().compare_and_set("turn", first, "d").unwrap_err();
    assert_eq!(error.to_string(), "key `turn` has version 2, expected 1");
    let entry = sandbox.kv().entry("turn").unwrap().unwrap();
    assert_eq!((entry.value, entry.version, second), (json!("c"), 2, 2));
}

#[test]
fn keys_are_listed_by_prefix_and_deleted() {
    let sandbox = sandbox();
    for key in ["a%1", "a%2", "ab", "b"] {
        sandbox.kv().set(key, 1).unwrap();
    }
    assert_eq!(sandbox.kv().keys("a%").unwrap(), ["a%1", "a%2"]);
    assert!(sandbox.kv().delete("ab").unwrap());
    assert!(!sandbox.kv().delete("ab").unwrap());
    assert_eq!(sandbox.kv().keys("").unwrap(), ["a%1", "a%2", "b"]);
}

#[test]
fn a_value_that_is_too_large_is_refused() {
    let sandbox = Sandbox::builder().host(host()).preset(Preset::Strict).open().unwrap();
    let allowed = usize::try_from(sandbox.limits().value.0).unwrap();
    // The quotes of a JSON string are part of its size.
    sandbox.kv().set("key", "x".repeat(allowed - 2)).unwrap();
    assert!(matches!(sandbox.kv().set("key", "x".repeat(allowed - 1)), Err(Error::Invalid(_))));
}
