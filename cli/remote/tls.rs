//! TLS to a server: trusts the certificate authorities of this machine, or the ones of a file alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::printer::Hinted;

/// Where systems keep the certificate authorities that they trust, all in one file.
const BUNDLES: [&str; 4] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"];

/// A connection, with TLS or without.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Whom to trust.
pub(super) struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Trusts the authorities of a PEM file, or else those of this machine.
    pub(super) fn new(file: Option<&Path>) -> anyhow::Result<Self> {
        let variable = || std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
        let found = || BUNDLES.iter().map(PathBuf::from).find(|path| path.is_file());
        let path =
            file.map(Path::to_owned).or_else(variable).or_else(found).ok_or_else(|| {
                Hinted::error("this machine has no file of certificate authorities", "name one with `--ca FILE`")
            })?;
        let unusable = || format!("cannot use the certificate authorities of `{}`", path.display());
        let certificates = CertificateDer::pem_file_iter(&path).with_context(unusable)?;
        let mut roots = RootCertStore::empty();
        // Certificates of the system that this program cannot read are not trusted.
        roots.add_parsable_certificates(certificates.filter_map(Result::ok));
        if roots.is_empty() {
            anyhow::bail!("{}: no certificate in PEM", unusable());
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// Performs the handshake with a server of this name.
    pub(super) fn connect(&self, host: &str, mut stream: TcpStream) -> anyhow::Result<impl Stream + use<>> {
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.with_context(|| format!("invalid host name `{host}`"))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).map_err(|error| {
                let hint = "name its certificate authority with `--ca FILE`, or check that it speaks TLS at this port";
                Hinted::error(format!("cannot trust the server `{host}`: {error}"), hint)
            })?;
        }
        Ok(StreamOwned::new(connection, stream))
    }
}
