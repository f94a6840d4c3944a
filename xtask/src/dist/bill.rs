//! The bill of materials of a distribution, in the format CycloneDX 1.6.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::components::Component;
use crate::Fallible;

/// Returns the bill of materials as JSON: crates, guests, and the C code inside. `guests` is the directory of the built modules.
pub(crate) fn bill(components: &[Component], guests: &Path, version: &str, date: u64) -> Fallible<String> {
    let mut parts: Vec<Value> = components.iter().map(of_crate).collect();
    for (name, description) in [("shell", "The shell and its utilities"), ("python", "CPython and its libraries")] {
        let sha256 = fs::read_to_string(guests.join(format!("{name}.sha256")))?.trim().to_owned();
        parts.push(json!({
            "type": "application", "bom-ref": format!("guest:{name}"), "name": format!("sandlite-guest-{name}"), "version": version,
            "description": format!("{description}, as a WebAssembly module"), "hashes": [{ "alg": "SHA-256", "content": sha256 }],
        }));
    }
    parts.extend(in_python(&fs::read_to_string(guests.join("python.licenses"))?));
    if let Some(sqlite) = components.iter().find(|component| component.name == "libsqlite3-sys") {
        let header = fs::read_to_string(sqlite.directory.join("sqlite3/sqlite3.h"))?;
        let version = defined(&header, "SQLITE_VERSION").ok_or("the header of SQLite has no version")?;
        parts.push(other("sqlite", &version, "blessing"));
    }
    parts.push(other("rust-std", &rust_version()?, "MIT OR Apache-2.0"));
    let this = format!("pkg:generic/sandlite@{version}");
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(date),
            "component": {
                "type": "application", "bom-ref": this, "name": "sandlite", "version": version, "purl": this,
                "licenses": [{ "expression": "Apache-2.0" }],
            },
        },
        "components": parts,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&bill)?))
}

fn of_crate(component: &Component) -> Value {
    let Component { name, version, license, .. } = component;
    let purl = format!("pkg:cargo/{name}@{version}");
    let mut part = json!({
        "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": [{ "expression": license }],
    });
    if let Some(sha256) = &component.sha256 {
        part["hashes"] = json!([{ "alg": "SHA-256", "content": sha256 }]);
    }
    if let Some(repository) = &component.repository {
        part["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    part
}

fn other(name: &str, version: &str, license: &str) -> Value {
    let purl = format!("pkg:generic/{name}@{version}");
    json!({ "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": [named(license)] })
}

// An SPDX identifier has no spaces; everything else is an expression or a name.
fn named(license: &str) -> Value {
    match license {
        "MIT OR Apache-2.0" => json!({ "expression": license }),
        id if !id.contains(' ') => json!({ "license": { "id": id } }),
        name => json!({ "license": { "name": name } }),
    }
}

// The table at the beginning of the licenses that come with CPython: name, version and license of each part.
fn in_python(licenses: &str) -> Vec<Value> {
    let rows = licenses.lines().filter_map(|line| line.strip_prefix("| ")).map(|line| line.split(" | ").collect::<Vec<_>>());
    let rows = rows.filter(|cells| cells.len() >= 4 && cells.first() != Some(&"Component"));
    rows.map(|cells| {
        let (name, version, license) = (cells[0].split(" (").next().unwrap_or_default(), cells[1], cells[2]);
        let mut part = json!({
            "type": "library", "bom-ref": format!("guest:python/{name}"), "name": name, "version": version,
            "licenses": [{ "license": { "name": license } }],
        });
        if name == "CPython" {
            part["cpe"] = json!(format!("cpe:2.3:a:python:python:{version}:*:*:*:*:*:*:*"));
        }
        part
    })
    .collect()
}

fn defined(header: &str, name: &str) -> Option<String> {
    let line = header.lines().find_map(|line| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' '))?;
    Some(line.trim().trim_matches('"').to_owned())
}

fn rust_version() -> Fallible<String> {
    let text = crate::run::output(std::process::Command::new("rustc").arg("-V"), "install Rust with rustup")?;
    Ok(text.split_whitespace().nth(1).ok_or("`rustc -V` prints no version")?.to_owned())
}

/// Returns a time as `2026-11-18T14:53:27Z`; `seconds` are since 1970.
fn timestamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= if is_leap(year) { 366 } else { 365 } {
        day -= if is_leap(year) { 366 } else { 365 };
        year += 1;
    }
    let lengths = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}T{:02}:{:02}:{:02}Z", day + 1, rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_the_format() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_013_607, "2026-11-18T14:53:27Z"),
        ] {
            assert_eq!(timestamp(seconds), expected);
        }
    }

    #[test]
    fn parts_of_cpython_are_read_from_its_table() {
        let parts = in_python(
            "| Component | Version | License | Where |\n|---|---|---|---|\n| CPython (all) | 3.14.8 | Python-2.0 | `x` |\n",
        );
        assert_eq!(parts.len(), 1);
        assert_eq!((&parts[0]["name"], &parts[0]["version"]), (&json!("CPython"), &json!("3.14.8")));
        assert_eq!(parts[0]["cpe"], "cpe:2.3:a:python:python:3.14.8:*:*:*:*:*:*:*");
    }

    #[test]
    fn the_version_of_sqlite_is_read_from_its_header() {
        assert_eq!(defined("#define SQLITE_VERSION        \"3.51.0\"\n", "SQLITE_VERSION").as_deref(), Some("3.51.0"));
    }
}
