//! The verbs, one file each.

pub(crate) mod bash;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod presets;
pub(crate) mod python;
mod run;

use std::path::{Path, PathBuf};

use runtime::{Builder, Host, Sandbox};

use crate::args::Global;

/// The sandbox's file when none is named.
const DEFAULT_DATABASE: &str = "sandlite.db";

/// The database to use, if any: the one named, else the default one if it is there.
fn database(global: &Global) -> Option<PathBuf> {
    global.db.clone().or_else(|| Path::new(DEFAULT_DATABASE).exists().then(|| DEFAULT_DATABASE.into()))
}

/// A sandbox as the options say.
fn builder(global: &Global) -> anyhow::Result<Builder> {
    let host = Host::builder().progress(|what| eprintln!("{what} …")).build()?;
    let mut builder = Sandbox::builder().host(&host).preset(global.preset);
    if let Some(path) = database(global) {
        builder = builder.database(path);
    }
    Ok(builder)
}

/// The sandbox of a verb that makes no sense without a file.
fn existing(global: &Global) -> anyhow::Result<Sandbox> {
    match database(global) {
        Some(path) if path.exists() => Ok(builder(global)?.open()?),
        Some(path) => anyhow::bail!("`{}` does not exist", path.display()),
        None => anyhow::bail!("no sandbox here: name one with `--db FILE`"),
    }
}
