//! Webhooks: changes of alerts, posted to addresses of the operator's choice.
//!
//! **At least once.** Changes are a part of the history. Each receiver has a file with the position up to which it took
//! them, written after its answer; what comes after that position is posted again, also by the next run.
//!
//! **Apart from decisions.** Each receiver has a thread, which takes the lock of the cluster to copy some alerts and for
//! nothing else. One that does not answer holds its thread and one copy.

use crate::client::{Trusted, http_agent, is_loopback};
use api::{AlertPost, Cluster, hash_of_secret, random_number};
use clap::Args;
use cli::terminal::{Talk, talk};
use machine::whole_file;
use model::OperationError;
use operation::files::read_text;
use ring::hmac;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::Agent;
use ureq::http::Uri;
use ureq::http::uri::Scheme;

/// Receivers of a controller.
const RECEIVERS_MAX: usize = 8;
/// Events of one post.
const EVENTS_MAX: usize = 100;
/// Time for a receiver to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between looks for news, and for the end of the service.
const LOOK: Duration = Duration::from_millis(250);
/// Waits between attempts: the first, and the longest.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Least length of the secret, bytes: that of a random word of 80 bits.
const SECRET_MIN: usize = 16;

/// Receivers of alerts.
#[derive(Debug, Args)]
pub(super) struct WebhookArgs {
    /// Post changes of alerts to this address; may be given several times.
    #[arg(long, value_name = "URL", requires = "webhook_secret")]
    webhook: Vec<String>,
    /// File with the secret by which posts are signed.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    webhook_secret: Option<PathBuf>,
    /// Authorities that may certify receivers of alerts, in PEM; otherwise those of this machine.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    webhook_ca_file: Option<PathBuf>,
}

/// An address to which alerts are posted.
pub(super) struct Receiver {
    url: String,
    agent: Agent,
    key: Arc<hmac::Key>,
}

/// Progress of a receiver, as a file.
#[derive(Serialize, Deserialize)]
struct Progress {
    /// Position in the history up to which it took alerts.
    delivered: u64,
}

impl WebhookArgs {
    /// Returns the receivers of the command line.
    ///
    /// # Errors
    /// If an address or the secret cannot be used.
    pub(super) fn receivers(&self, has_plain_http: bool) -> Result<Vec<Receiver>, OperationError> {
        let Some(file) = &self.webhook_secret else { return Ok(Vec::new()) };
        let text = read_text(file, "secret of webhooks")?;
        let secret = text.trim();
        if secret.len() < SECRET_MIN {
            let message =
                format!("{}: expected a secret of at least {SECRET_MIN} characters", file.display());
            return Err(OperationError::input(message).hint("openssl rand -hex 32 makes one"));
        }
        if self.webhook.len() > RECEIVERS_MAX {
            let count = self.webhook.len();
            return Err(OperationError::input(format_args!(
                "--webhook: {count} receivers; at most {RECEIVERS_MAX}"
            )));
        }
        let key = Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()));
        let mut known = BTreeSet::new();
        let mut receivers = Vec::new();
        for url in &self.webhook {
            if !known.insert(url) {
                return Err(OperationError::input(format_args!("--webhook {url}: it is given twice")));
            }
            receivers.push(Receiver {
                url: url.clone(),
                agent: self.agent(url, has_plain_http)?,
                key: Arc::clone(&key),
            });
        }
        Ok(receivers)
    }

    /// Builds the client of a receiver.
    fn agent(&self, url: &str, has_plain_http: bool) -> Result<Agent, OperationError> {
        let malformed = || {
            OperationError::input(format_args!(
                "--webhook '{url}': expected https://NAME/PATH or http://ADDRESS/PATH"
            ))
        };
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        let host = uri.host().ok_or_else(malformed)?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => {
                let found = self.webhook_ca_file.clone();
                let file = found.map_or_else(|| certificates::system_authorities("--webhook-ca-file"), Ok)?;
                Ok(http_agent(Some(&Trusted::read(file)?)))
            }
            Some(scheme) if *scheme == Scheme::HTTP => {
                if !has_plain_http && !is_loopback(host) {
                    let message = format!("--webhook '{url}': others could read alerts on the way");
                    return Err(OperationError::input(message)
                        .hint("use https://; on a network of which every machine is trusted, --plain-http"));
                }
                Ok(http_agent(None))
            }
            _ => Err(malformed()),
        }
    }
}

/// Posts alerts to receivers from now on. A receiver that is new gets those from now on.
///
/// # Errors
/// If the progress of one cannot be read or written.
pub(super) fn start_webhooks(
    receivers: Vec<Receiver>,
    cluster: &Arc<Cluster>,
    folder: &Path,
) -> Result<(), OperationError> {
    let present = cluster.position().unwrap_or(0);
    for receiver in receivers {
        // The address may have a secret in it.
        let file = folder.join(format!("webhook-{}.json", &hash_of_secret(&receiver.url)[..16]));
        let failed = |error: &dyn std::fmt::Display| {
            OperationError::machine(format_args!("{}: {error}", file.display()))
        };
        let delivered = match std::fs::read(&file) {
            Ok(text) => {
                let progress: Progress = serde_json::from_slice(&text).map_err(|error| {
                    failed(&error).hint("delete it: the receiver then gets alerts from now on")
                })?;
                // A history that was restored is shorter.
                progress.delivered.min(present)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => present,
            Err(error) => return Err(failed(&error)),
        };
        write(&file, delivered).map_err(|error| failed(&error))?;
        let courier = Courier { receiver, cluster: Arc::clone(cluster), file, delivered };
        std::thread::Builder::new()
            .name("webhook".to_owned())
            .spawn(move || courier.run())
            .map_err(OperationError::machine)?;
    }
    Ok(())
}

fn write(file: &Path, delivered: u64) -> std::io::Result<()> {
    whole_file::write(file, &serde_json::to_vec(&Progress { delivered }).expect("plain data"))
}

/// The thread of a receiver.
struct Courier {
    receiver: Receiver,
    cluster: Arc<Cluster>,
    file: PathBuf,
    delivered: u64,
}

impl Courier {
    fn run(mut self) {
        let mut read = self.delivered;
        let mut failures = 0u32;
        // The end of the service ends it: what is left is posted by the next run.
        while let Some(present) = self.cluster.position() {
            if present == read {
                std::thread::sleep(LOOK);
                continue;
            }
            let (alerts, has_missed) = self.cluster.alerts_after(read, EVENTS_MAX);
            let Some(last) = alerts.last().map(|alert| alert.seq) else {
                read = present;
                continue;
            };
            let post = AlertPost { cluster: self.cluster.identity(), alerts, has_missed };
            match self.receiver.post(&post) {
                Ok(()) => {
                    if std::mem::take(&mut failures) > 0 {
                        talk(Talk::Note, format!("webhook {}: it takes alerts again", self.receiver.name()));
                    }
                    read = last;
                    self.delivered = last;
                    if let Err(error) = write(&self.file, last) {
                        // They come again after a restart.
                        talk(Talk::Warning, format!("{}: {error}", self.file.display()));
                    }
                }
                Err(reason) => {
                    if failures == 0 {
                        let name = self.receiver.name();
                        talk(
                            Talk::Warning,
                            format!("webhook {name}: {reason}; alerts are kept and sent again"),
                        );
                    }
                    failures = failures.saturating_add(1);
                    self.wait(wait_after(failures));
                }
            }
        }
    }

    /// Waits, though not beyond the end of the service.
    fn wait(&self, wait: Duration) {
        let mut left = wait;
        while !left.is_zero() && self.cluster.position().is_some() {
            let now = left.min(LOOK);
            std::thread::sleep(now);
            left -= now;
        }
    }
}

/// Returns the wait after so many failures: twice as long each time, and shorter by chance, so that receivers of many
/// controllers do not hear from all at once.
fn wait_after(failures: u32) -> Duration {
    let longest = WAIT_MIN.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(WAIT_MAX);
    let chance = random_number().unwrap_or(0) as f64 / u64::MAX as f64;
    longest.mul_f64(0.5 + chance / 2.0)
}

impl Receiver {
    /// Returns the address without its path, which may have a secret.
    fn name(&self) -> String {
        let uri: Option<Uri> = self.url.parse().ok();
        uri.and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default()
    }

    /// Posts alerts.
    ///
    /// # Errors
    /// The reason why they were not taken.
    fn post(&self, post: &AlertPost) -> Result<(), String> {
        let body = serde_json::to_string(post).expect("plain data");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("tailwright-signature", signature(&self.key, now, &body))
            .config()
            .timeout_global(Some(TIMEOUT))
            .build();
        match request.send(body) {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(format!("it answered with HTTP {}", answer.status().as_u16())),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the signature of a body at a time, seconds since 1970.
fn signature(key: &hmac::Key, now: u64, body: &str) -> String {
    let tag = hmac::sign(key, format!("{now}.{body}").as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={now},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_longest() {
        for failures in 1..40 {
            let longest = Duration::from_secs(300.min(1 << (failures - 1).min(20)));
            let wait = wait_after(failures);
            assert!((longest / 2..=longest).contains(&wait), "{failures}: {wait:?}");
        }
    }

    /// RFC 4231, 4.3, with the text in place of time and body.
    #[test]
    fn the_signature_is_an_hmac() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let tag = hmac::sign(&key, b"what do ya want for nothing?");
        assert_eq!(tag.as_ref()[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        let signed = signature(&key, 7, "{}");
        assert!(signed.starts_with("t=7,v1=") && signed.len() == 7 + 64, "{signed}");
        assert_ne!(signed, signature(&key, 7, "{ }"));
    }
}
