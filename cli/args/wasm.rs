//! The arguments of `wasm`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use runtime::{ByteSize, Mount, WallTime};

use super::run::{Mounts, PythonKind, RunOptions, copied, mounted, variable};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  sandlite wasm hello.wasm you                       run without any files
  sandlite wasm --dir . count.wasm ./data.txt        run on this directory
  sandlite wasm --dir ./src::/src grep.wasm x /src   run with another name for the directory
  sandlite --db agent.db wasm php.wasm /work/a.php   run on the files of a sandbox

The module receives only the variables given with --env.
Exit codes: the module's own; 124: out of time or compute; 137: out of memory; 125: Sandlite itself failed.")]
pub(crate) struct Wasm {
    /// Give the module a directory on this machine: it is copied into memory, and changes are copied back
    #[arg(long, value_name = "HOST[::GUEST]", value_parser = directory)]
    pub(crate) dir: Vec<(PathBuf, String)>,
    /// Set an environment variable for the module
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Start in this directory of the sandbox
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    pub(crate) cwd: Option<String>,
    /// Copy a file from this machine into the sandbox first
    #[arg(long, value_name = "HOST:GUEST", value_parser = copied, conflicts_with = "dir")]
    pub(crate) file: Vec<(PathBuf, String)>,
    /// Mount a directory in the sandbox, read-only or as an overlay that keeps changes in the sandbox
    #[arg(long, value_name = "HOST:GUEST[:ro|overlay]", value_parser = mounted, conflicts_with = "dir")]
    pub(crate) mount: Vec<Mount>,
    /// Read the module's standard input from FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Lower the wall-clock limit, such as `2s` or `500ms`
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<WallTime>,
    /// Lower the compute limit, in wasm fuel
    #[arg(long, value_name = "FUEL")]
    pub(crate) fuel: Option<u64>,
    /// Lower the memory limit, such as `64MB`
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<ByteSize>,
    /// Make the run repeatable: fixed clock, random bytes from this seed
    #[arg(long, value_name = "SEED")]
    pub(crate) deterministic: Option<u64>,
    /// Let the module control the terminal: colors, cursor, title
    #[arg(long)]
    pub(crate) raw: bool,
    /// The module, a file on this machine
    #[arg(value_name = "FILE.wasm")]
    pub(crate) module: PathBuf,
    /// Arguments of the module
    #[arg(value_name = "ARG", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
}

impl Wasm {
    /// Returns the options shared by all verbs that run commands.
    pub(crate) fn options(&self) -> RunOptions {
        RunOptions {
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            session: None,
            file: self.file.clone(),
            mounts: Mounts { mount: self.mount.clone(), base: None },
            skills: None,
            program: Vec::new(),
            allow_host: Vec::new(),
            #[cfg(feature = "mcp")]
            mcp_servers: None,
            #[cfg(feature = "mcp")]
            mcp_confirm: Vec::new(),
            stdin: self.stdin.clone(),
            python: PythonKind::Core,
            timeout: self.timeout,
            fuel: self.fuel,
            memory: self.memory,
            rollback_on_fail: false,
            deterministic: self.deterministic,
            record: false,
            onto: None,
            raw: self.raw,
        }
    }
}

fn directory(text: &str) -> Result<(PathBuf, String), &'static str> {
    let (host, guest) = text.split_once("::").unwrap_or((text, text));
    match (host, guest) {
        ("", _) => Err("missing directory on this machine"),
        (_, "") => Err("missing name after `::`"),
        _ => Ok((host.into(), guest.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_its_own_name_or_another() {
        assert_eq!(directory("."), Ok((".".into(), ".".to_owned())));
        assert_eq!(directory("/tmp/a::/"), Ok(("/tmp/a".into(), "/".to_owned())));
        assert!(directory("::/").is_err() && directory("a::").is_err());
    }
}
