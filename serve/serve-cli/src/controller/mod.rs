//! `tailwright controller`: runs the controller of a cluster from a folder.

mod webhook;

use api::{
    CertificateNews, Cluster, ServiceNews, ServiceSettings, Tls, TlsFiles, hash_of_secret, new_secret,
    random_number,
};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::terminal::{Talk, talk};
use controller::{Command, Controller, Event, Role, TokenRecord};
use machine::whole_file;
use model::OperationError;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use store::{DATABASE, Store, StoreError, back_up_folder};
use units::{Nanos, plural};
use webhook::{WebhookArgs, start_webhooks};

const HELP: &str = "\
Examples:
  tailwright controller cluster --listen 127.0.0.1:7070
      serve until SIGTERM; the first start writes cluster/operator.token
  tailwright controller cluster --tls-certificate full.pem --tls-key key.pem
      serve with TLS; renewed files are read by themselves
  tailwright controller cluster --webhook https://a.example --webhook-secret key
      post changes of alerts there
  tailwright controller cluster --backup cluster-monday.db
      copy the history, also while the controller runs
  tailwright controller restored --restore cluster-monday.db
      begin a folder with a backup; then start the controller on it

The folder has the history of the cluster (history.db, SQLite) and is used by one controller at a time. It may end in any \
way at any time: what was answered is stored. docs/guides/run-as-a-service.md has the whole way.

Exit codes: 0 stopped by a signal, or done; 2 bad input; 3 the folder is in use or damaged, or the address is not available.";

/// Token of the first operator, in the folder.
const OPERATOR_TOKEN: &str = "operator.token";

/// Run the controller of a cluster: decides which workloads are promised what, and tells agents what to enforce.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ControllerArgs {
    /// Folder of the cluster's history; created if it does not exist.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:7070",
        help = "Where to listen: address and port"
    )]
    listen: SocketAddr,
    /// Certificate of the service in PEM, followed by those between it and its authority; the service then speaks TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// Key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Use HTTP without encryption also over a network, where others can read tokens.
    #[arg(long, conflicts_with = "tls_certificate")]
    plain_http: bool,
    #[command(flatten)]
    webhooks: WebhookArgs,
    /// Time without a report after which an agent is silent.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    silence_max: Nanos,
    /// Write a copy of the history to a new file, and end.
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
    /// Begin an empty folder with a backup, and end.
    #[arg(long, value_name = "FILE", conflicts_with = "backup")]
    restore: Option<PathBuf>,
}

pub fn run(args: &ControllerArgs) -> Result<VerbAnswer, OperationError> {
    if let Some(to) = &args.backup {
        back_up_folder(&args.folder, to).map_err(unusable)?;
        return Ok(VerbAnswer::Yes);
    }
    if let Some(from) = &args.restore {
        restore(&args.folder, from)?;
        return Ok(VerbAnswer::Yes);
    }
    let tls = identity(args)?;
    let receivers = args.webhooks.receivers(args.plain_http)?;
    let (mut store, events) = Store::open(&args.folder).map_err(unusable)?;
    let run =
        random_number().map_err(|error| OperationError::machine(format_args!("/dev/urandom: {error}")))?;
    let mut controller = Controller::new(run);
    for event in &events {
        controller.apply(event).map_err(|reason| inconsistent(&args.folder, event.seq, &reason))?;
    }
    if let Some(event) = controller.founding(&format!("{run:016x}")) {
        append(&mut controller, &mut store, event)?;
    }
    ensure_operator(&args.folder, &mut controller, &mut store)?;
    talk(
        Talk::Note,
        format!("{}: {} of history", args.folder.display(), plural(events.len() as u64, "event")),
    );
    let cluster = Arc::new(Cluster::new(controller, store, &args.folder));
    start_webhooks(receivers, &cluster, &args.folder)?;
    let silence_max = Duration::from_nanos(args.silence_max.0);
    let settings = ServiceSettings { listen: args.listen, tls, silence_max };
    api::serve(cluster, settings, tell).map_err(|error| {
        OperationError::machine(format_args!("{}: {error}", args.listen)).hint("choose another --listen")
    })?;
    Ok(VerbAnswer::Yes)
}

/// Returns certificate and key of the service; none where it speaks HTTP without TLS.
fn identity(args: &ControllerArgs) -> Result<Option<Tls>, OperationError> {
    if let (Some(certificate), Some(key)) = (&args.tls_certificate, &args.tls_key) {
        return Tls::open(TlsFiles { certificate: certificate.clone(), key: key.clone() }).map(Some);
    }
    if args.plain_http || args.listen.ip().is_loopback() {
        return Ok(None);
    }
    let message = format!("--listen {}: others could read tokens on the way", args.listen);
    Err(OperationError::input(message)
        .hint("name --tls-certificate and --tls-key; on a network of which every machine is trusted, or behind a proxy with TLS, --plain-http"))
}

fn tell(news: ServiceNews) {
    match news {
        ServiceNews::Listening(address) => talk(Talk::Note, format!("controller: listening on {address}")),
        ServiceNews::Certificate(news @ CertificateNews::Renewed { .. }) => {
            talk(Talk::Note, format!("controller: {news}"));
        }
        ServiceNews::Certificate(news) => talk(Talk::Warning, format!("controller: {news}")),
    }
}

/// Issues a first operator's token where there is none, and writes it into the folder before it is stored as valid.
fn ensure_operator(
    folder: &Path,
    controller: &mut Controller,
    store: &mut Store,
) -> Result<(), OperationError> {
    if controller.state().tokens().any(|token| token.role == Role::Operator) {
        return Ok(());
    }
    let path = folder.join(OPERATOR_TOKEN);
    let failed = |error: std::io::Error| OperationError::machine(format_args!("{}: {error}", path.display()));
    let secret = new_secret().map_err(failed)?;
    write_private(&path, &format!("{secret}\n")).map_err(failed)?;
    let token =
        TokenRecord { name: "operator".to_owned(), role: Role::Operator, hash: hash_of_secret(&secret) };
    let event = controller.decide(&Command::IssueToken(token)).map_err(OperationError::input)?;
    append(controller, store, event)?;
    talk(Talk::Note, format!("the operator's token is in {}", path.display()));
    Ok(())
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let _ = std::fs::remove_file(path);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn append(controller: &mut Controller, store: &mut Store, event: Event) -> Result<(), OperationError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    let recorded = store.append(at_ns, event).map_err(unusable)?;
    controller.apply(&recorded).map_err(OperationError::machine)
}

/// Excess of epochs after a restore, beyond any that hosts can have seen since the backup.
const RESTORED_EPOCHS: u64 = 1 << 40;

/// Copies a backup into a folder without a history. What hosts have confirmed since does not count.
fn restore(folder: &Path, from: &Path) -> Result<(), OperationError> {
    let to = folder.join(DATABASE);
    if to.exists() {
        return Err(OperationError::input(format_args!("{}: there is a history", to.display()))
            .hint("restore into another folder"));
    }
    let content = std::fs::read(from)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", from.display())))?;
    let failed = |error: std::io::Error| OperationError::machine(format_args!("{}: {error}", to.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    whole_file::write(&to, &content).map_err(failed)?;
    let (mut store, events) = Store::open(folder).map_err(unusable)?;
    let mut controller = Controller::new(0);
    for event in &events {
        controller.apply(event).map_err(|reason| inconsistent(folder, event.seq, &reason))?;
    }
    append(&mut controller, &mut store, Event::Restored { epoch_offset: RESTORED_EPOCHS })?;
    talk(
        Talk::Note,
        format!(
            "restored {}; start: tailwright controller {}",
            plural(events.len() as u64, "event"),
            folder.display()
        ),
    );
    Ok(())
}

fn unusable(error: StoreError) -> OperationError {
    let described = OperationError::machine(&error.message);
    OperationError { hint: error.hint, ..described }
}

fn inconsistent(folder: &Path, seq: u64, reason: &str) -> OperationError {
    OperationError::machine(format_args!(
        "{}: event {seq} does not follow from those before: {reason}",
        folder.display()
    ))
    .hint("use the version of the program that wrote it, or restore a backup")
}
