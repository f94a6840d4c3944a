//! Servers over `https://`: the right one is used, and none that cannot be checked. Each test has its own authority and server.

#![expect(clippy::disallowed_methods, reason = "a test looks at this machine")]

#[path = "support/scripted.rs"]
mod scripted;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use runtime::Sandbox;
use sandlite_mcp_client::{Server, Servers};
use scripted::{honest, reply, serve};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate authority, whose certificate is in a file.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let directory = tempfile::tempdir().unwrap();
        // Two authorities with the same name would differ only in their signatures.
        params.distinguished_name.push(DnType::CommonName, directory.path().display().to_string());
        std::fs::write(directory.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// A server's configuration with a certificate for a host.
    fn certify(&self, host: &str, change: impl FnOnce(&mut CertificateParams)) -> Arc<rustls::ServerConfig> {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate: CertificateDer<'static> = params.signed_by(&key, &self.issuer).unwrap().into();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap())
    }
}

/// Connects to an address, and returns the error if it cannot be used.
fn connect(url: &str, fields: Value) -> Result<Servers, String> {
    let mut server = json!({ "url": url, "headers": { "Authorization": "Bearer s3cret" } });
    server.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let text = json!({ "there": server }).to_string();
    Servers::connect(Server::parse_all(&text).map_err(|error| error.to_string())?).map_err(|error| error.to_string())
}

fn refused(url: &str, fields: Value) -> String {
    connect(url, fields).map(|_| "it was used").map_or_else(|error| error, str::to_owned)
}

#[test]
fn a_server_with_a_certificate_of_a_private_authority_is_used() {
    let authority = Authority::new();
    let keys = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&keys);
    let (port, _) = serve(
        Some(authority.certify("localhost", |_| ())),
        Arc::new(move |head, message, output| {
            let key = head.lines().filter_map(|line| line.strip_prefix("authorization: "));
            seen.lock().unwrap().extend(key.map(str::to_owned));
            honest(head, message, output)
        }),
    );
    let servers = connect(&format!("https://localhost:{port}/mcp"), json!({ "ca": authority.file() })).unwrap();
    let sandbox = servers.attach(&Sandbox::builder().open().unwrap()).unwrap();
    let output = sandbox.bash("mcp there greet '{}'").unwrap();
    assert_eq!((String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)), ("hello\n".into(), "".into()));
    let keys = keys.lock().unwrap();
    assert!(!keys.is_empty() && keys.iter().all(|key| key == "Bearer s3cret"), "{keys:?}");
}

#[test]
fn a_certificate_for_an_address_in_numbers_is_used() {
    let authority = Authority::new();
    let (port, _) = serve(Some(authority.certify("127.0.0.1", |_| ())), Arc::new(honest));
    assert!(connect(&format!("https://127.0.0.1:{port}"), json!({ "ca": authority.file() })).is_ok());
}

/// Requires that a server is refused with a reason, and that it got no request: the key in it would be lost.
#[track_caller]
fn check(config: Arc<rustls::ServerConfig>, host: &str, fields: Value, reason: &str) {
    let (port, requests) = serve(Some(config), Arc::new(honest));
    let error = refused(&format!("https://{host}:{port}/mcp"), fields);
    assert!(error.contains(reason), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    let authority = Authority::new();
    check(authority.certify("example.com", |_| ()), "localhost", json!({ "ca": authority.file() }), "not valid for name");
}

#[test]
fn an_expired_certificate_is_refused() {
    let authority = Authority::new();
    let expired = authority.certify("localhost", |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    });
    check(expired, "localhost", json!({ "ca": authority.file() }), "certificate expired");
}

#[test]
fn a_certificate_of_tomorrow_is_refused() {
    let authority = Authority::new();
    let early = authority.certify("localhost", |params| params.not_before = date_time_ymd(4000, 1, 1));
    check(early, "localhost", json!({ "ca": authority.file() }), "not valid yet");
}

#[test]
fn an_authority_that_is_not_trusted_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    check(authority.certify("localhost", |_| ()), "localhost", json!({ "ca": other.file() }), "UnknownIssuer");
    check(authority.certify("localhost", |_| ()), "localhost", json!({}), "UnknownIssuer");
}

#[test]
fn a_server_without_tls_is_refused_on_an_encrypted_address() {
    let authority = Authority::new();
    let (port, requests) = serve(None, Arc::new(honest));
    let error = refused(&format!("https://localhost:{port}"), json!({ "ca": authority.file() }));
    // The client's first message is not HTTP, so the server hangs up or writes something that is not TLS.
    assert!(error.contains("cannot establish a TLS connection to `localhost`"), "{error}");
    assert!(requests.load(Ordering::SeqCst) <= 1);
}

#[test]
fn an_encrypted_server_is_not_used_on_a_plain_address() {
    let authority = Authority::new();
    let (port, requests) = serve(Some(authority.certify("localhost", |_| ())), Arc::new(honest));
    let error = refused(&format!("http://localhost:{port}"), json!({}));
    assert!(error.contains("cannot use the MCP server `there`"), "{error}");
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[test]
fn a_redirect_is_not_followed() {
    let authority = Authority::new();
    let (elsewhere, requests) = serve(None, Arc::new(honest));
    for location in [format!("http://127.0.0.1:{elsewhere}/mcp"), "file:///etc/passwd".to_owned(), "//other".to_owned()] {
        for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
            let location = location.clone();
            let (port, _) = serve(
                Some(authority.certify("localhost", |_| ())),
                Arc::new(move |_, _, output| reply(output, status, &format!("location: {location}\r\n"), "")),
            );
            let error = refused(&format!("https://localhost:{port}"), json!({ "ca": authority.file() }));
            assert!(error.contains("redirects are not followed"), "{error}");
        }
    }
    assert_eq!(requests.load(Ordering::SeqCst), 0);
}

#[test]
fn an_endless_body_is_cut_off() {
    let authority = Authority::new();
    for kind in ["application/json", "text/event-stream"] {
        let sent = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&sent);
        let (port, _) = serve(
            Some(authority.certify("localhost", |_| ())),
            Arc::new(move |_, _, output| {
                write!(output, "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n")?;
                loop {
                    output.write_all(&[b'a'; 1 << 16])?;
                    counted.fetch_add(1 << 16, Ordering::SeqCst);
                }
            }),
        );
        let error = refused(&format!("https://localhost:{port}"), json!({ "ca": authority.file() }));
        assert!(error.contains("cannot use the MCP server `there`"), "{error}");
        // A message may have 16 MB; the rest was in flight.
        assert!(sent.load(Ordering::SeqCst) < 64 << 20, "{} bytes were read", sent.load(Ordering::SeqCst));
    }
}

#[test]
fn a_file_without_certificates_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (empty, broken, large) =
        (directory.path().join("empty"), directory.path().join("broken"), directory.path().join("large"));
    std::fs::write(&empty, "nothing here\n").unwrap();
    std::fs::write(&broken, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    std::fs::File::create(&large).unwrap().set_len(5 << 20).unwrap();
    let (port, _) = serve(None, Arc::new(honest));
    for (file, reason) in [
        (empty, "expected at least one certificate in PEM form"),
        (broken, "cannot read the certificates in"),
        (large, "larger than 4194304 bytes"),
        (directory.path().join("missing"), "No such file"),
    ] {
        let error = refused(&format!("https://localhost:{port}"), json!({ "ca": file }));
        assert!(error.contains(reason), "{error}");
    }
}
