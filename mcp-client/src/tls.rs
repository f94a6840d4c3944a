//! TLS for `https://` addresses: the trusted certificates, and the handshake.
//!
//! There is no option that turns a check off. A private server has the certificate of its authority in its configuration, and
//! then no other authority is trusted for it.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsConnector, rustls};

/// Maximum size of a file with certificates: the list of a whole system has a quarter of a megabyte.
const CERTIFICATES_MAX: u64 = 4 << 20;

/// Makes TLS connections that trust a fixed set of certificates.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    /// Trusts the authorities in a PEM file, or those of this machine.
    pub(crate) fn new(authorities: Option<&Path>) -> Result<Self, String> {
        let roots = match authorities {
            Some(path) => from_file(path)?,
            None => of_this_machine()?,
        };
        // The provider is named here, because a default of the process belongs to the embedding program.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config =
            config.map_err(|error| format!("cannot use TLS: {error}"))?.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Checks the server's certificate against the host of the address, and encrypts the connection.
    pub(crate) async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("invalid host name `{host}`"))?;
        self.0.connect(name, stream).await.map_err(|error| {
            let is_not_tls = matches!(
                error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()),
                Some(rustls::Error::InvalidMessage(_))
            );
            let remedy = if is_not_tls { " (the server does not use TLS on this port)" } else { "" };
            format!("cannot establish a TLS connection to `{host}`: {error}{remedy}")
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the caller names the file of certificates")]
fn from_file(path: &Path) -> Result<RootCertStore, String> {
    let failed = |reason: &dyn std::fmt::Display| format!("cannot read the certificates in `{}`: {reason}", path.display());
    let length = std::fs::metadata(path).map_err(|error| failed(&error))?.len();
    if length > CERTIFICATES_MAX {
        return Err(failed(&format!("the file is larger than {CERTIFICATES_MAX} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() { Err(failed(&"expected at least one certificate in PEM form")) } else { Ok(roots) }
}

fn of_this_machine() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // Some systems list certificates that cannot be used; the others count.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(
            "this machine has no trusted root certificates: install the package `ca-certificates`, or set `ca` to a PEM \
                    file"
                .to_owned(),
        );
    }
    Ok(roots)
}
