//! `tenants` on a server: with its admin token, besides the key of an admin.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::Remote;
use super::http::escaped;
use crate::args::TenantsVerb;
use crate::exit::Code;
use crate::printer::Hinted;

/// The variable with the token: the server reads the same one.
const TOKEN: &str = "SANDLITE_ADMIN_TOKEN";

pub(super) fn run(remote: &Remote<'_>, verb: &TenantsVerb) -> anyhow::Result<Code> {
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| Hinted::error("no admin token given", format!("pass that of the server in {TOKEN}")))?;
    anyhow::ensure!(token.bytes().all(|byte| byte.is_ascii_graphic()), "invalid admin token: expected printable characters");
    let headers = [("X-Admin-Token", token.as_str()), ("Content-Type", "application/json")];
    let (method, place, body) = match verb {
        TenantsVerb::List { .. } => ("GET", "/v1/admin/tenants".to_owned(), String::new()),
        TenantsVerb::Set(set) => {
            let limits: Map<String, Value> = set.limits.iter().map(|(name, limit)| (name.clone(), json!(limit))).collect();
            ("PATCH", format!("/v1/admin/tenants/{}", escaped(&set.tenant)), Value::Object(limits).to_string())
        }
    };
    let bytes = remote.http.send(method, &place, &headers, body.as_bytes())?.bytes()?;
    let found: Value = serde_json::from_slice(&bytes).context("invalid response of the server")?;
    let rows = if found.is_array() { found.clone() } else { json!([found]) };
    remote.lines(&found, &rows, crate::commands::tenant_line)
}
