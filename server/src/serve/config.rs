//! The settings of a server: name, variables, default and meaning of each.
//!
//! A flag wins over `SANDLITE_…`, which wins over Skillbox's `SKILLBOX_…` and OpenTelemetry's `OTEL_…`, which win over the default.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use runtime::{Limits, Preset};
use skills::Bounds;

use super::admission::Room;
use super::traces::Collector;
use crate::Error;
use crate::listener::Tls;

/// How long a tenant keeps its share of the cores after its last run.
const RECENT: Duration = Duration::from_secs(1);

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The directory with the catalog, keys, skills and sandboxes.
    pub data: PathBuf,
    /// The address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Host names under which the server is reached, besides this machine's own.
    pub hosts: Vec<String>,
    /// Web pages of other origins that may use the server.
    pub origins: Vec<String>,
    /// The file with the server's certificate chain, in PEM; without one there is no TLS.
    pub tls_cert: Option<PathBuf>,
    /// The file with the certificate's private key, in PEM.
    pub tls_key: Option<PathBuf>,
    /// How clients reach the server, such as `https://sandlite.example`; the `Host` of each request by default.
    pub public_url: Option<String>,
    /// The preset of runs.
    pub limits: Limits,
    /// Runs at a time.
    pub concurrent: usize,
    /// Computing runs at a time from which on each tenant has only one.
    pub sharing: usize,
    /// Runs of one tenant at a time, including those that sleep.
    pub concurrent_of_tenant: usize,
    /// Requests of one tenant that may wait for their turn.
    pub queue_of_tenant: usize,
    /// Requests of one tenant in a second, on average.
    pub requests_per_second: u32,
    /// Sandboxes of one tenant.
    pub sandboxes_of_tenant: u64,
    /// Keys of one tenant, with those that were revoked.
    pub keys_of_tenant: u64,
    /// Bytes of a tenant's sandboxes, files and artifacts.
    pub bytes_of_tenant: u64,
    /// Fuel of a tenant in an hour.
    pub fuel_per_hour: u64,
    /// Largest skill, packed.
    pub skill_bytes: usize,
    /// Largest body of other requests.
    pub body_bytes: usize,
    /// Sandboxes that are held open.
    pub open_sandboxes: usize,
    /// Sandboxes of sessions that are held open.
    pub open_sessions: usize,
    /// Defaults and maximums of skills.
    pub bounds: Bounds,
    /// Whether skills are scanned when they are pushed.
    pub scans: bool,
    /// How long a session of `/v1/sandbox` is kept without use.
    pub session_idle: Duration,
    /// How long the address of an artifact works.
    pub artifact_time: Duration,
    /// How long executions and their artifacts are kept.
    pub execution_age: Duration,
    /// Executions of one tenant that are kept.
    pub executions_of_tenant: u64,
    /// Bytes of one tenant's artifacts that are kept.
    pub artifact_bytes_of_tenant: u64,
    /// How long rows of the audit log are kept.
    pub audit_age: Duration,
    /// Rows of one tenant in the audit log.
    pub audit_rows_of_tenant: u64,
    /// The interval at which expired results are removed.
    pub sweep: Duration,
    /// How long runs have to end when the server is stopped.
    pub grace: Duration,
    /// Whether a line is written for each request, and how.
    pub log: Log,
    /// The lowest status of requests that are logged.
    pub log_from: u16,
    /// The collector that traces are sent to, if any.
    pub otlp: Option<Collector>,
    /// A key for the tenant `default` with the role admin, kept at the start if the catalog does not have it.
    pub first_key: Option<String>,
    /// The token that requests below `/v1/admin` must send as `X-Admin-Token`, if set.
    pub admin_token: Option<String>,
    /// The bearer token that requests to `/metrics` must send, if set.
    pub metrics_token: Option<String>,
}

/// How requests are logged on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Not at all.
    Off,
    /// One line of text each.
    Text,
    /// One JSON object each.
    Json,
}

/// A setting: its flag, another program's name for it if it has one, its default, and its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name: the flag is `--NAME`, the variable `SANDLITE_NAME`.
    pub name: &'static str,
    /// The variable of Skillbox or OpenTelemetry with the same meaning.
    pub foreign: Option<&'static str>,
    /// The default.
    pub default: &'static str,
    /// The meaning, for `serve --check`.
    pub help: &'static str,
    /// Whether its value is never shown.
    pub is_secret: bool,
    set: fn(&mut Config, &str) -> Result<(), String>,
}

macro_rules! setting {
    ($name:literal, $foreign:expr, $default:literal, $help:literal, $set:expr) => {
        Setting { name: $name, foreign: $foreign, default: $default, help: $help, is_secret: false, set: $set }
    };
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a number".to_owned())
}

fn time(text: &str) -> Result<Duration, String> {
    skills::parse_duration(text).ok_or_else(|| "expected a time such as 30s or 5m".to_owned())
}

fn bytes<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    // Skillbox writes `256Mi`.
    let whole = text.strip_suffix('i').map(|text| format!("{text}iB"));
    let size: runtime::ByteSize = whole.as_deref().unwrap_or(text).parse().map_err(|error: presets_amount| error.to_string())?;
    T::try_from(size.0).map_err(|_| "too large".to_owned())
}

#[expect(non_camel_case_types, reason = "the error type of sizes has no public name")]
type presets_amount = <runtime::ByteSize as std::str::FromStr>::Err;

// Two at least: a run that waits must not hold up the tenant's next one.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}

fn words(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Every setting but `--data`.
pub static SETTINGS: &[Setting] = &[
    setting!("listen", None, "127.0.0.1:8080", "Address to listen on", |config, text| {
        config.listen = text.parse().map_err(|_| "expected ADDRESS:PORT".to_owned())?;
        Ok(())
    }),
    setting!("port", Some("SKILLBOX_API_PORT"), "", "Port to listen on, instead of that of `listen`", |config, text| {
        config.listen.set_port(number(text)?);
        Ok(())
    }),
    setting!(
        "allow-host",
        None,
        "",
        "Host names under which the server is reached, besides this machine's own",
        |config, text| {
            config.hosts = words(text);
            Ok(())
        }
    ),
    setting!("allow-origin", None, "", "Origins of web pages that may use the server", |config, text| {
        config.origins = words(text);
        Ok(())
    }),
    setting!("tls-cert", None, "", "File with the certificate chain in PEM: serve HTTPS instead of HTTP", |config, text| {
        config.tls_cert = Some(text.into());
        Ok(())
    }),
    setting!("tls-key", None, "", "File with the certificate's private key in PEM", |config, text| {
        config.tls_key = Some(text.into());
        Ok(())
    }),
    setting!("public-url", None, "", "Address of the server in links to artifacts", |config, text| {
        config.public_url = Some(text.trim_end_matches('/').to_owned());
        Ok(())
    }),
    setting!("preset", None, "normal", "What runs may use: strict, normal or permissive", |config, text| {
        let preset: Preset = text.parse().map_err(|_| "expected strict, normal or permissive".to_owned())?;
        config.limits = preset.limits();
        Ok(())
    }),
    setting!("concurrent", Some("SKILLBOX_MAX_CONCURRENT_EXECS"), "16", "Runs at a time", |config, text| {
        config.concurrent = number(text)?;
        Ok(())
    }),
    setting!("concurrent-of-tenant", None, "8", "Runs of one tenant at a time, including those that sleep", |config, text| {
        config.concurrent_of_tenant = number(text)?;
        Ok(())
    }),
    setting!(
        "sharing",
        None,
        "cores",
        "Computing runs at a time besides one of each tenant: a number, or `cores`",
        |config, text| {
            config.sharing = if text == "cores" { cores() } else { number(text)? };
            Ok(())
        }
    ),
    setting!("queue-of-tenant", None, "256", "Requests of one tenant that may wait", |config, text| {
        config.queue_of_tenant = number(text)?;
        Ok(())
    }),
    setting!("requests-per-second", None, "1000", "Requests of one tenant in a second", |config, text| {
        config.requests_per_second = number(text)?;
        Ok(())
    }),
    setting!("sandboxes-of-tenant", None, "10000", "Sandboxes of one tenant", |config, text| {
        config.sandboxes_of_tenant = number(text)?;
        Ok(())
    }),
    setting!("keys-of-tenant", None, "10000", "Keys of one tenant, with those that were revoked", |config, text| {
        config.keys_of_tenant = number(text)?;
        Ok(())
    }),
    setting!("bytes-of-tenant", None, "100GB", "Bytes of one tenant's sandboxes, files and artifacts", |config, text| {
        config.bytes_of_tenant = bytes(text)?;
        Ok(())
    }),
    setting!("fuel-per-hour", None, "100000000000000", "Fuel of one tenant in an hour", |config, text| {
        config.fuel_per_hour = number(text)?;
        Ok(())
    }),
    setting!("skill-bytes", Some("SKILLBOX_MAX_SKILL_SIZE"), "50MiB", "Largest skill, packed", |config, text| {
        config.skill_bytes = bytes(text)?;
        Ok(())
    }),
    setting!("body-bytes", None, "64MiB", "Largest body of other requests", |config, text| {
        config.body_bytes = bytes(text)?;
        Ok(())
    }),
    setting!("open-sandboxes", None, "1000", "Sandboxes that are held open", |config, text| {
        config.open_sandboxes = number(text)?;
        Ok(())
    }),
    setting!(
        "open-sessions",
        Some("SKILLBOX_MAX_SESSION_SANDBOXES"),
        "1000",
        "Sandboxes of sessions that are held open",
        |config, text| {
            config.open_sessions = number(text)?;
            Ok(())
        }
    ),
    setting!("default-timeout", Some("SKILLBOX_DEFAULT_TIMEOUT"), "120s", "Time of a skill that names none", |config, text| {
        config.bounds.default_timeout = time(text)?;
        Ok(())
    }),
    setting!("max-timeout", Some("SKILLBOX_MAX_TIMEOUT"), "10m", "Longest time of a skill", |config, text| {
        config.bounds.max_timeout = time(text)?;
        Ok(())
    }),
    setting!("default-memory", Some("SKILLBOX_DEFAULT_MEMORY"), "256MiB", "Memory of a skill that names none", |config, text| {
        config.bounds.default_memory = bytes(text)?;
        Ok(())
    }),
    setting!("max-memory", Some("SKILLBOX_MAX_MEMORY"), "1GiB", "Largest memory of a skill", |config, text| {
        config.bounds.max_memory = bytes(text)?;
        Ok(())
    }),
    setting!("log-bytes", Some("SKILLBOX_MAX_OUTPUT_SIZE"), "1MiB", "Largest logs of a skill", |config, text| {
        config.bounds.log_bytes = bytes(text)?;
        Ok(())
    }),
    setting!(
        "scanner",
        Some("SKILLBOX_SCANNER_ENABLED"),
        "true",
        "Whether skills are scanned when they are pushed: true or false",
        |config, text| {
            config.scans = match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" => true,
                "false" | "0" | "no" => false,
                _ => return Err("expected true or false".to_owned()),
            };
            Ok(())
        }
    ),
    setting!("session-idle", Some("SKILLBOX_SANDBOX_SESSION_TTL"), "30m", "Idle time of a session", |config, text| {
        config.session_idle = time(text)?;
        Ok(())
    }),
    setting!("artifact-time", None, "1h", "How long the address of an artifact works", |config, text| {
        config.artifact_time = time(text)?;
        Ok(())
    }),
    setting!("execution-age", None, "720h", "How long executions and their artifacts are kept", |config, text| {
        config.execution_age = time(text)?;
        Ok(())
    }),
    setting!("executions-of-tenant", None, "10000", "Executions of one tenant that are kept", |config, text| {
        config.executions_of_tenant = number(text)?;
        Ok(())
    }),
    setting!("artifact-bytes-of-tenant", None, "10GB", "Bytes of one tenant's artifacts that are kept", |config, text| {
        config.artifact_bytes_of_tenant = bytes(text)?;
        Ok(())
    }),
    setting!("audit-age", None, "8760h", "How long rows of the audit log are kept", |config, text| {
        config.audit_age = time(text)?;
        Ok(())
    }),
    setting!("audit-rows-of-tenant", None, "1000000", "Rows of one tenant in the audit log", |config, text| {
        config.audit_rows_of_tenant = number(text)?;
        Ok(())
    }),
    setting!("sweep", None, "30s", "How often old executions, files and sessions are removed", |config, text| {
        config.sweep = time(text)?.max(Duration::from_secs(1));
        Ok(())
    }),
    setting!("grace", None, "10s", "How long runs have to end when the server stops", |config, text| {
        config.grace = time(text)?;
        Ok(())
    }),
    setting!(
        "otlp",
        Some("OTEL_EXPORTER_OTLP_ENDPOINT"),
        "",
        "Collector of OpenTelemetry traces, such as http://127.0.0.1:4318",
        |config, text| {
            config.otlp = Some(text.parse()?);
            Ok(())
        }
    ),
    setting!("log", None, "text", "Request log on standard error: text, json or off", |config, text| {
        config.log = match text {
            "off" => Log::Off,
            "text" => Log::Text,
            "json" => Log::Json,
            _ => return Err("expected text, json or off".to_owned()),
        };
        Ok(())
    }),
    setting!(
        "log-level",
        Some("SKILLBOX_LOG_LEVEL"),
        "info",
        "Requests that are logged: all with `info` and `debug`, those refused with `warn`, faults with `error`",
        |config, text| {
            config.log_from = match text {
                "debug" | "info" => 0,
                "warn" => 400,
                "error" => 500,
                _ => return Err("expected debug, info, warn or error".to_owned()),
            };
            Ok(())
        }
    ),
    Setting {
        name: "first-key",
        foreign: None,
        default: "",
        help: "Key for the tenant `default` with the role admin, kept at the start",
        is_secret: true,
        set: |config, text| {
            config.first_key = Some(text.to_owned());
            Ok(())
        },
    },
    Setting {
        name: "admin-token",
        foreign: Some("SKILLBOX_ADMIN_TOKEN"),
        default: "",
        help: "Token of the routes below /v1/admin",
        is_secret: true,
        set: |config, text| {
            config.admin_token = Some(text.to_owned());
            Ok(())
        },
    },
    Setting {
        name: "metrics-token",
        foreign: None,
        default: "",
        help: "Token of /metrics, whose counts are those of all tenants; open to everybody by default",
        is_secret: true,
        set: |config, text| {
            config.metrics_token = Some(text.to_owned());
            Ok(())
        },
    },
];

impl Setting {
    /// Returns its own variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("SANDLITE_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }
}

impl Config {
    /// Settings with their defaults.
    #[must_use]
    pub fn new(data: PathBuf) -> Self {
        let mut config = Self {
            data,
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            hosts: Vec::new(),
            origins: Vec::new(),
            tls_cert: None,
            tls_key: None,
            public_url: None,
            limits: Preset::Normal.limits(),
            concurrent: 0,
            sharing: 0,
            concurrent_of_tenant: 0,
            queue_of_tenant: 0,
            requests_per_second: 0,
            sandboxes_of_tenant: 0,
            keys_of_tenant: 0,
            bytes_of_tenant: 0,
            fuel_per_hour: 0,
            skill_bytes: 0,
            body_bytes: 0,
            open_sandboxes: 0,
            open_sessions: 0,
            bounds: Bounds::default(),
            scans: true,
            session_idle: Duration::ZERO,
            artifact_time: Duration::ZERO,
            execution_age: Duration::ZERO,
            executions_of_tenant: 0,
            artifact_bytes_of_tenant: 0,
            audit_age: Duration::ZERO,
            audit_rows_of_tenant: 0,
            sweep: Duration::ZERO,
            grace: Duration::ZERO,
            log: Log::Text,
            log_from: 0,
            otlp: None,
            first_key: None,
            admin_token: None,
            metrics_token: None,
        };
        for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
            let is_set = (setting.set)(&mut config, setting.default);
            debug_assert!(is_set.is_ok(), "the default of `{}` is invalid", setting.name);
        }
        config
    }

    /// Applies flags and variables. Returns each setting with its effective value and origin, for `serve --check`.
    ///
    /// # Errors
    ///
    /// Returns a sentence that names the setting if a value is invalid.
    pub fn apply(
        &mut self,
        flag: impl Fn(&Setting) -> Option<String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(&'static Setting, String, &'static str)>, String> {
        let mut effective = Vec::new();
        // A variable that is set to nothing counts as not set.
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        for setting in SETTINGS {
            let given = flag(setting)
                .map(|value| (value, "flag"))
                .or_else(|| variable(&setting.variable()).map(|value| (value, "environment")))
                .or_else(|| {
                    let name = setting.foreign?;
                    let origin = if name.starts_with("OTEL_") { "OpenTelemetry's environment" } else { "Skillbox's environment" };
                    variable(name).map(|value| (value, origin))
                })
                .filter(|(value, _)| !value.is_empty());
            let (value, origin) = given.unwrap_or_else(|| (setting.default.to_owned(), "default"));
            if !value.is_empty() {
                (setting.set)(self, &value).map_err(|reason| {
                    let shown = if setting.is_secret { "…" } else { value.as_str() };
                    format!("invalid value `{shown}` of `{}` ({origin}): {reason}", setting.name)
                })?;
            }
            effective.push((setting, value, origin));
        }
        Ok(effective)
    }

    /// Checks the conditions under which a server refuses to start.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is open to other machines and no host name is given, if a certificate cannot be used, or if a
    /// default is above its maximum.
    pub fn check(&self) -> Result<(), Error> {
        self.tls()?;
        if !self.listen.ip().is_loopback() && self.hosts.is_empty() {
            return Err(Error::NotLoopback(self.listen));
        }
        let Bounds { default_timeout, max_timeout, default_memory, max_memory, .. } = self.bounds;
        for (is_above, names) in [
            (default_timeout > max_timeout, ("default-timeout", "max-timeout")),
            (default_memory > max_memory, ("default-memory", "max-memory")),
        ] {
            if is_above {
                return Err(Error::Setting(format!("`{}` is larger than `{}`", names.0, names.1)));
            }
        }
        Ok(())
    }

    /// Returns the certificate and its key, if there is one.
    pub(super) fn tls(&self) -> Result<Option<Tls>, Error> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some(Tls::from_files(certificate, key)?)),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Error::HalfTls("`tls-cert` without `tls-key`")),
            (None, Some(_)) => Err(Error::HalfTls("`tls-key` without `tls-cert`")),
        }
    }

    /// Returns how the server is reached: `https` with a certificate, else `http`.
    #[must_use]
    pub fn scheme(&self) -> http::uri::Scheme {
        if self.tls_cert.is_some() { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP }
    }

    pub(super) fn room(&self) -> Room {
        Room {
            running: self.concurrent.max(1),
            sharing: self.sharing.max(1),
            running_of_tenant: self.concurrent_of_tenant.max(1),
            waiting_of_tenant: self.queue_of_tenant.max(1),
            recent: RECENT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_wins_over_the_environment_and_ours_over_that_of_skillbox() {
        let mut config = Config::new("/data".into());
        assert_eq!((config.concurrent, config.skill_bytes, config.session_idle.as_secs()), (16, 50 << 20, 1800));
        let variable = |name: &str| match name {
            "SKILLBOX_MAX_CONCURRENT_EXECS" => Some("3".to_owned()),
            "SANDLITE_LISTEN" => Some("127.0.0.1:1".to_owned()),
            "SKILLBOX_API_PORT" => Some("9000".to_owned()),
            _ => None,
        };
        config.apply(|setting| (setting.name == "port").then(|| "7".to_owned()), variable).unwrap();
        assert_eq!((config.concurrent, config.listen.to_string().as_str()), (3, "127.0.0.1:7"));
        let traced =
            config.apply(|_| None, |name| name.starts_with("OTEL_").then(|| "http://127.0.0.1:4318".to_owned())).unwrap();
        let origin = traced.iter().find(|(setting, ..)| setting.name == "otlp").map(|(_, _, origin)| *origin);
        assert_eq!((origin, config.otlp.is_some()), (Some("OpenTelemetry's environment"), true));
        let skillbox = |name: &str| match name {
            "SKILLBOX_DEFAULT_TIMEOUT" => Some("1m30s".to_owned()),
            "SKILLBOX_MAX_TIMEOUT" => Some("2m".to_owned()),
            "SKILLBOX_DEFAULT_MEMORY" => Some("128Mi".to_owned()),
            "SKILLBOX_MAX_MEMORY" => Some("1Gi".to_owned()),
            "SKILLBOX_MAX_OUTPUT_SIZE" => Some("2097152".to_owned()),
            "SKILLBOX_MAX_SKILL_SIZE" => Some("1048576".to_owned()),
            "SKILLBOX_MAX_SESSION_SANDBOXES" => Some("5".to_owned()),
            "SKILLBOX_SCANNER_ENABLED" => Some("No".to_owned()),
            "SKILLBOX_LOG_LEVEL" => Some("warn".to_owned()),
            _ => None,
        };
        config.apply(|_| None, skillbox).unwrap();
        let expected = Bounds {
            default_timeout: Duration::from_secs(90),
            max_timeout: Duration::from_secs(120),
            default_memory: 128 << 20,
            max_memory: 1 << 30,
            log_bytes: 2 << 20,
        };
        assert_eq!(config.bounds, expected);
        assert_eq!((config.skill_bytes, config.open_sessions, config.scans, config.log_from), (1 << 20, 5, false, 400));
        let empty = |name: &str| match name {
            "SANDLITE_MAX_TIMEOUT" => Some(String::new()),
            "SKILLBOX_MAX_TIMEOUT" => Some("5m".to_owned()),
            _ => None,
        };
        config.apply(|_| None, empty).unwrap();
        assert_eq!(config.bounds.max_timeout, Duration::from_secs(300));
        let error = config.apply(|_| None, |name| (name == "SANDLITE_GRACE").then(|| "soon".to_owned())).unwrap_err();
        assert!(error.starts_with("invalid value `soon` of `grace` (environment)"), "{error}");
    }

    #[test]
    fn the_check_rejects_what_the_server_rejects() {
        let with = |change: fn(&mut Config)| {
            let mut config = Config::new("/data".into());
            change(&mut config);
            config.check().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(with(|_| ()), "");
        assert!(with(|config| config.listen = SocketAddr::from(([0, 0, 0, 0], 80))).contains("`--allow-host`"));
        assert!(with(|config| config.tls_cert = Some("/x".into())).contains("`tls-cert` without `tls-key`"));
        assert!(
            with(|config| (config.tls_cert, config.tls_key) = (Some("/none".into()), Some("/none".into()))).contains("`/none`")
        );
        assert_eq!(
            with(|config| config.bounds.max_timeout = Duration::from_secs(1)),
            "invalid settings: `default-timeout` is larger than `max-timeout`"
        );
        assert!(with(|config| config.bounds.max_memory = 1).contains("`default-memory`"));
    }
}
