//! Everything that the TLS connections of a workload have in common.

use super::insecure::AcceptAny;
use super::refusal::Refusal;
use super::session::TlsSession;
use crate::target::CertificateCheck;
use model::OperationError;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files with the certificates of the authorities that distributions trust: Debian, Fedora, Alpine.
const SYSTEM_FILES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
/// The variable by which OpenSSL takes another file.
const SYSTEM_FILE_VARIABLE: &str = "SSL_CERT_FILE";

/// Opens TLS sessions with one server.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    /// The name that the certificate has to be for, and that is sent as SNI.
    name: ServerName<'static>,
}

impl TlsClient {
    /// Offers the server the protocols `alpn`, most wanted first; none leaves the extension out.
    pub(crate) fn new(name: &str, check: &CertificateCheck, alpn: &[&[u8]]) -> Result<Self, OperationError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(OperationError::machine)?;
        let mut config = match check {
            CertificateCheck::Nothing => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
                .with_no_client_auth(),
            CertificateCheck::System => {
                builder.with_root_certificates(read_authorities(&system_file()?)?).with_no_client_auth()
            }
            CertificateCheck::Authorities(file) => {
                builder.with_root_certificates(read_authorities(file)?).with_no_client_auth()
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        // Each connection costs a whole handshake, the first as well as later ones.
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            OperationError::input(format_args!("'{name}' is no name that a certificate can be for"))
                .hint("expected a DNS name or an IP address")
        })?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// Shakes hands on a blocking connection.
    pub(crate) fn handshake(&self, stream: &mut TcpStream) -> Result<TlsSession, OperationError> {
        let mut connection =
            ClientConnection::new(self.config.clone(), self.name.clone()).map_err(OperationError::machine)?;
        while connection.is_handshaking() {
            connection.complete_io(stream).map_err(|error| {
                let server = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
                let Refusal { message, hint } = Refusal::of(&error, &self.config.alpn_protocols);
                OperationError::machine(format_args!("{server}: {message}")).hint(hint)
            })?;
        }
        Ok(TlsSession::new(connection))
    }
}

fn system_file() -> Result<PathBuf, OperationError> {
    if let Some(file) = std::env::var_os(SYSTEM_FILE_VARIABLE) {
        return Ok(file.into());
    }
    SYSTEM_FILES.iter().map(PathBuf::from).find(|file| file.is_file()).ok_or_else(|| {
        OperationError::machine("this machine has no list of the authorities that it trusts")
            .hint("install ca-certificates, or name a file of certificates: tls = { ca_file = \"ca.pem\" }")
    })
}

/// Reads certificates in PEM. A file may have others that cannot be used: systems keep some of them for old software.
fn read_authorities(file: &Path) -> Result<RootCertStore, OperationError> {
    let shown = file.display();
    let hint = "expected certificates of authorities in PEM, each from -----BEGIN CERTIFICATE----- on";
    let unreadable = |error: &dyn std::fmt::Display| {
        OperationError::input(format_args!("certificates of {shown} cannot be read: {error}")).hint(hint)
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|error| unreadable(&error))?;
    let mut authorities = RootCertStore::empty();
    let (used, _) = authorities.add_parsable_certificates(certificates);
    if used == 0 {
        return Err(
            OperationError::input(format_args!("{shown} has no certificate that can be used")).hint(hint)
        );
    }
    Ok(authorities)
}
