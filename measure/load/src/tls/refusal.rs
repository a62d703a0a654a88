//! Failed handshakes in words: what was expected, what was found, and what to do.

use super::ALPN_HTTP2;
use certificates::CertificateFault;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use std::io;

const TRUST_HINT: &str = "name the file of its authority: tls = { ca_file = \"ca.pem\" }; or, for a server under \
    test, accept any certificate: tls = { insecure = true }";

/// Advice for servers that speak HTTP/1.1 only.
pub(crate) const NO_HTTP2_HINT: &str = "gRPC takes HTTP/2; for other requests, let the server choose (https://), or ask \
    by HTTP/1.1 (https+h1://)";

/// A reason for a failed handshake, and advice.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) message: String,
    pub(super) hint: &'static str,
}

impl Refusal {
    /// Describes an error of a handshake in which the protocols `alpn` were offered.
    pub(super) fn of(error: &io::Error, alpn: &[Vec<u8>]) -> Self {
        let Some(cause) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
            return Self {
                message: match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        "no answer to the start of TLS".into()
                    }
                    io::ErrorKind::UnexpectedEof => "the server hung up at the start of TLS".into(),
                    _ => format!("TLS cannot be started: {error}"),
                },
                hint: "does this port speak TLS?",
            };
        };
        let (message, hint) = match cause {
            Error::InvalidCertificate(reason) => wrong_certificate(reason),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => (
                "the server does not answer with TLS".to_owned(),
                "is this its port for TLS? Without it, targets begin with http://, http+h2://, grpc:// or memcached://",
            ),
            Error::AlertReceived(AlertDescription::NoApplicationProtocol) | Error::NoApplicationProtocol => {
                no_protocol(alpn)
            }
            Error::AlertReceived(alert) => {
                (format!("the server refused TLS with the alert {alert:?}"), "its log may say why")
            }
            other => (
                format!("TLS failed: {other}"),
                "expected TLS 1.2 or 1.3 without a client certificate; `openssl s_client -connect HOST:PORT` \
                 shows what the server offers",
            ),
        };
        Self { message, hint }
    }
}

/// The message and the hint where client and server have no application protocol in common.
fn no_protocol(alpn: &[Vec<u8>]) -> (String, &'static str) {
    if alpn.iter().all(|name| name == ALPN_HTTP2) {
        return (
            "the server has no HTTP/2: it took none of the protocols that were offered in TLS (ALPN): h2"
                .to_owned(),
            NO_HTTP2_HINT,
        );
    }
    let offered: Vec<_> = alpn.iter().map(|name| String::from_utf8_lossy(name)).collect();
    (
        format!(
            "the server took none of the protocols that were offered in TLS (ALPN): {}",
            offered.join(", ")
        ),
        "does it speak HTTP?",
    )
}

fn wrong_certificate(reason: &CertificateError) -> (String, &'static str) {
    let fault = CertificateFault::from(reason);
    let hint = match fault {
        CertificateFault::OtherName { .. } => {
            "use a name of the certificate in the target; or, for a server under test, accept any \
             certificate: tls = { insecure = true }"
        }
        CertificateFault::NotYetValid => "is the clock of this machine right?",
        CertificateFault::Untrusted | CertificateFault::Expired | CertificateFault::Other(_) => TRUST_HINT,
    };
    (fault.to_string(), hint)
}
