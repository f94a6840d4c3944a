//! Access control: a valid host name, no foreign web page, the right path and the key (T-NET-01, T-NET-06).

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Request, StatusCode, Uri};

use super::{Key, Listen, Refusal};

/// The only path.
const PATH: &str = "/mcp";
/// Maximum size of all headers together, in bytes.
const LONGEST: usize = 32 << 10;
/// This machine's own names.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The conditions that a request must meet.
pub(super) struct Guard {
    key: Key,
    hosts: Hosts,
    origins: Vec<String>,
}

/// The accepted host names.
pub(crate) struct Hosts {
    names: Vec<String>,
    scheme: Scheme,
}

impl Hosts {
    /// This machine's own names, and these, for one scheme.
    pub(crate) fn new(more: &[String], scheme: Scheme) -> Self {
        let own = LOOPBACK.iter().map(|host| (*host).to_owned());
        Self { names: own.chain(more.iter().map(|host| host.to_ascii_lowercase())).collect(), scheme }
    }

    // A page that rebinds its own name to this machine still sends that name. A request that names its host in the first line, as one to a
    // proxy does, means that host: both must be the same, and ours.
    /// Returns whether a request names one of them, and no other.
    pub(crate) fn serves(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(host) = only(headers, &HOST) else { return false };
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let is_ours = uri.scheme().is_none_or(|scheme| *scheme == self.scheme)
            && uri.authority().is_none_or(|named| named.as_str().eq_ignore_ascii_case(host));
        let known =
            |allowed: &String| allowed.eq_ignore_ascii_case(authority.host()) || allowed.eq_ignore_ascii_case(authority.as_str());
        is_ours && self.names.iter().any(known) && !host.contains('@')
    }
}

impl Guard {
    pub(super) fn new(listen: &Listen) -> Self {
        Self { key: listen.key.clone(), hosts: Hosts::new(&listen.hosts, Scheme::HTTP), origins: listen.origins.clone() }
    }

    /// Returns the accepted host names.
    pub(super) fn hosts(&self) -> Vec<String> {
        self.hosts.names.clone()
    }

    /// Checks everything that can be checked before the body is read.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let headers = request.headers();
        let length: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if length > LONGEST {
            return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the headers are too large"));
        }
        self.check_host(request.uri(), headers)?;
        self.check_origin(headers)?;
        self.check_key(headers)?;
        if request.uri().path() == PATH { Ok(()) } else { Err(Refusal::new(StatusCode::NOT_FOUND, "unknown path: use /mcp")) }
    }

    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let is_served = self.hosts.serves(uri, headers);
        if is_served { Ok(()) } else { Err(Refusal::new(StatusCode::FORBIDDEN, "host name not allowed")) }
    }

    // Only browsers send this header, and only allowed origins are accepted.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        match only(headers, &ORIGIN) {
            Some(origin) if self.origins.iter().any(|allowed| allowed == origin) => Ok(()),
            _ => Err(Refusal::new(StatusCode::FORBIDDEN, "web origin not allowed")),
        }
    }

    fn check_key(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let shown = only(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
        match shown {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") && self.key.matches(key.trim()) => Ok(()),
            _ => Err(Refusal::new(StatusCode::UNAUTHORIZED, "missing or invalid key: send `Authorization: Bearer KEY`")),
        }
    }
}

/// Returns the value of a header that occurs exactly once.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::Times;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn status(hosts: &[&str], origins: &[&str], headers: &[(&str, &str)]) -> u16 {
        status_of("/mcp", hosts, origins, headers)
    }

    fn status_of(uri: &str, hosts: &[&str], origins: &[&str], headers: &[(&str, &str)]) -> u16 {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let key = Key::new(KEY).expect("it is long enough");
        let address = ([127, 0, 0, 1], 0).into();
        let guard = Guard::new(&Listen { address, key, hosts: own(hosts), origins: own(origins), times: Times::default() });
        let mut request = Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        guard.check(&request.body(()).expect("the headers are fine")).map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    const BEARER: (&str, &str) = ("authorization", "Bearer 0123456789abcdef0123456789abcdef");

    // T-NET-01: DNS rebinding.
    #[test]
    fn only_known_host_names_are_served() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]:8000"] {
            assert_eq!(status(&[], &[], &[("host", host), BEARER]), 200, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "evil@localhost", "", "127.0.0.2"] {
            assert_eq!(status(&[], &[], &[("host", host), BEARER]), 403, "{host}");
        }
        assert_eq!(status(&[], &[], &[BEARER]), 403, "no host at all");
        assert_eq!(status(&[], &[], &[("host", "localhost"), ("host", "evil.example"), BEARER]), 403, "two hosts");
        assert_eq!(status(&["box.example"], &[], &[("host", "box.example:9000"), BEARER]), 200);
    }

    // T-NET-01: the host in the first line of a request counts.
    #[test]
    fn a_host_in_the_first_line_must_be_the_same_and_ours() {
        let with = |uri: &str, host: &str| status_of(uri, &[], &[], &[("host", host), BEARER]);
        assert_eq!(with("http://localhost:80/mcp", "localhost:80"), 200);
        assert_eq!(with("http://LOCALHOST/mcp", "localhost"), 200);
        for uri in [
            "http://evil.example/mcp",
            "http://localhost@evil.example/mcp",
            "http://evil@localhost/mcp",
            "http://127.0.0.1/mcp",
            "http://localhost:81/mcp",
            "https://localhost/mcp",
            "ftp://localhost/mcp",
        ] {
            assert_eq!(with(uri, "localhost"), 403, "{uri}");
        }
        assert_eq!(with("http://evil.example/mcp", "evil.example"), 403);
    }

    // T-NET-01, T-NET-02: a web page that posts to this machine.
    #[test]
    fn no_web_page_is_served_unless_it_was_named() {
        let with = |origin| status(&[], &["https://app.example"], &[("host", "localhost"), ("origin", origin), BEARER]);
        assert_eq!(with("https://app.example"), 200);
        for origin in
            ["http://app.example", "https://app.example.evil", "https://app.example:444", "null", "http://localhost", ""]
        {
            assert_eq!(with(origin), 403, "{origin}");
        }
    }

    // T-NET-06.
    #[test]
    fn the_key_is_needed_on_this_machine_too() {
        let with = |headers: &[(&str, &str)]| status(&[], &[], &[&[("host", "localhost")], headers].concat());
        assert_eq!(with(&[BEARER]), 200);
        assert_eq!(with(&[("authorization", "bearer 0123456789abcdef0123456789abcdef")]), 200);
        assert_eq!(with(&[]), 401);
        assert_eq!(with(&[("authorization", "Bearer 0123456789abcdef0123456789abcdee")]), 401);
        assert_eq!(with(&[("authorization", "Bearer 0123456789abcdef")]), 401);
        assert_eq!(with(&[("authorization", "Basic 0123456789abcdef0123456789abcdef")]), 401);
        assert_eq!(with(&[BEARER, ("authorization", "Bearer x")]), 401);
    }
}
