//! `tailwright ctl`: the interface of a controller on the command line.

mod pages;
mod text;

use crate::client::{Client, TransportArgs, escaped};
use api::{
    AgentDocument, ClientRequest, DecisionDocument, DecisionPage, EventPage, IssuedToken, ObservationPage,
    RenewalQuestion, ServerDocument, TokenDocument, TokenRequest, TraceDocument, WorkloadDocument,
    WorkloadPage, WorkloadQuestion, new_secret,
};
use clap::{Args, Subcommand, ValueEnum};
use cli::exit::VerbAnswer;
use cli::terminal;
use controller::{ClassDescription, ClassesDescription, Role};
use model::{Cluster, OperationError, Slo};
use operation::files::read_text;
use pages::{each_page, print_pages};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use units::Nanos;

const HELP: &str = "\
Examples:
  tailwright ctl describe --class-file cluster.toml --hosts hosts.toml
  tailwright ctl token store-1 --for-agent store-1 > store-1.token
  tailwright ctl request mail '99% < 50ms' mail.csv.gz --address 10.0.0.1
  tailwright ctl list workloads
  tailwright ctl renew mail
  tailwright ctl remove mail

Exit codes: 0 yes or done; 1 the answer is no; 2 bad input; 3 no answer from the controller.";

const DESCRIBE_HELP: &str = "\
Examples:
  tailwright ctl describe --class-file cluster.toml --hosts hosts.toml
  tailwright ctl describe --hosts hosts.toml --assume-network

Of the cluster file, classes and the safety margin are used; servers come from the hosts file, where a server of class ssd is \
named ssd-1, ssd-2 and so on.

Exit codes: 0 done; 2 bad input, or promises rest on what would change; 3 no answer from the controller.";

const TOKEN_HELP: &str = "\
Examples:
  tailwright ctl token store-1 --for-agent store-1 > store-1.token
  tailwright ctl token shop --for-tenant shop > shop.token
  tailwright ctl token prometheus --for-metrics > metrics.token
  tailwright ctl token shop --revoke

The controller stores a hash: the token is printed once.

Exit codes: 0 done; 2 bad input; 3 no answer from the controller.";

const REQUEST_HELP: &str = "\
Examples:
  tailwright ctl request mail '99% < 50ms' mail.csv.gz --address 10.0.0.1
  tailwright ctl request mail '99% < 50ms' mail.csv --address 10.0.0.1 --what-if

Exit codes: 0 admitted and enforced (with --what-if or --no-wait: admitted); 1 not admitted, or not enforced within ten \
seconds; 2 bad input; 3 no answer from the controller.";

const RENEW_HELP: &str = "\
Examples:
  tailwright ctl renew mail
      promise mail its SLO also for what its clients sent
  tailwright ctl renew mail --give-back --what-if
      say what they did not use, and which limits would be enough

The promise is decided again by the burst curves of what the clients sent, a week at most. With no, it stays as it was.

Exit codes: 0 renewed and enforced (with --what-if or --no-wait: renewed); 1 not renewed, or not enforced within ten \
seconds; 2 bad input; 3 no answer from the controller.";

const REMOVE_HELP: &str = "\
Examples:
  tailwright ctl remove mail

Exit codes: 0 done; 2 there is no such workload; 3 no answer from the controller.";

const LIST_HELP: &str = "\
Examples:
  tailwright ctl list workloads
  tailwright ctl list observations
  tailwright ctl list decisions --after 1000

The answer is JSON, of all pages of the controller. Decisions and events are the history, oldest first.

Exit codes: 0 done; 2 bad input; 3 no answer from the controller.";

/// Ask a controller for guarantees, and operate it.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct CtlArgs {
    #[command(subcommand)]
    command: CtlCommand,
}

#[derive(Debug, Subcommand)]
enum CtlCommand {
    /// Describe classes of servers, hosts and servers (operators)
    Describe(DescribeArgs),
    /// Issue a token and print it, or revoke one (operators)
    Token(TokenArgs),
    /// Ask for a guarantee
    Request(RequestArgs),
    /// Decide on a guarantee again, by what its clients sent
    Renew(RenewArgs),
    /// Give up a guarantee
    Remove(RemoveArgs),
    /// List what the controller knows
    List(ListArgs),
}

#[derive(Debug, Args)]
struct Connection {
    /// Address of the controller.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    controller: String,
    /// File with a token.
    #[arg(long, value_name = "FILE", default_value = "operator.token")]
    token_file: PathBuf,
    #[command(flatten)]
    transport: TransportArgs,
}

#[derive(Debug, Args)]
#[command(after_help = DESCRIBE_HELP)]
struct DescribeArgs {
    /// Cluster file with the classes of servers.
    #[arg(long, value_name = "CLUSTER.toml", required_unless_present = "hosts")]
    class_file: Option<PathBuf>,
    #[arg(long, value_name = "HOSTS.toml", help = "Where servers and clients are")]
    hosts: Option<PathBuf>,
    /// Limits of the network stages are kept by other means; every decision then says that it assumes so.
    #[arg(long, requires = "hosts")]
    assume_network: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = TOKEN_HELP)]
#[group(id = "role", required = true, multiple = false, args = ["for_agent", "for_tenant", "for_metrics", "for_operator", "revoke"])]
struct TokenArgs {
    /// Name by which the token is revoked.
    #[arg(value_name = "NAME")]
    name: String,
    /// For the agent of this host.
    #[arg(long, value_name = "HOST")]
    for_agent: Option<String>,
    /// For this tenant.
    #[arg(long, value_name = "NAME")]
    for_tenant: Option<String>,
    /// For reading the metrics of the controller.
    #[arg(long)]
    for_metrics: bool,
    /// For an operator.
    #[arg(long)]
    for_operator: bool,
    /// Revoke it.
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = REQUEST_HELP)]
struct RequestArgs {
    /// Name of the workload within the tenant.
    #[arg(value_name = "NAME")]
    name: String,
    /// Wanted latency, such as '99.9% < 20ms'.
    #[arg(value_name = "SLO")]
    slo: Slo,
    /// Recorded requests of the workload.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Address of its client; may be given several times.
    #[arg(long, value_name = "ADDRESS", required = true)]
    address: Vec<String>,
    /// Export or volume that it uses.
    #[arg(long, value_name = "NAME")]
    export_name: Option<String>,
    /// Host of its clients, where agents limit the network.
    #[arg(long, value_name = "NAME")]
    client_host: Option<String>,
    /// The tenant, for operators.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Say what the answer would be, and change nothing.
    #[arg(long)]
    what_if: bool,
    /// Return once it is decided, enforced or not.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = RENEW_HELP)]
struct RenewArgs {
    /// Name of the workload.
    #[arg(value_name = "NAME")]
    name: String,
    /// Give back what its clients did not use, instead of asking for more.
    #[arg(long)]
    give_back: bool,
    /// Least time for which its clients were observed; a day with --give-back [default: 0s].
    #[arg(long, value_name = "TIME")]
    observed_min: Option<Nanos>,
    /// The tenant, for operators.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Say what the answer would be, and change nothing.
    #[arg(long)]
    what_if: bool,
    /// Return once it is decided, enforced or not.
    #[arg(long)]
    no_wait: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = REMOVE_HELP)]
struct RemoveArgs {
    /// Name of the workload.
    #[arg(value_name = "NAME")]
    name: String,
    /// The tenant, for operators.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = LIST_HELP)]
struct ListArgs {
    /// Things to list.
    #[arg(value_name = "WHAT")]
    what: Listed,
    /// Position in the history after which the list begins.
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,
    #[command(flatten)]
    connection: Connection,
}

/// Things that a controller lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Listed {
    Workloads,
    Servers,
    Agents,
    Tokens,
    Decisions,
    Events,
    Observations,
}

/// Wait for a workload to be enforced, seconds.
const WAIT_S: u64 = 10;
/// Time between two looks at a renewal that is on its way.
const POLL: Duration = Duration::from_millis(100);

pub fn run(args: &CtlArgs) -> Result<VerbAnswer, OperationError> {
    match &args.command {
        CtlCommand::Describe(args) => describe(args)?,
        CtlCommand::Token(args) => token(args)?,
        CtlCommand::Request(args) => return ask(args),
        CtlCommand::Renew(args) => return renew(args),
        CtlCommand::Remove(RemoveArgs { name, tenant, connection }) => {
            let client = connection.client()?;
            let tenant = tenant_of(&client, tenant.as_deref(), name)?;
            client.delete(&format!("/v1/workloads/{}/{}", escaped(&tenant), escaped(name)))?;
        }
        CtlCommand::List(args) => list(args)?,
    }
    Ok(VerbAnswer::Yes)
}

impl Connection {
    fn client(&self) -> Result<Client, OperationError> {
        Client::new(&self.controller, &self.token_file, &self.transport)
    }
}

fn list(args: &ListArgs) -> Result<(), OperationError> {
    let client = args.connection.client()?;
    let after = args.after;
    match args.what {
        Listed::Workloads => print_pages::<WorkloadPage>(&client, String::new())?,
        Listed::Servers => print(&client.get::<Vec<ServerDocument>>("/v1/servers", Duration::ZERO)?),
        Listed::Agents => print(&client.get::<Vec<AgentDocument>>("/v1/agents", Duration::ZERO)?),
        Listed::Tokens => print(&client.get::<Vec<TokenDocument>>("/v1/tokens", Duration::ZERO)?),
        Listed::Observations => print_pages::<ObservationPage>(&client, String::new())?,
        Listed::Decisions => print_pages::<DecisionPage>(&client, after.to_string())?,
        Listed::Events => print_pages::<EventPage>(&client, after.to_string())?,
    }
    Ok(())
}

fn describe(args: &DescribeArgs) -> Result<(), OperationError> {
    let client = args.connection.client()?;
    // Both are as they are now, or nothing is replaced: not what another operator writes while this reads files.
    let classes_tag = client.tag("/v1/classes")?;
    let hosts_tag = client.tag("/v1/hosts")?;
    if let Some(cluster) = &args.class_file {
        describe_classes(&client, classes_tag.as_deref(), cluster)?;
    }
    if let Some(hosts) = &args.hosts {
        let network = if args.assume_network { "assumed" } else { "agents" };
        let text = read_text(hosts, "hosts file")?;
        let path = format!("/v1/hosts?network={network}");
        client.put(&path, hosts_tag.as_deref(), "text/plain", &text)?;
    }
    Ok(())
}

fn print(document: &impl Serialize) {
    let text = serde_json::to_string_pretty(document).expect("a document is plain data");
    terminal::print(&(text + "\n"));
}

fn describe_classes(client: &Client, tag: Option<&str>, path: &Path) -> Result<(), OperationError> {
    let text = read_text(path, "cluster file")?;
    let cluster: Cluster = toml::from_str(&text).map_err(|error| {
        OperationError::input(format_args!("{}: {}", path.display(), error.to_string().trim_end()))
    })?;
    let mut classes = Vec::new();
    for class in cluster.servers {
        let file = path.parent().unwrap_or(Path::new("")).join(&class.storage);
        classes.push(ClassDescription { profile: read_text(&file, "device profile")?, class });
    }
    let described = ClassesDescription { safety_margin: cluster.safety_margin, classes };
    let text = serde_json::to_string(&described).expect("a description is plain data");
    Ok(client.put("/v1/classes", tag, "application/json", &text)?)
}

fn token(args: &TokenArgs) -> Result<(), OperationError> {
    let client = args.connection.client()?;
    if args.revoke {
        return Ok(client.delete(&format!("/v1/tokens/{}", escaped(&args.name)))?);
    }
    let role = match (&args.for_agent, &args.for_tenant) {
        (Some(host), _) => Role::Agent { host: host.clone() },
        (None, Some(tenant)) => Role::Tenant { tenant: tenant.clone() },
        (None, None) if args.for_metrics => Role::Metrics,
        (None, None) => Role::Operator,
    };
    let request = TokenRequest { name: args.name.clone(), role };
    let issued: IssuedToken = client.post("/v1/tokens", &request, None, Duration::ZERO)?;
    terminal::print(&format!("{}\n", issued.token));
    Ok(())
}

/// Sends the trace, asks, and waits until the workload is enforced.
fn ask(args: &RequestArgs) -> Result<VerbAnswer, OperationError> {
    let client = args.connection.client()?;
    let bytes = std::fs::read(&args.trace)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", args.trace.display())))?;
    let file = args.trace.file_name().unwrap_or_default().to_string_lossy();
    let of_tenant =
        args.tenant.as_ref().map_or_else(String::new, |tenant| format!("&tenant={}", escaped(tenant)));
    let path = format!("/v1/traces?file={}{of_tenant}", escaped(&file));
    let trace: TraceDocument = client.post_bytes(&path, &bytes)?;
    let question = WorkloadQuestion {
        tenant: args.tenant.clone(),
        name: args.name.clone(),
        slo: args.slo.to_string(),
        trace: trace.trace,
        clients: vec![ClientRequest {
            host: args.client_host.clone(),
            address: args.address.clone(),
            export: args.export_name.clone(),
        }],
    };
    if args.what_if {
        let decision: DecisionDocument = client.post("/v1/what-if", &question, None, Duration::ZERO)?;
        terminal::print(&text::decision(&decision, true));
        return Ok(answer_of(decision.answer == "admitted"));
    }
    let key = new_secret().map_err(OperationError::machine)?;
    let decision: DecisionDocument = client.post("/v1/workloads", &question, Some(&key), Duration::ZERO)?;
    let Some(workload) = decision.workload.as_ref().filter(|_| decision.answer == "admitted") else {
        terminal::print(&text::decision(&decision, false));
        return Ok(VerbAnswer::No);
    };
    if args.no_wait {
        terminal::print(&text::decision(&decision, false));
        return Ok(VerbAnswer::Yes);
    }
    let place =
        format!("/v1/workloads/{}/{}?wait_s={WAIT_S}", escaped(&workload.tenant), escaped(&workload.name));
    let workload: WorkloadDocument = client.get(&place, Duration::from_secs(WAIT_S))?;
    let is_enforced = workload.standing == "enforced";
    terminal::print(&text::decision(&DecisionDocument { workload: Some(workload), ..decision }, false));
    Ok(answer_of(is_enforced))
}

/// Asks for a renewal of the promise as it is now, and waits until hosts have confirmed it.
fn renew(args: &RenewArgs) -> Result<VerbAnswer, OperationError> {
    let client = args.connection.client()?;
    let tenant = tenant_of(&client, args.tenant.as_deref(), &args.name)?;
    let place = format!("/v1/workloads/{}/{}", escaped(&tenant), escaped(&args.name));
    let observed_min_s = args.observed_min.map(|least| least.0.div_ceil(1_000_000_000));
    let question = RenewalQuestion { give_back: args.give_back, observed_min_s };
    if args.what_if {
        let least = observed_min_s.map_or_else(String::new, |least| format!("&observed_min_s={least}"));
        let path = format!("{place}/renewal?give_back={}{least}", args.give_back);
        let decision: DecisionDocument = client.get(&path, Duration::ZERO)?;
        terminal::print(&text::renewal(&decision, true));
        return Ok(answer_of(decision.answer == "renewed"));
    }
    let tag = client.tag(&place)?;
    let key = new_secret().map_err(OperationError::machine)?;
    let decision: DecisionDocument =
        client.post_if(&format!("{place}/renewal"), tag.as_deref(), &question, &key)?;
    let is_renewed = decision.answer == "renewed";
    if !is_renewed || args.no_wait {
        terminal::print(&text::renewal(&decision, false));
        return Ok(answer_of(is_renewed));
    }
    let ends = Instant::now() + Duration::from_secs(WAIT_S);
    loop {
        let workload: WorkloadDocument = client.get(&place, Duration::ZERO)?;
        let is_enforced = workload.standing == "enforced" && !workload.renewing;
        if is_enforced || Instant::now() >= ends {
            let is_ours = workload.renewed_by == decision.seq;
            let decision = DecisionDocument { workload: Some(workload), ..decision };
            terminal::print(&text::renewal(&decision, false));
            return Ok(answer_of(is_enforced && is_ours));
        }
        std::thread::sleep(POLL);
    }
}

fn answer_of(is_yes: bool) -> VerbAnswer {
    if is_yes { VerbAnswer::Yes } else { VerbAnswer::No }
}

/// The tenant of a workload: the one that is named, or that of the only workload of this name that the token shows.
fn tenant_of(client: &Client, named: Option<&str>, name: &str) -> Result<String, OperationError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let mut found = Vec::new();
    each_page::<WorkloadPage>(client, String::new(), |workloads| {
        found.extend(workloads.into_iter().filter(|workload| workload.name == name));
    })?;
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only.tenant),
        (None, _) => Err(OperationError::input(format_args!("there is no workload '{name}'"))),
        (Some(_), Some(_)) => {
            Err(OperationError::input(format_args!("several tenants have a workload '{name}'"))
                .hint("say --tenant NAME"))
        }
    }
}
