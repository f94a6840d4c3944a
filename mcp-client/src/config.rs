//! Which servers there are: the usual `{"mcpServers": {…}}`, read and checked.
//!
//! Expands nothing: a variable in an argument stays as it is written, so no secret of this machine gets anywhere by accident.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::module::identifier;

/// Servers of one sandbox.
const SERVERS_MAX: usize = 32;
/// Longest name: with a tool's name it is the name of a host tool, which has 64 bytes.
const NAME_MAX: usize = 32;
/// How long a call may take by default. The command's own time counts besides.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);

/// A server as the configuration has it.
#[derive(Clone)]
pub struct Server {
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) way: Way,
    pub(crate) only: Option<Vec<String>>,
    pub(crate) timeout: Duration,
}

/// How a server is reached.
#[derive(Clone)]
pub(crate) enum Way {
    /// A program of this machine, over its standard streams.
    Program { command: String, args: Vec<String>, env: BTreeMap<String, String>, directory: Option<PathBuf> },
    /// An address, over HTTP; `authorities` is a file with the only certificates to trust.
    Address { url: String, headers: BTreeMap<String, String>, authorities: Option<PathBuf> },
}

/// Fields that other clients know besides are left alone.
#[derive(Deserialize)]
struct Fields {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    ca: Option<PathBuf>,
    tools: Option<Vec<String>>,
    timeout: Option<f64>,
    #[serde(default)]
    disabled: bool,
}

impl Server {
    /// Reads servers by name, as an object or in the `mcpServers` of one.
    ///
    /// ```
    /// let servers = sandlite_mcp_client::Server::parse_all(r#"{"mcpServers": {"a-b": {"command": "server"}}}"#)?;
    /// assert_eq!((servers[0].name(), servers[0].module()), ("a-b", "a_b"));
    /// # Ok::<(), sandlite_mcp_client::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if the text is not such an object, or if a name or an address cannot be used.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Error> {
        let invalid = |reason: String| Error::Invalid(reason);
        let mut root: Value = serde_json::from_str(text).map_err(|error| invalid(format!("it is not JSON ({error})")))?;
        let servers = match root.get_mut("mcpServers") {
            Some(servers) => servers.take(),
            None => root,
        };
        let Value::Object(servers) = servers else {
            return Err(invalid("`mcpServers` must be an object of servers by name".to_owned()));
        };
        if servers.len() > SERVERS_MAX {
            return Err(invalid(format!("there are {} servers, and a sandbox may have {SERVERS_MAX}", servers.len())));
        }
        let mut read: Vec<Self> = Vec::new();
        for (name, fields) in servers {
            let Some(server) = Self::parse(&name, fields)? else { continue };
            if let Some(other) = read.iter().find(|other| other.module == server.module) {
                return Err(invalid(format!("`{}` and `{name}` would both be the module `{}`", other.name, server.module)));
            }
            read.push(server);
        }
        Ok(read)
    }

    fn parse(name: &str, fields: Value) -> Result<Option<Self>, Error> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=NAME_MAX).contains(&name.len()) || !name.bytes().all(is_letter) || name.starts_with('-') {
            let shown: String = name.escape_debug().take(NAME_MAX).collect();
            return Err(Error::Invalid(format!(
                "invalid server name `{shown}`: expected 1–{NAME_MAX} letters, digits, `_` or `-`"
            )));
        }
        let invalid = |reason: String| Error::Invalid(format!("server `{name}`: {reason}"));
        let fields: Fields = serde_json::from_value(fields).map_err(|error| invalid(error.to_string()))?;
        if fields.disabled {
            return Ok(None);
        }
        let way = match (fields.command, fields.url) {
            (Some(command), None) if !command.is_empty() && fields.ca.is_none() => {
                Way::Program { command, args: fields.args, env: fields.env, directory: fields.cwd }
            }
            (None, Some(url)) => {
                let is_encrypted = crate::http::check(&url).map_err(invalid)?;
                if fields.ca.is_some() && !is_encrypted {
                    return Err(invalid("`ca` needs a `url` that begins with `https://`".to_owned()));
                }
                Way::Address { url, headers: fields.headers, authorities: fields.ca }
            }
            (Some(_), None) if fields.ca.is_some() => {
                return Err(invalid("`ca` needs a `url` that begins with `https://`".to_owned()));
            }
            _ => return Err(invalid("expected either `command` or `url`".to_owned())),
        };
        let timeout = match fields.timeout {
            None => CALL_TIMEOUT,
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|timeout| !timeout.is_zero())
                .ok_or_else(|| invalid("`timeout` must be a number of seconds above 0".to_owned()))?,
        };
        Ok(Some(Self { name: name.to_owned(), module: identifier(name, "server"), way, only: fields.tools, timeout }))
    }

    /// Returns its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the name of its Python module, below `servers`.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }
}

// The values of variables and headers are secrets.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Server");
        shown.field("name", &self.name);
        match &self.way {
            Way::Program { command, .. } => shown.field("command", command),
            Way::Address { url, .. } => shown.field("url", url),
        };
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        Server::parse_all(text).map(|_| String::new()).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn both_forms_and_both_ways_are_read() {
        let text = r#"{"mcpServers": {
            "files": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "env": {"KEY": "s3cret"}, "timeout": 2.5},
            "web-search": {"url": "http://127.0.0.1:80/mcp", "headers": {"Authorization": "s3cret"}, "tools": ["find"]},
            "off": {"command": "x", "disabled": true}
        }}"#;
        let servers = Server::parse_all(text).unwrap();
        let names: Vec<_> = servers.iter().map(|server| (server.name(), server.module())).collect();
        assert_eq!(names, [("files", "files"), ("web-search", "web_search")]);
        assert_eq!(servers[0].timeout, Duration::from_millis(2500));
        assert_eq!(servers[1].only.as_deref(), Some(["find".to_owned()].as_slice()));
        assert_eq!(Server::parse_all(r#"{"a": {"command": "b"}}"#).unwrap().len(), 1);
        assert!(!format!("{servers:?}").contains("s3cret"));
    }

    #[test]
    fn an_unusable_configuration_is_rejected_with_the_reason() {
        let check = |text: &str, part: &str| assert!(complaint(text).contains(part), "{text}: {}", complaint(text));
        check("[", "not JSON");
        check("[]", "an object of servers");
        check(r#"{"a": {}}"#, "either `command` or `url`");
        check(r#"{"a": {"command": "x", "url": "http://a"}}"#, "either `command` or `url`");
        check(r#"{"a/b": {"command": "x"}}"#, "invalid server name `a/b`");
        check(r#"{"a.b": {"command": "x"}}"#, "invalid server name `a.b`");
        check(r#"{"a-b": {"command": "x"}, "a_b": {"command": "x"}}"#, "would both be the module `a_b`");
        check(r#"{"a": {"url": "ftp://a"}}"#, "must begin with `https://` or `http://`");
        check(r#"{"a": {"url": "http://a", "ca": "ca.pem"}}"#, "`ca` needs a `url` that begins with `https://`");
        check(r#"{"a": {"command": "x", "ca": "ca.pem"}}"#, "`ca` needs a `url` that begins with `https://`");
        check(r#"{"a": {"command": "x", "timeout": 0}}"#, "above 0");
    }
}
