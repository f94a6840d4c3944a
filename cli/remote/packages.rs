//! `pip` on a server: this machine's pip finds the wheels, which are checked here and sent.

use anyhow::Context as _;
use serde_json::{Value, json};

use super::http::escaped;
use super::{Remote, text};
use crate::args::PipVerb;
use crate::commands::wheels;
use crate::exit::Code;

pub(super) fn run(remote: &Remote<'_>, verb: &PipVerb) -> anyhow::Result<Code> {
    let place =
        |name: &str| Ok::<_, anyhow::Error>(format!("{}/packages/{}", remote.sandbox()?, escaped(name).replace('/', "%2F")));
    match verb {
        PipVerb::Install(args) => {
            let (found, outcome) = wheels(args, remote.printer)?;
            let mut installed = Vec::new();
            for (name, wheel) in &found {
                let made = remote.http.send("PUT", &place(name)?, &[("Content-Type", "application/octet-stream")], wheel)?;
                let made: Value = serde_json::from_slice(&made.bytes()?).context("invalid response of the server")?;
                installed.extend(made["installed"].as_array().cloned().unwrap_or_default());
            }
            remote.lines(&json!({ "installed": installed }), &json!(installed), |row| {
                format!("installed {} {}", text(row, "name"), text(row, "version"))
            })?;
            Ok(outcome)
        }
        PipVerb::List => {
            let found = remote.http.json("GET", &format!("{}/packages", remote.sandbox()?), None)?;
            remote.lines(&found, &found["packages"], |row| format!("{}  {}", text(row, "name"), text(row, "version")))
        }
        PipVerb::Uninstall { names } => {
            for name in names {
                remote.http.send("DELETE", &place(name)?, &[], b"")?.bytes()?;
                if !remote.printer.is_json() {
                    remote.printer.line(&remote.printer.foreign(&format!("uninstalled {name}")));
                }
            }
            Ok(Code::Success)
        }
    }
}
