//! HTTP to a controller, with a token.

use model::OperationError;
use operation::files::read_text;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::Duration;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

/// Time in which a controller begins to answer, beyond a wait that was asked for.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to the controller at an address.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    url: String,
    token: String,
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
    /// Reads the token of a file.
    pub(crate) fn new(url: &str, token_file: &Path) -> Result<Self, OperationError> {
        let token = read_text(token_file, "token")?.trim().to_owned();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(OperationError::input(format_args!("{}: expected a token", token_file.display()))
                .hint("tailwright ctl token prints one"));
        }
        if !url.starts_with("http://") {
            return Err(OperationError::input(format_args!("'{url}': expected http://ADDRESS:PORT")));
        }
        let configuration = Agent::config_builder().http_status_as_error(false).build();
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { agent: configuration.into(), url, token })
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
        let message = format!("no answer from the controller at {}: {error}", self.url);
        ClientError::Unreachable(
            OperationError::machine(message).hint("is it running, and is the address right?"),
        )
    }
}
