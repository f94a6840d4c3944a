//! HTTPS: the same server with a certificate, and clients that get nowhere.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::http::{Server, sandlite};

/// A certificate of its own for this machine, with its files.
struct Certificate {
    directory: tempfile::TempDir,
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    fn new() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(directory.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Self { directory, made }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn setting(&self, setting: &str, name: &str) -> String {
        format!("{setting}={}", self.path(name).display())
    }

    fn server(&self) -> Server {
        Server::start(&[&self.setting("tls-cert", "cert.pem"), &self.setting("tls-key", "key.pem")])
    }

    /// Sends a request over TLS and returns everything that comes back.
    fn ask(&self, server: &Server, request: &str) -> String {
        let mut roots = RootCertStore::empty();
        roots.add(self.made.cert.der().clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap();
        let mut stream = StreamOwned::new(connection, TcpStream::connect(server.address).unwrap());
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text
    }

    fn health(&self, server: &Server) -> String {
        self.ask(server, &format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address))
    }
}

/// Runs `echo` on the server's sandbox `main` from the command line.
fn echo(certificate: &Certificate, server: &Server, url: &str, more: &[&str]) -> (bool, String) {
    let first = ["--server", url, "--key", &server.key];
    let args = [&first[..], more, &["bash", "-c", "echo over tls"]].concat();
    let output = sandlite(&args, certificate.directory.path()).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_server_and_the_command_line_speak_tls() {
    let certificate = Certificate::new();
    let server = certificate.server();
    assert!(certificate.health(&server).starts_with("HTTP/1.1 200"));
    let url = format!("https://{}", server.address);
    assert_eq!(echo(&certificate, &server, &url, &["--ca", "cert.pem"]), (true, "over tls\n".to_owned()));
    let (is_success, text) = echo(&certificate, &server, &url, &[]);
    assert!(!is_success && text.contains("cannot trust the server") && text.contains("--ca"), "{text}");
    let other = Certificate::new();
    let (is_success, text) = echo(&other, &server, &url, &["--ca", "cert.pem"]);
    assert!(!is_success && text.contains("cannot trust the server"), "{text}");
    // The first line names the scheme as it is.
    let absolute = |scheme: &str| {
        let address = server.address;
        certificate
            .ask(&server, &format!("GET {scheme}://{address}/health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
    };
    assert!(absolute("https").starts_with("HTTP/1.1 200") && absolute("http").starts_with("HTTP/1.1 403"));
}

/// T-NET-08: a client that does not speak TLS gets no response, and a silent one is cut.
#[test]
fn plain_http_and_silence_get_nowhere_at_a_port_with_tls() {
    let certificate = Certificate::new();
    let server = certificate.server();
    let began = Instant::now();
    let plain = format!("GET /health HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address);
    // A record that is announced and does not come; the beginning of a handshake that ends early.
    let half = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc];
    let clients: Vec<TcpStream> = [plain.as_bytes(), &[0xff; 4096], &half, b""]
        .iter()
        .map(|bytes| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            let _ = stream.write_all(bytes);
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream
        })
        .collect();
    assert!(certificate.health(&server).starts_with("HTTP/1.1 200"));
    for mut client in clients {
        let mut bytes = Vec::new();
        let ended = client.read_to_end(&mut bytes);
        let is_cut = ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(is_cut && !bytes.windows(4).any(|part| part == b"HTTP"), "{bytes:?}");
    }
    assert!(began.elapsed() < Duration::from_secs(25));
    let (is_success, text) = echo(&certificate, &server, &format!("http://{}", server.address), &[]);
    assert!(!is_success && text.contains("cannot reach the server"), "{text}");
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_reason() {
    let certificate = Certificate::new();
    let other = Certificate::new();
    std::fs::write(certificate.path("empty.pem"), "").unwrap();
    std::fs::write(certificate.path("text.pem"), "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n").unwrap();
    std::fs::copy(other.path("key.pem"), certificate.path("other.pem")).unwrap();
    let check = |cert: &str, key: &str, expected: &[&str]| {
        let settings = [("--tls-cert", cert), ("--tls-key", key)];
        let given = settings.iter().filter(|(_, file)| !file.is_empty()).flat_map(|(name, file)| [*name, *file]);
        let args: Vec<&str> = ["serve", "--data", "data", "--listen", "127.0.0.1:0"].into_iter().chain(given).collect();
        let output = sandlite(&args, certificate.directory.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && expected.iter().all(|part| text.contains(part)), "{args:?}: {text}");
    };
    check("missing.pem", "key.pem", &["`missing.pem`", "No such file"]);
    check("empty.pem", "key.pem", &["`empty.pem`", "expected a certificate in PEM"]);
    check("cert.pem", "missing.pem", &["`missing.pem`", "No such file"]);
    check("cert.pem", "empty.pem", &["`empty.pem`", "expected a private key in PEM"]);
    check("cert.pem", "text.pem", &["`text.pem`"]);
    check("cert.pem", "other.pem", &["`cert.pem`", "`other.pem` belongs to another certificate"]);
    check("cert.pem", "", &["`tls-cert` without `tls-key`"]);
    check("", "key.pem", &["`tls-key` without `tls-cert`"]);
}
