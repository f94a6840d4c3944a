//! `sandlite serve`, `sandlite keys` and `sandlite tenants`: the server, its API keys and its tenants.

use std::io::Read as _;
use std::path::PathBuf;

use runtime::Host;
use serde_json::{Value, json};
use server::{Config, Keys, NewKey, Reports, Tenants};

use crate::args::{self, Chosen, CreateKey, Global, KeysVerb, Serve, TenantsVerb};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

/// Files that a server may have open, if the system allows as many.
const MOST_FILES: u64 = 1 << 20;
/// The descriptions of the data directory, and of unknown variables, in `serve --check`.
const DATA: &str = "Directory with the catalog, keys, skills and sandboxes";
const NO_EFFECT: &str = "No effect: Sandlite needs no such setting";
/// Shortest key that `keys create --from-stdin` takes without a note.
const SHORTEST: usize = 32;

pub(crate) fn run(global: &Global, args: &Serve, printer: &Printer) -> anyhow::Result<Code> {
    let mut config = Config::new(data(args.data.as_ref())?);
    let flag = |setting: &server::Setting| {
        let set = args.set.iter().rev().find(|(name, _)| name == setting.name).map(|(_, value)| value.clone());
        set.or_else(|| match setting.name {
            "listen" => args.listen.clone(),
            "allow-host" if !args.allow_host.is_empty() => Some(args.allow_host.join(",")),
            "tls-cert" => args.tls_cert.clone(),
            "otlp" => args.otlp.clone(),
            "tls-key" => args.tls_key.clone(),
            "preset" => match &global.preset {
                Chosen::Preset(preset) if *preset != runtime::Preset::default() => Some(preset.to_string()),
                _ => None,
            },
            _ => None,
        })
    };
    let effective = config.apply(flag, |name| std::env::var(name).ok()).map_err(anyhow::Error::msg)?;
    if let Chosen::File { .. } = &global.preset {
        config.limits = global.preset.limits();
    }
    if args.check {
        show(&config.data, &effective, printer);
        config.check()?;
        return Ok(Code::Success);
    }
    let teller = printer.clone();
    let host =
        crate::engine::with_shipped(Host::builder()).progress(move |what| teller.note(format_args!("{what} …"))).build()?;
    let (ready, lines, scheme) = (printer.clone(), printer.clone(), config.scheme());
    let reports = Reports {
        ready: Box::new(move |address, key| {
            if let Some(key) = key {
                ready.note(format_args!("first key (tenant `default`, role admin), not shown again: {key}"));
            }
            ready.note(format_args!("listening on {scheme}://{address}"));
        }),
        line: std::sync::Arc::new(move |line| lines.note(line)),
        freed: std::sync::Arc::new(crate::memory::give_back),
    };
    raise_open_files();
    server::serve(config, host, reports)?;
    Ok(Code::Success)
}

// Each open sandbox has several files, and many systems allow 1024 for a process that does not ask for more.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let current = Some(limit.maximum.map_or(MOST_FILES, |most| most.min(MOST_FILES)));
    // Without success fewer sandboxes can be open at a time.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum });
}

// The directory that the words or the environment name.
fn data(named: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let variable = || std::env::var_os("SANDLITE_DATA").filter(|path| !path.is_empty()).map(PathBuf::from);
    named.cloned().or_else(variable).ok_or_else(|| Hinted::error("no data directory given", "name one with `--data DIR`"))
}

fn show(data: &std::path::Path, effective: &[(&server::Setting, String, &str)], printer: &Printer) {
    let shown = |setting: &server::Setting, value: &str| {
        if setting.is_secret && !value.is_empty() { "(set)".to_owned() } else { value.to_owned() }
    };
    let ignored = without_effect();
    if printer.is_json() {
        let mut rows = vec![json!({ "name": "data", "value": data, "variable": "SANDLITE_DATA", "help": DATA })];
        rows.extend(effective.iter().map(|(setting, value, origin)| {
            json!({ "name": setting.name, "value": shown(setting, value), "from": origin, "variable": setting.variable(), "help": setting.help })
        }));
        rows.extend(ignored.iter().map(|name| json!({ "variable": name, "help": NO_EFFECT })));
        return printer.json(&json!(rows));
    }
    let mut rows = vec![("SANDLITE_DATA".to_owned(), data.display().to_string(), DATA.to_owned())];
    for (setting, value, origin) in effective {
        let origin = if *origin == "default" { String::new() } else { format!(" (from {origin})") };
        rows.push((setting.variable(), shown(setting, value), format!("{}{origin}", setting.help)));
    }
    rows.extend(ignored.into_iter().map(|name| (name, String::new(), NO_EFFECT.to_owned())));
    let names = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
    for (name, value, help) in rows {
        printer.line(&printer.foreign(&format!("{name:<names$}  {value:<16}  {help}")));
    }
}

// Variables of Skillbox that are set and mean nothing here.
fn without_effect() -> Vec<String> {
    let is_known = |name: &str| server::SETTINGS.iter().any(|setting| setting.foreign == Some(name));
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = set.filter(|name| name.starts_with("SKILLBOX_") && !is_known(name)).collect();
    names.sort();
    names
}

pub(crate) fn keys(args: &args::Keys, printer: &Printer) -> anyhow::Result<Code> {
    match &args.verb {
        KeysVerb::Create(create) => self::create(create, printer),
        KeysVerb::List { data, tenant } => {
            let rows = Keys::open(&self::data(data.as_ref())?)?.list(tenant.as_deref())?;
            if printer.is_json() {
                printer.json(&serde_json::to_value(rows)?);
                return Ok(Code::Success);
            }
            for row in rows {
                let used = row.last_used_at.as_ref().map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
                let state = match (&row.revoked_at, &row.expires_at) {
                    (Some(at), _) => format!("revoked {at}"),
                    (None, Some(at)) => format!("{used}, expires {at}"),
                    (None, None) => used,
                };
                let service = if row.service { ", acts for other tenants" } else { "" };
                let line =
                    format!("{}  {}…  {:<12} {:<10} {}  {state}{service}", row.id, row.prefix, row.tenant, row.role, row.name);
                printer.line(&printer.foreign(line.trim_end()));
            }
            Ok(Code::Success)
        }
        KeysVerb::Revoke { data, id } => {
            if !Keys::open(&self::data(data.as_ref())?)?.revoke(id)? {
                return Err(Hinted::error(format!("unknown key `{id}`"), "`sandlite keys list` shows the ids"));
            }
            if printer.is_json() {
                printer.json(&json!({ "revoked": id }));
            }
            Ok(Code::Success)
        }
    }
}

pub(crate) fn tenants(args: &args::Tenants, printer: &Printer) -> anyhow::Result<Code> {
    let shown = |whole: &Value, rows: Vec<Value>| {
        if printer.is_json() {
            printer.json(whole);
        } else {
            rows.iter().for_each(|row| printer.line(&printer.foreign(&tenant_line(row))));
        }
        Ok(Code::Success)
    };
    match &args.verb {
        TenantsVerb::List { data } => {
            let rows = Tenants::open(&self::data(data.as_ref())?)?.list()?;
            let rows: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
            shown(&json!(rows), rows)
        }
        TenantsVerb::Set(set) => {
            let limits = Tenants::open(&data(set.data.as_ref())?)?.set(&set.tenant, &set.limits)?;
            let row = json!({ "name": set.tenant, "limits": limits });
            shown(&row.clone(), vec![row])
        }
    }
}

/// Formats a tenant with the limits of its own as a line.
pub(crate) fn tenant_line(row: &Value) -> String {
    let limits = row["limits"].as_object().into_iter().flatten();
    let limits: Vec<String> = limits.map(|(name, limit)| format!("{}={limit}", name.replace('_', "-"))).collect();
    let limits = if limits.is_empty() { "default".to_owned() } else { limits.join(" ") };
    format!("{:<16} {limits}", row["name"].as_str().unwrap_or_default())
}

fn create(args: &CreateKey, printer: &Printer) -> anyhow::Result<Code> {
    let given = if args.from_stdin {
        let mut text = String::new();
        std::io::stdin().take(1 << 12).read_to_string(&mut text)?;
        let text = text.trim().to_owned();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            anyhow::bail!("invalid key on standard input: expected one line of printable characters without spaces");
        }
        if text.len() < SHORTEST {
            printer.note("the key is shorter than 32 characters: use it for tests only");
        }
        Some(text)
    } else {
        None
    };
    let new = NewKey {
        tenant: args.tenant.clone(),
        role: args.role,
        view: args.view.as_ref().map(ToString::to_string),
        name: args.name.clone(),
        lifetime: args.expires,
        is_service: args.service,
    };
    let (key, id) = Keys::open(&data(args.data.as_ref())?)?.create(&new, given.as_deref())?;
    if printer.is_json() {
        printer.json(&json!({ "id": id, "key": key, "tenant": args.tenant, "role": args.role }));
    } else {
        printer.line(&key);
    }
    Ok(Code::Success)
}
