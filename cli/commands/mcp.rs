//! `sandlite mcp`: serves the sandbox as tools for an agent.

use std::path::PathBuf;

use runtime::{Host, Sandbox};
use server::{Key, Listen, Service, Settings, Times, serve_http, serve_stdio};

use super::run::with_programs;
use super::skill;
use crate::args::{GivenPolicy, Global, Mcp};
use crate::exit::Code;
use crate::printer::Printer;

pub(crate) fn run(global: &Global, args: &Mcp, printer: &Printer) -> anyhow::Result<Code> {
    // Standard output carries the protocol, so everything else goes to standard error.
    let teller = printer.clone();
    let host =
        crate::engine::with_shipped(Host::builder()).progress(move |what| teller.note(format_args!("{what} …"))).build()?;
    let database = super::database(global);
    let mut builder = global.preset.give(Sandbox::builder().host(&host)).wait(global.wait.0).python(args.python.into());
    if let Some(path) = &database {
        builder = builder.database(path);
    }
    builder = with_programs(builder, &args.program)?;
    let skills = match &args.skills {
        None => None,
        Some(named) => {
            let named = Some(named.as_path()).filter(|named| !named.as_os_str().is_empty());
            Some(skill::open_with(global, named, host.clone())?)
        }
    };
    if let Some(skills) = &skills {
        builder = builder.mount(skills.mount("/skills")?);
    }
    if let Some(GivenPolicy(policy)) = &global.policy {
        builder = builder.policy(policy.clone());
    }
    let beside = database.map(|path| path.with_extension("snapshots"));
    let settings = Settings {
        snapshots: args.snapshots.clone().or(beside),
        skills,
        skill_tools: args.skill_tools,
        tools: (!args.tools.is_empty()).then(|| args.tools.clone()),
        ..Settings::new(host, global.preset.limits())
    };
    let (opened, servers) =
        super::servers::attach_file(builder.open()?, args.mcp_servers.as_deref(), &args.mcp_confirm, printer)?;
    let service = Service::new(super::viewed(global, opened)?, settings)?;
    match args.http {
        None => serve_stdio(service)?,
        Some(address) => {
            let key = key(args.key_file.as_ref(), printer)?;
            let listen = Listen {
                address,
                key,
                hosts: args.allow_host.clone(),
                origins: args.allow_origin.clone(),
                times: Times::default(),
            };
            serve_http(service, listen, |address| printer.note(format_args!("listening on http://{address}/mcp")))?;
        }
    }
    servers.close();
    Ok(Code::Success)
}

fn key(file: Option<&PathBuf>, printer: &Printer) -> anyhow::Result<Key> {
    if let Some(path) = file {
        let new = !path.exists();
        let key = Key::from_file(path)?;
        if new {
            printer.note(format_args!("wrote a new key to `{}`", path.display()));
        }
        return Ok(key);
    }
    let (key, text) = Key::random()?;
    printer.note(format_args!("key, not shown again: {text}"));
    Ok(key)
}
