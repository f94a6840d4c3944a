//! The words of `sandlite serve`, `sandlite keys` and `sandlite tenants`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use server::Role;

use super::View;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandlite serve --data ./data            serve on 127.0.0.1:8080, print the first key once
  sandlite serve --data ./data --listen 0.0.0.0:80 --allow-host box.example
  sandlite serve --data ./data --check    print every setting with its origin and meaning

Every setting can also be set by an environment variable: SANDLITE_LISTEN, SANDLITE_ALLOW_HOST, … See docs/server.md.")]
pub(crate) struct Serve {
    /// Directory with the catalog, keys, skills and sandboxes, created if missing [default: $SANDLITE_DATA]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Listen on this address [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// Serve this host name too, besides this machine's own
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    pub(crate) allow_host: Vec<String>,
    /// Serve HTTPS with the certificate chain of this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<String>,
    /// Read the certificate's private key from this PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<String>,
    /// Send OpenTelemetry traces to this collector, such as http://127.0.0.1:4318
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// Set any setting that `--check` lists
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Print the effective settings and exit
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandlite keys create --data ./data --tenant acme --role publisher
  sandlite keys list --data ./data
  sandlite keys revoke --data ./data ID")]
pub(crate) struct Keys {
    #[command(subcommand)]
    pub(crate) verb: KeysVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysVerb {
    /// Create a key and print it; it is not shown again
    Create(CreateKey),
    /// List the keys without their secrets
    List {
        /// Data directory of the server [default: $SANDLITE_DATA]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// List only the keys of this tenant
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
    },
    /// Revoke a key at once
    Revoke {
        /// Data directory of the server [default: $SANDLITE_DATA]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Id of the key, from `keys list`
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateKey {
    /// Data directory of the server [default: $SANDLITE_DATA]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Tenant that the key belongs to
    #[arg(long, default_value = "default", value_name = "TENANT", value_parser = tenant)]
    pub(crate) tenant: String,
    /// What the key may do: admin, publisher or consumer
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Role,
    /// See sandboxes as this principal, NAME or NAME:LABEL,LABEL
    // In place of the option of all verbs, which has the same name and type.
    #[arg(long, alias = "key-view", value_name = "VIEW")]
    pub(crate) view: Option<View>,
    /// Expire after this time, such as 24h
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) expires: Option<Duration>,
    /// Note what the key is for
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) name: String,
    /// Read the key from standard input instead of generating one
    #[arg(long)]
    pub(crate) from_stdin: bool,
    /// Let requests with this key act for the tenant named in X-Tenant-ID
    #[arg(long)]
    pub(crate) service: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  sandlite tenants set acme --data ./data bytes=10GB requests-per-second=50
  sandlite tenants set acme --data ./data bytes=default
  sandlite tenants list --data ./data")]
pub(crate) struct Tenants {
    #[command(subcommand)]
    pub(crate) verb: TenantsVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TenantsVerb {
    /// List the tenants with the limits of their own
    List {
        /// Data directory of the server [default: $SANDLITE_DATA]
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Set limits of a tenant, in place of those of the server
    Set(SetTenant),
}

#[derive(Debug, Args)]
pub(crate) struct SetTenant {
    /// Data directory of the server [default: $SANDLITE_DATA]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Name of the tenant
    #[arg(value_name = "TENANT", value_parser = tenant)]
    pub(crate) tenant: String,
    /// Limits by name, such as bytes=10GB or bytes=default
    #[arg(value_name = "LIMIT=VALUE", required = true, value_parser = limit)]
    pub(crate) limits: Vec<(String, Option<u64>)>,
}

fn limit(text: &str) -> Result<(String, Option<u64>), String> {
    let (name, value) = text.split_once('=').ok_or("expected LIMIT=VALUE")?;
    let name = name.replace('-', "_");
    let value = match value {
        "default" => None,
        size if name == "bytes" => Some(size.parse::<runtime::ByteSize>().map_err(|error| error.to_string())?.0),
        number => Some(number.parse().map_err(|_| "expected a number or `default`".to_owned())?),
    };
    server::Quota::default().set(&name, value)?;
    Ok((name, value))
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let is_known = server::SETTINGS.iter().any(|setting| setting.name == name);
    if is_known {
        Ok((name.to_owned(), value.to_owned()))
    } else {
        Err(format!("unknown setting `{name}`: `--check` lists them"))
    }
}

fn lifetime(text: &str) -> Result<Duration, String> {
    skills::parse_duration(text).ok_or_else(|| "expected a time such as 30m or 24h".to_owned())
}

fn tenant(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_name = (1..=64).contains(&text.len()) && text.bytes().all(is_plain);
    if is_name { Ok(text.to_owned()) } else { Err("expected 1 to 64 of the characters A-Z a-z 0-9 . _ -".to_owned()) }
}
