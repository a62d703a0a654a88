//! HTTP to a controller, with a token.

use certificates::{CertificateFault, read_authorities, system_authorities};
use clap::Args;
use model::OperationError;
use operation::files::read_text;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::uri::Scheme;
use ureq::http::{Response, StatusCode, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Time in which a controller begins to answer, beyond a wait that was asked for.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Way of a token to the controller.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TransportArgs {
    /// Authorities that may certify the controller, in PEM; otherwise those of this machine.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Use HTTP without encryption also over a network, where others can read the token.
    #[arg(long)]
    plain_http: bool,
}

/// A connection to the controller at an address.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    url: String,
    token: String,
    /// Authorities that are trusted; none without TLS.
    trusted: Option<Trusted>,
}

/// Authorities of a file.
#[derive(Debug)]
pub(crate) struct Trusted {
    file: PathBuf,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    pub(crate) fn read(file: PathBuf) -> Result<Self, OperationError> {
        let certificates = read_authorities(&file)?;
        Ok(Self { file, certificates })
    }
}

/// Builds the agent of a client. It follows no redirection: the controller has none, and the token is for it alone.
pub(crate) fn http_agent(trusted: Option<&Trusted>) -> Agent {
    let mut configuration = Agent::config_builder().http_status_as_error(false).max_redirects(0);
    if let Some(trusted) = trusted {
        let certificates: Vec<_> =
            trusted.certificates.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&certificates))
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
            .build();
        configuration = configuration.tls_config(tls);
    }
    configuration.build().into()
}

/// Returns true for hosts whose packets do not leave this machine (RFC 6761, 6.3).
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    address
        .map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |at: IpAddr| at.is_loopback())
}

/// A request that was refused, or not answered.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// The controller answered with an error.
    Refused(StatusCode, OperationError),
    /// There was no answer.
    Unreachable(OperationError),
}

impl From<ClientError> for OperationError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(_, error) | ClientError::Unreachable(error) => error,
        }
    }
}

/// The body of an error.
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
    #[serde(default)]
    hint: Option<String>,
}

impl Client {
    /// Reads the token of a file, and the authorities that are trusted.
    pub(crate) fn new(
        url: &str,
        token_file: &Path,
        transport: &TransportArgs,
    ) -> Result<Self, OperationError> {
        let token = read_text(token_file, "token")?.trim().to_owned();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OperationError::input(format_args!("{}: expected a token", token_file.display()))
                .hint("tailwright ctl token prints one"));
        }
        let malformed = || {
            OperationError::input(format_args!("'{url}': expected https://NAME:PORT or http://ADDRESS:PORT"))
        };
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let host = uri.host().ok_or_else(malformed)?;
        let is_http = uri.scheme() == Some(&Scheme::HTTP);
        if !is_http && uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(malformed());
        }
        if is_http && !transport.plain_http && !is_loopback(host) {
            return Err(OperationError::input(format_args!(
                "'{url}': others could read the token on the way"
            ))
            .hint("use https://; on a network of which every machine is trusted, --plain-http"));
        }
        if is_http && let Some(file) = &transport.ca_file {
            let message = format!("--ca-file {}: http:// has no certificates", file.display());
            return Err(OperationError::input(message).hint("use https://"));
        }
        let trusted = if is_http {
            None
        } else {
            let file = transport.ca_file.clone().map_or_else(|| system_authorities("--ca-file"), Ok)?;
            Some(Trusted::read(file)?)
        };
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { agent: http_agent(trusted.as_ref()), url, token, trusted })
    }

    /// Reads the authorities again. Returns true if they are others than before.
    pub(crate) fn renew_authorities(&mut self) -> bool {
        let Some(trusted) = &mut self.trusted else { return false };
        // A file that is being replaced can be read at the next attempt.
        let Ok(renewed) = Trusted::read(trusted.file.clone()) else { return false };
        if renewed.certificates == trusted.certificates {
            return false;
        }
        self.agent = http_agent(Some(&renewed));
        *trusted = renewed;
        true
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str, wait: Duration) -> Result<T, ClientError> {
        let request = self.agent.get(self.place(path)).header("authorization", self.bearer());
        let request = request.config().timeout_global(Some(TIMEOUT + wait)).build();
        self.read(request.call())
    }

    /// Sends a document; `key` tells a repeated request from a new one.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        document: &impl serde::Serialize,
        key: Option<&str>,
        wait: Duration,
    ) -> Result<T, ClientError> {
        let mut request = self.agent.post(self.place(path)).header("authorization", self.bearer());
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let request = request.config().timeout_global(Some(TIMEOUT + wait)).build();
        self.read(request.send_json(document))
    }

    /// Sends a document about a thing, if it still has the tag.
    pub(crate) fn post_if<T: DeserializeOwned>(
        &self,
        path: &str,
        tag: Option<&str>,
        document: &impl serde::Serialize,
        key: &str,
    ) -> Result<T, ClientError> {
        let mut request = self.agent.post(self.place(path)).header("authorization", self.bearer());
        if let Some(tag) = tag {
            request = request.header("if-match", tag);
        }
        let request = request.header("idempotency-key", key);
        self.read(request.config().timeout_global(Some(TIMEOUT)).build().send_json(document))
    }

    pub(crate) fn post_bytes<T: DeserializeOwned>(&self, path: &str, bytes: &[u8]) -> Result<T, ClientError> {
        let request = self.agent.post(self.place(path)).header("authorization", self.bearer());
        self.read(request.send(bytes))
    }

    /// Returns the entity tag of a description; `None` from a controller that gives none.
    pub(crate) fn tag(&self, path: &str) -> Result<Option<String>, ClientError> {
        let request = self.agent.get(self.place(path)).header("authorization", self.bearer());
        let request = request.config().timeout_global(Some(TIMEOUT)).build();
        let answer = match self.check(request.call()) {
            // Controllers before this one do not show their hosts.
            Err(ClientError::Refused(StatusCode::METHOD_NOT_ALLOWED, _)) => return Ok(None),
            answer => answer?,
        };
        Ok(answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned))
    }

    /// Replaces a description by a text of this type, if it still has the tag.
    pub(crate) fn put(
        &self,
        path: &str,
        tag: Option<&str>,
        kind: &str,
        text: &str,
    ) -> Result<(), ClientError> {
        let mut request = self.agent.put(self.place(path)).header("authorization", self.bearer());
        if let Some(tag) = tag {
            request = request.header("if-match", tag);
        }
        self.check(request.header("content-type", kind).send(text)).map(drop)
    }

    pub(crate) fn delete(&self, path: &str) -> Result<(), ClientError> {
        let request = self.agent.delete(self.place(path)).header("authorization", self.bearer());
        self.check(request.call()).map(drop)
    }

    fn place(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<T, ClientError> {
        let mut answer = self.check(answer)?;
        // A list of ten thousand workloads with derivations fits.
        let limited = answer.body_mut().with_config().limit(256 << 20);
        limited.read_json().map_err(|error| self.unreachable(&error))
    }

    fn check(&self, answer: Result<Response<Body>, ureq::Error>) -> Result<Response<Body>, ClientError> {
        let mut answer = answer.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.body_mut().read_to_string().unwrap_or_default();
        let body = serde_json::from_str(&text).unwrap_or(ErrorBody { error: text, hint: None });
        let error = if status.is_server_error() {
            OperationError::machine(&body.error)
        } else {
            OperationError::input(&body.error)
        };
        Err(ClientError::Refused(status, OperationError { hint: body.hint, ..error }))
    }

    fn unreachable(&self, error: &ureq::Error) -> ClientError {
        let url = &self.url;
        let Some(error) = tls_error(error) else {
            let message = format!("no answer from the controller at {url}: {error}");
            return ClientError::Unreachable(
                OperationError::machine(message).hint("is it running, and is the address right?"),
            );
        };
        ClientError::Unreachable(match error {
            rustls::Error::InvalidCertificate(reason) => {
                let fault = CertificateFault::from(reason);
                let hint = remedy(&fault);
                OperationError::machine(format_args!("the controller at {url} is not trusted: {fault}"))
                    .hint(hint)
            }
            rustls::Error::InvalidMessage(_) => {
                OperationError::machine(format_args!("the controller at {url} does not answer with TLS"))
                    .hint("is the port right? A controller speaks TLS with --tls-certificate and --tls-key")
            }
            other => OperationError::machine(format_args!("no TLS with the controller at {url}: {other}"))
                .hint("`openssl s_client -connect ADDRESS:PORT` shows what it offers"),
        })
    }
}

/// Returns the error of TLS behind one of a request.
fn tls_error(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Returns what helps against a certificate that is refused.
fn remedy(fault: &CertificateFault) -> &'static str {
    match fault {
        CertificateFault::OtherName { .. } => {
            "use a name of the certificate in --controller, or give the controller a certificate for this one"
        }
        CertificateFault::Untrusted | CertificateFault::Other(_) => {
            "name the file of its authority: --ca-file; the controller's certificate file has to have those between, too"
        }
        CertificateFault::Expired => {
            "renew the files of --tls-certificate and --tls-key; the controller reads them again by itself"
        }
        CertificateFault::NotYetValid => "is the clock of this machine right?",
    }
}

/// A part of a path or a query.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_loopback() {
        for host in ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["localhost.example", "127.0.0.1.example", "10.0.0.1", "[::2]", "notlocalhost", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
