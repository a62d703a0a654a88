//! Everything that the TLS connections of a workload have in common.

use super::insecure::AcceptAny;
use super::refusal::Refusal;
use super::session::TlsSession;
use crate::target::CertificateCheck;
use certificates::{read_authorities, system_authorities};
use model::OperationError;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

/// Field of a load file that names authorities.
const NAME_AUTHORITIES: &str = "tls = { ca_file = \"ca.pem\" }";

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
            CertificateCheck::System => builder
                .with_root_certificates(trusted(&system_authorities(NAME_AUTHORITIES)?)?)
                .with_no_client_auth(),
            CertificateCheck::Authorities(file) => {
                builder.with_root_certificates(trusted(file)?).with_no_client_auth()
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

/// Reads authorities. A file may have others that cannot be used: systems keep some of them for old software.
fn trusted(file: &Path) -> Result<RootCertStore, OperationError> {
    let mut authorities = RootCertStore::empty();
    let (used, _) = authorities.add_parsable_certificates(read_authorities(file)?);
    if used == 0 {
        let message = format!("{} has no certificate that can be used", file.display());
        return Err(OperationError::input(message).hint("expected certificates of authorities"));
    }
    Ok(authorities)
}
