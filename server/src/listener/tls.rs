//! TLS by option: a certificate and its key from files, with the `ring` provider.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::Error;

/// The only protocol that is offered over TLS.
const HTTP: &[u8] = b"http/1.1";

/// A certificate with its key. Clones share it.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl Tls {
    /// Reads a certificate chain and its private key from PEM files.
    pub(crate) fn from_files(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let unusable = |path: &Path, reason: String| Error::Tls { path: path.to_owned(), reason };
        let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| unusable(certificate, reason(&error)))?;
        if chain.is_empty() {
            return Err(unusable(certificate, "expected a certificate in PEM".to_owned()));
        }
        let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
            pem::Error::NoItemsFound => unusable(key, "expected a private key in PEM".to_owned()),
            error => unusable(key, reason(&error)),
        })?;
        let provider = Arc::new(ring::default_provider());
        // The key alone first, so that an error names the file it is about.
        provider.key_provider.load_private_key(private.clone_key()).map_err(|error| unusable(key, error.to_string()))?;
        let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.and_then(|config| config.with_no_client_auth().with_single_cert(chain, private));
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                unusable(certificate, format!("the private key in `{}` belongs to another certificate", key.display()))
            }
            error => unusable(certificate, error.to_string()),
        })?;
        config.alpn_protocols = vec![HTTP.to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Performs the handshake; `None` if the client does not speak TLS. The caller limits its time.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> Option<TlsStream<S>> {
        self.0.accept(stream).await.ok()
    }
}

fn reason(error: &pem::Error) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}
