//! `sandlite policy`: manages the policy stored in the sandbox.

use runtime::Sandbox;
use serde_json::json;

use crate::args::{GivenPolicy, Global, PolicyArgs, PolicyVerb};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

pub(crate) fn run(global: &Global, args: &PolicyArgs, printer: &Printer) -> anyhow::Result<Code> {
    // It names hidden paths, and a view can only restrict.
    if global.view.is_some() {
        return Err(Hinted::error("cannot show or change the policy as a view", "omit `--view`"));
    }
    let open = |is_changed: bool| -> anyhow::Result<Sandbox> {
        let mut builder = super::known(global, args.verb.database(), printer)?.as_owner();
        if !is_changed {
            builder = builder.read_only();
        }
        Ok(builder.open()?)
    };
    match &args.verb {
        PolicyVerb::Show { .. } => {
            let policy = open(false)?.policy()?;
            if printer.is_json() {
                printer.json(&json!({ "policy": policy }));
            } else if let Some(policy) = policy {
                policy.to_string().lines().for_each(|line| printer.line(line));
            } else {
                // Not a result: the results are a policy file.
                printer.note("no policy");
            }
        }
        PolicyVerb::Set { file: GivenPolicy(policy), .. } => {
            open(true)?.set_policy(Some(policy.clone()))?;
            done(printer, "set", policy.rules.len());
        }
        PolicyVerb::Clear { .. } => {
            open(true)?.set_policy(None)?;
            done(printer, "cleared", 0);
        }
    }
    Ok(Code::Success)
}

fn done(printer: &Printer, what: &str, rules: usize) {
    if printer.is_json() {
        printer.json(&json!({ "policy": what, "rules": rules }));
    }
}
