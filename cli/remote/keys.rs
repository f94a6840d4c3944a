//! `keys` on a server: those of the tenant of the key that is used, which must be an admin's.

use serde_json::json;

use super::http::escaped;
use super::{Remote, given, text};
use crate::args::KeysVerb;
use crate::exit::Code;
use crate::printer::Hinted;

pub(super) fn run(remote: &Remote<'_>, verb: &KeysVerb) -> anyhow::Result<Code> {
    match verb {
        KeysVerb::Create(create) => {
            if create.from_stdin || create.service || create.tenant != "default" {
                let hint = "on the server's machine: `sandlite keys create --data DIR`";
                return Err(Hinted::error("`--tenant`, `--service` and `--from-stdin` do not work on a server", hint));
            }
            let expires = create.expires.map(skills::format_duration);
            let body = json!({ "role": create.role, "name": create.name, "view": create.view.as_ref().map(ToString::to_string), "expires": expires });
            let made = remote.http.json("POST", "/v1/keys", Some(&given(&body)))?;
            remote.lines(&made, &json!([made]), |row| text(row, "key").to_owned())
        }
        KeysVerb::List { .. } => {
            let found = remote.http.json("GET", "/v1/keys", None)?;
            remote.lines(&found, &found, |row| {
                let state = ["revoked_at", "expires_at", "last_used_at"].iter().map(|name| (name, text(row, name)));
                let state =
                    state.filter(|(_, at)| !at.is_empty()).map(|(name, at)| format!("{} {at}", name.trim_end_matches("_at")));
                let state = state.collect::<Vec<_>>().join(", ").replace('_', " ");
                let (id, prefix) = (text(row, "id"), text(row, "prefix"));
                format!("{id}  {prefix}…  {:<10} {}  {state}", text(row, "role"), text(row, "name"))
            })
        }
        KeysVerb::Revoke { id, .. } => {
            remote.http.send("DELETE", &format!("/v1/keys/{}", escaped(id).replace('/', "%2F")), &[], b"")?.bytes()?;
            remote.lines(&json!({ "revoked": id }), &json!([]), |_| String::new())
        }
    }
}
