//! Certificate and key of the service, from files that are read again when they change.
//!
//! Renewal replaces both files, one after the other: between the two they do not fit. The service keeps the last pair that
//! fits. A connection keeps what it was opened with; later ones get the new certificate.

use crate::utc::utc;
use model::OperationError;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore, ServerConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Time before the end of a certificate from which on the service warns. Clients of ACME renew weeks earlier, and
/// certificates of six days after half of them.
const WARNING_BEFORE: Duration = Duration::from_secs(48 * 60 * 60);
/// The end of the year 9999, which stands for no end in certificates (RFC 5280, 4.1.2.5).
const END_OF_TIME: Duration = Duration::from_secs(253_402_300_799);

/// Files with a certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// News of the certificate in use, for operators.
#[derive(Debug)]
pub enum CertificateNews {
    /// The files have changed, and new connections get this certificate.
    Renewed { end: Duration },
    /// The files have changed and cannot be used; the certificate stays.
    Unusable(OperationError),
    /// It ends soon, or has ended.
    Ends { end: Duration, is_over: bool },
}

impl fmt::Display for CertificateNews {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = |end: &Duration| utc(u64::try_from(end.as_nanos()).unwrap_or(u64::MAX));
        match self {
            Self::Renewed { end } => write!(f, "the certificate was renewed; it ends {}", date(end)),
            Self::Unusable(error) => write!(f, "the certificate in use stays: {error}"),
            Self::Ends { end, is_over: false } => {
                write!(
                    f,
                    "the certificate ends {}: renew it; the files are read again when they change",
                    date(end)
                )
            }
            Self::Ends { end, is_over: true } => {
                write!(f, "the certificate ended {}, and clients refuse it: renew it", date(end))
            }
        }
    }
}

/// A certificate and a key that fit.
struct Identity {
    config: Arc<ServerConfig>,
    /// End of the certificate, time since 1970.
    end: Duration,
}

/// The identity of the service.
pub struct Tls {
    files: TlsFiles,
    identity: RwLock<Identity>,
    looked: Mutex<Looked>,
}

/// The latest look at the files.
struct Looked {
    /// Hash of both files, or the reason why they cannot be read.
    found: Result<blake3::Hash, String>,
    /// Time of the certificate that operators know of.
    age: Age,
}

/// Time of a certificate, from the view of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    Valid,
    EndsSoon,
    Over,
}

impl Age {
    fn of(end: Duration, now: Duration) -> Self {
        if now > end {
            Self::Over
        } else if now + WARNING_BEFORE > end {
            Self::EndsSoon
        } else {
            Self::Valid
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads certificate and key.
    ///
    /// # Errors
    /// If a file cannot be read, is of another format, or the key is not that of the certificate.
    pub fn open(files: TlsFiles) -> Result<Self, OperationError> {
        let content = files.read()?;
        let identity = RwLock::new(files.identity(&content)?);
        let looked = Looked { found: Ok(content.hash()), age: Age::Valid };
        Ok(Self { files, identity, looked: Mutex::new(looked) })
    }

    /// Returns what a new connection is opened with.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.identity.read().unwrap_or_else(PoisonError::into_inner).config)
    }

    /// Returns the end of the certificate in use, time since 1970.
    pub(crate) fn end(&self) -> Duration {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).end
    }

    /// Reads the files again, and takes what fits. Returns what has changed since the last look; `now` is the time since
    /// 1970.
    /// Says that the certificate ends soon, or has ended.
    pub(crate) fn complaint(&self, now: Duration) -> Option<String> {
        let end = self.end();
        let age = Age::of(end, now);
        (age > Age::Valid).then(|| CertificateNews::Ends { end, is_over: age == Age::Over }.to_string())
    }

    pub(crate) fn look(&self, now: Duration) -> Vec<CertificateNews> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = Vec::new();
        let content = self.files.read();
        let found = content.as_ref().map(Content::hash).map_err(ToString::to_string);
        if found != looked.found {
            looked.found = found;
            match content.and_then(|content| self.files.identity(&content)) {
                Ok(identity) => {
                    news.push(CertificateNews::Renewed { end: identity.end });
                    *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity;
                    looked.age = Age::Valid;
                }
                Err(error) => news.push(CertificateNews::Unusable(error)),
            }
        }
        let end = self.end();
        let age = Age::of(end, now);
        if age > looked.age {
            news.push(CertificateNews::Ends { end, is_over: age == Age::Over });
        }
        looked.age = age;
        news
    }
}

/// Content of both files.
struct Content {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Content {
    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(self.certificate.len() as u64).to_le_bytes());
        hasher.update(&self.certificate);
        hasher.update(&self.key);
        hasher.finalize()
    }
}

impl TlsFiles {
    fn read(&self) -> Result<Content, OperationError> {
        let read = |path: &Path| {
            std::fs::read(path)
                .map_err(|error| OperationError::input(format_args!("{}: {error}", path.display())))
        };
        Ok(Content { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    fn identity(&self, content: &Content) -> Result<Identity, OperationError> {
        let certificate = self.certificate.display();
        let key_file = self.key.display();
        let wrong_certificate = |what: &dyn fmt::Display| {
            OperationError::input(format_args!("{certificate}: {what}")).hint(
                "expected PEM: the certificate of the service, then those between it and its authority (fullchain.pem)",
            )
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content.certificate).collect();
        let chain = chain.map_err(|error| wrong_certificate(&error))?;
        let first = chain.first().ok_or_else(|| wrong_certificate(&"there is no certificate"))?.clone();
        let key = PrivateKeyDer::from_pem_slice(&content.key).map_err(|_| {
            OperationError::input(format_args!("{key_file}: there is no private key that can be read"))
                .hint("expected PEM without a passphrase: RSA, ECDSA or Ed25519")
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(OperationError::machine)?;
        let config = builder.with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.map_err(|error| match error {
            Error::InconsistentKeys(_) => OperationError::input(format_args!(
                "the key in {key_file} is not that of the certificate in {certificate}"
            ))
            .hint("the certificate of the service has to be the first one in its file"),
            Error::InvalidCertificate(reason) => wrong_certificate(&reason),
            other => OperationError::input(format_args!("{key_file}: {other}"))
                .hint("expected a key of RSA (2048 to 8192 bits), ECDSA (P-256, P-384) or Ed25519"),
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Identity { config: Arc::new(config), end: end_of(&first, &provider) })
    }
}

/// Returns the end of a certificate, time since 1970. The verifier of rustls names it only for one that has ended, so
/// that it is asked as of the end of time; it looks at that before it looks for an authority.
fn end_of(certificate: &CertificateDer<'_>, provider: &CryptoProvider) -> Duration {
    let Ok(parsed) = ParsedCertificate::try_from(certificate) else { return END_OF_TIME };
    let judged = verify_server_cert_signed_by_trust_anchor(
        &parsed,
        &RootCertStore::empty(),
        &[],
        UnixTime::since_unix_epoch(END_OF_TIME),
        provider.signature_verification_algorithms.all,
    );
    match judged {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            Duration::from_secs(not_after.as_secs())
        }
        _ => END_OF_TIME,
    }
}
