//! Authorities that clients of TLS trust, and refused certificates in words.
//!
//! Every verb that opens TLS connections trusts the same authorities and says the same about a certificate. Remedies
//! name options and fields, so they are with the verbs.

use model::OperationError;
use rustls::CertificateError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::fmt;
use std::path::{Path, PathBuf};

/// Files with the certificates of the authorities that distributions trust: Debian, Fedora, Alpine.
const SYSTEM_FILES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
/// The variable by which OpenSSL takes another file.
const SYSTEM_FILE_VARIABLE: &str = "SSL_CERT_FILE";

/// Returns the file of the authorities that this machine trusts.
///
/// # Errors
/// If there is none; `instead` says how to name another file.
pub fn system_authorities(instead: &str) -> Result<PathBuf, OperationError> {
    if let Some(file) = std::env::var_os(SYSTEM_FILE_VARIABLE) {
        return Ok(file.into());
    }
    SYSTEM_FILES.iter().map(PathBuf::from).find(|file| file.is_file()).ok_or_else(|| {
        OperationError::machine("this machine has no list of the authorities that it trusts")
            .hint(format_args!("install ca-certificates, or name a file of certificates: {instead}"))
    })
}

/// Reads the certificates of authorities, in PEM.
///
/// # Errors
/// If the file cannot be read, or has no certificate.
pub fn read_authorities(file: &Path) -> Result<Vec<CertificateDer<'static>>, OperationError> {
    let shown = file.display();
    let hint = "expected certificates of authorities in PEM, each from -----BEGIN CERTIFICATE----- on";
    let unreadable = |error: &dyn fmt::Display| {
        OperationError::input(format_args!("certificates of {shown} cannot be read: {error}")).hint(hint)
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|error| unreadable(&error))?;
    if certificates.is_empty() {
        return Err(OperationError::input(format_args!("{shown} has no certificate")).hint(hint));
    }
    Ok(certificates)
}

/// A reason for which a certificate is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateFault {
    /// It is for other names than that of the server.
    OtherName {
        expected: String,
        presented: String,
    },
    /// No trusted authority has signed it.
    Untrusted,
    Expired,
    NotYetValid,
    /// Another reason, in the words of rustls.
    Other(String),
}

impl From<&CertificateError> for CertificateFault {
    fn from(reason: &CertificateError) -> Self {
        match reason {
            CertificateError::NotValidForNameContext { expected, presented } => {
                let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
                Self::OtherName {
                    expected: expected.to_str().into_owned(),
                    presented: if names.is_empty() { "no name".to_owned() } else { names.join(", ") },
                }
            }
            // A bad signature is that of another authority of the same name.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            other => Self::Other(other.to_string()),
        }
    }
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherName { expected, presented } => {
                write!(f, "its certificate is for {presented}, not for {expected}")
            }
            Self::Untrusted => f.write_str("its certificate is from an authority that is not trusted"),
            Self::Expired => f.write_str("its certificate has expired"),
            Self::NotYetValid => f.write_str("its certificate is not valid yet"),
            Self::Other(reason) => write!(f, "its certificate is not accepted: {reason}"),
        }
    }
}

/// The name in rustls' `DnsName("localhost")` or `IpAddress(127.0.0.1)`.
fn bare(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(presented).trim_matches('"')
}
