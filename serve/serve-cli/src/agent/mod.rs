//! `tailwright agent`: keeps the proxies and links of a host to the policies of a controller.

mod enforcer;
mod proxies;
mod proxy_lock;
mod stop;

use crate::client::{Client, ClientError, TransportArgs};
use agent::{
    AgentAnswer, AgentMachine, AgentMemory, AgentMode, AgentReport, AgentStep, Assignment, EnforceError,
};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::terminal::{Talk, talk};
use enforce::network::StateStore;
use enforcer::Enforcer;
use machine::folder_lock::FolderLock;
use machine::whole_file;
use model::OperationError;
use proxies::ProxySupervision;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::StatusCode;

const HELP: &str = "\
Examples:
  tailwright agent --controller https://host:7070 --token-file a.token
      say what would change, and change nothing
  tailwright agent --controller URL --token-file a.token --ca-file ca.pem
      the controller's certificate is by this authority
  tailwright agent --controller URL --token-file a.token --enforce
      enforce
  tailwright agent --controller URL --token-file a.token --enforce --links
      enforce, also on the host's links
  tailwright agent --controller URL --token-file a.token --enforce \\
      --run-proxies hosts.toml
      enforce, and run the proxies of the host's servers
  tailwright agent --stop-proxies
      end the proxies that the agent started, after its own end

The token says which host this is; an operator issues it. Proxies of the host's servers have their control sockets in \
--state. With --run-proxies the agent starts those that do not run, and again after they have ended. The agent may end in any way at any time: proxies keep \
their policies, also without a controller and after a restart. With --links, as root, it limits the host's links, too, \
where the controller decides that agents do.

Exit codes: 0 stopped by a signal; 2 bad input, or the token of another cluster; 3 the machine lacks something.";

/// Time that the controller may wait for news before it answers.
const WAIT_S: u64 = 5;
/// Pause after a request without an answer, and the first one after an assignment that was not enforced.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest pause after an assignment that was not enforced; each is twice the one before.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// File of what the agent remembers.
const MEMORY: &str = "agent.json";

/// Keep a host to the policies of a controller; without --enforce, only say what would change.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct AgentArgs {
    /// Address of the controller.
    #[arg(long, value_name = "URL", required_unless_present = "stop_proxies")]
    controller: Option<String>,
    /// File with a token: that of this host.
    #[arg(long, value_name = "FILE", required_unless_present = "stop_proxies")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    transport: TransportArgs,
    /// Enforce what the controller decides.
    #[arg(long)]
    enforce: bool,
    /// Limit the host's links, too (requires root).
    #[arg(long)]
    links: bool,
    /// Run the proxies of this host's servers in a hosts file: start those that do not run, also after they have ended.
    #[arg(long, value_name = "HOSTS.toml")]
    run_proxies: Option<PathBuf>,
    /// End the proxies that an agent started, and nothing else.
    #[arg(long, conflicts_with_all = ["controller", "token_file", "enforce", "links", "run_proxies"])]
    stop_proxies: bool,
    /// Folder of the state: the proxies' control sockets.
    #[arg(long, value_name = "FOLDER", default_value = StateStore::DEFAULT)]
    state: PathBuf,
    /// Folder of what the agent remembers, also over reboots.
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/tailwright")]
    memory: PathBuf,
}

pub fn run(args: &AgentArgs) -> Result<VerbAnswer, OperationError> {
    let (Some(controller), Some(token_file)) = (&args.controller, &args.token_file) else {
        return stop_proxies(args);
    };
    let client = Client::new(controller, token_file, &args.transport)?;
    let folder = args.memory.as_path();
    let failed =
        |error: std::io::Error| OperationError::machine(format_args!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let _lock = FolderLock::take(folder)
        .map_err(|error| failed(error).hint("another agent runs; stop that one first"))?;
    let memory = read_memory(&folder.join(MEMORY))?;
    let begin = |hosts: &PathBuf| ProxySupervision::begin(hosts, &args.state, folder);
    let proxies = args.run_proxies.as_ref().map(begin).transpose()?;
    let mode = if args.enforce { AgentMode::Applying } else { AgentMode::Advising };
    let mut host = Host {
        client,
        enforcer: Enforcer::new(&args.state, args.links),
        memory: folder.join(MEMORY),
        said: String::new(),
        pause: PAUSE,
    };
    let abilities = host.enforcer.abilities();
    let (mut machine, mut step) = AgentMachine::start(mode, memory, abilities);
    loop {
        step = match step {
            AgentStep::Save(memory) => {
                host.save(&memory)?;
                machine.saved()
            }
            AgentStep::Enforce(assignment) => machine.enforced(host.enforce(&assignment)),
            AgentStep::Advise(assignment) => {
                let advice = host.enforcer.advise(&assignment);
                let advice = advice.map_err(|error| match error {
                    EnforceError::Refused(reason) | EnforceError::Unavailable(reason) => reason,
                });
                host.say(
                    advice.as_ref().map_or_else(Clone::clone, |advice| format!("advice: {}", advice.text)),
                );
                machine.advised(advice, assignment.epoch)
            }
            AgentStep::Report(mut report) => {
                report.observations = host.enforcer.observe(&machine);
                report.warnings = proxies.as_ref().map(ProxySupervision::warnings).unwrap_or_default();
                let answer = host.report(report)?;
                let name = answer.as_ref().map(|answer| answer.host.clone());
                let next = machine.answered(answer, host.enforcer.abilities());
                let is_foreign = matches!(next, AgentStep::Stop(_));
                if let (Some(proxies), Some(name), false) = (&proxies, name, is_foreign) {
                    proxies.host_is(&name);
                }
                next
            }
            AgentStep::Stop(reason) => {
                return Err(OperationError::input(reason)
                    .hint("enrol this host there: remove agent.json in the folder of --memory, after the proxies have no policy"));
            }
        }
    }
}

/// Ends the proxies that an agent started, which must have ended before: it would start them again.
fn stop_proxies(args: &AgentArgs) -> Result<VerbAnswer, OperationError> {
    let _lock = match FolderLock::take(&args.memory) {
        Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
            let busy = format!("{}: an agent runs, which would start them again", args.memory.display());
            return Err(OperationError::machine(busy).hint("stop it first"));
        }
        lock => lock,
    };
    stop::stop(&args.state)
}

/// The host of an agent.
struct Host {
    client: Client,
    enforcer: Enforcer,
    memory: PathBuf,
    /// The latest remark, which is not repeated.
    said: String,
    /// Pause after an assignment that is not enforced.
    pause: Duration,
}

impl Host {
    fn save(&self, memory: &AgentMemory) -> Result<(), OperationError> {
        let text = serde_json::to_string(memory).expect("memory is plain data");
        whole_file::write(&self.memory, text.as_bytes())
            .map_err(|error| OperationError::machine(format_args!("{}: {error}", self.memory.display())))
    }

    fn enforce(&mut self, assignment: &Assignment) -> Result<(), EnforceError> {
        let outcome = self.enforcer.enforce(assignment);
        match &outcome {
            Ok(is_change) => {
                self.pause = PAUSE;
                if *is_change {
                    self.say(format!("epoch {}: enforced", assignment.epoch));
                }
                return Ok(());
            }
            Err(EnforceError::Refused(reason)) => {
                self.say(format!("epoch {}: not enforced: {reason}", assignment.epoch));
                self.pause = (self.pause * 2).min(PAUSE_MAX);
            }
            Err(EnforceError::Unavailable(reason)) => {
                self.say(format!("epoch {}: not enforced yet: {reason}", assignment.epoch));
                self.pause = PAUSE;
            }
        }
        // The controller answers at once while something is wanted.
        std::thread::sleep(self.pause);
        outcome.map(drop)
    }

    /// Reports, and returns the answer; none if there was none in time.
    fn report(&mut self, mut report: AgentReport) -> Result<Option<AgentAnswer>, OperationError> {
        let path = format!("/v1/agent/report?wait_s={WAIT_S}");
        let mut answer = self.client.post(&path, &report, None, Duration::from_secs(WAIT_S));
        if let Err(ClientError::Refused(StatusCode::UNPROCESSABLE_ENTITY, _)) = answer
            && !(report.observations.is_empty() && report.warnings.is_empty())
        {
            // A controller of the first version knows no observations and no warnings.
            report.observations.clear();
            report.warnings.clear();
            answer = self.client.post(&path, &report, None, Duration::from_secs(WAIT_S));
        }
        match answer {
            Ok(answer) => Ok(Some(answer)),
            // A host may be described later, a token issued again, and a controller restarted.
            Err(error) => {
                let is_foreign = matches!(&error, ClientError::Refused(status, _) if status.as_u16() == 403);
                let error = OperationError::from(error);
                self.say(error.to_string());
                if is_foreign {
                    return Err(error);
                }
                if self.client.renew_authorities() {
                    self.say("the trusted authorities have changed".to_owned());
                }
                std::thread::sleep(PAUSE);
                Ok(None)
            }
        }
    }

    fn say(&mut self, text: String) {
        if self.said != text {
            talk(Talk::Note, format!("agent: {text}"));
            self.said = text;
        }
    }
}

fn read_memory(path: &Path) -> Result<AgentMemory, OperationError> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| {
            OperationError::machine(format_args!("{}: it is damaged: {error}", path.display()))
                .hint("remove it: the proxies keep their policies, and the controller sends the latest")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(AgentMemory::default()),
        Err(error) => Err(OperationError::machine(format_args!("{}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::{Abilities, ServerObservation};
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    /// Answers one request as a controller of the first version, which refuses unknown fields. Returns its body.
    fn answer_as_first_version(listener: &TcpListener) -> String {
        let (stream, _) = listener.accept().expect("an agent");
        let mut lines = BufReader::new(&stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).expect("a head");
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).expect("a body");
        let body = String::from_utf8(body).expect("JSON");
        let (status, answer) = if body.contains("observations") {
            ("422 Unprocessable Entity", "unknown field `observations`")
        } else {
            ("200 OK", r#"{"cluster":"c","ticket":{"run":1,"number":2},"assignment":null}"#)
        };
        let length = answer.len();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        (&stream).write_all((head + answer).as_bytes()).expect("the agent reads");
        body
    }

    #[test]
    fn a_controller_of_the_first_version_gets_no_observations() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it listens"));
        let token = std::env::temp_dir().join(format!("tailwright-agent-{}.token", std::process::id()));
        std::fs::write(&token, "abc").expect("a file");
        let client = Client::new(&url, &token, &TransportArgs::default()).expect("a token");
        std::fs::remove_file(&token).expect("ours");
        let mut host = Host {
            client,
            enforcer: Enforcer::new(Path::new("nowhere"), false),
            memory: PathBuf::new(),
            said: String::new(),
            pause: PAUSE,
        };
        let report = AgentReport {
            cluster: None,
            ticket: None,
            mode: AgentMode::Applying,
            abilities: Abilities::default(),
            applied: 7,
            refused: None,
            advice: None,
            observations: vec![ServerObservation::default()],
            warnings: vec!["no proxy".to_owned()],
        };
        let controller = std::thread::spawn(move || [(); 2].map(|()| answer_as_first_version(&listener)));
        let answer = host.report(report).expect("no end").expect("an answer");
        assert_eq!((answer.cluster.as_str(), answer.ticket.number), ("c", 2));
        let [first, second] = controller.join().expect("no panic");
        assert!(first.contains("observations") && !second.contains("observations"), "{second}");
        assert!(second.contains("\"applied\": 7"), "{second}");
    }
}
