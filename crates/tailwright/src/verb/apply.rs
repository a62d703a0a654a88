//! `tailwright apply`: a policy made real on the hosts of a deployment, and taken back.

use crate::exit::Answer;
use crate::output::json;
use crate::terminal::{self, Align, Table};
use crate::verb::proxy::read_hosts;
use clap::Args;
use enforce::command::{CommandRunner, Programs, UnreachableHost, may_configure_networks};
use enforce::deployment::{Deployment, DeploymentHost};
use enforce::network::{
    self, ApplyOptions, ApplyReport, DesiredHost, DesiredNetwork, KernelFeature, StateStore,
};
use enforce::storage;
use model::{OperationError, Policy};
use serde::Serialize;
use std::path::{Path, PathBuf};
use workflow::planning::read_policy;

const HELP: &str = "\
Examples:
  tailwright apply policy.json --hosts hosts.toml --dry-run    what would be run on every host
  tailwright apply policy.json --hosts hosts.toml              on this machine and its network namespaces
  tailwright apply policy.json --hosts hosts.toml --host app-1 this machine is app-1
  tailwright apply --remove --hosts hosts.toml                 devices as they were found
  tailwright apply --probe                                     what this kernel can do

A hosts file:
  [[host]]
  name = \"app-1\"
  device.eth0 = \"1Gbps\"            # devices that may be shaped, and what they carry
  [[host]]
  name = \"store-1\"
  device.eth0 = \"1Gbps\"
  [[server]]
  name = \"ssd-1\"                   # as in the policy
  host = \"store-1\"
  address = [\"10.0.0.9\"]
  [[client]]
  workload = \"mail\"                # as in the policy
  host = \"app-1\"
  address = [\"10.0.0.1\"]

docs/apply.md describes every field. Applying again does nothing; a changed policy changes only what differs.

Exit codes: 0 done; 2 bad input; 3 without root, without tc or nft, or a device that somebody else has set up.";

/// Make a policy real on hosts: priorities and rate limits of network traffic, and of storage where a proxy runs.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ApplyArgs {
    /// From `tailwright plan -o`.
    #[arg(value_name = "POLICY.json", required_unless_present_any = ["remove", "probe"])]
    policy: Option<PathBuf>,
    /// Where servers and clients are.
    #[arg(long, value_name = "HOSTS.toml", required_unless_present = "probe")]
    hosts: Option<PathBuf>,
    /// Only this host; without a network namespace of its own it is this machine.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print the commands and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Give devices back as they were found.
    #[arg(long, conflicts_with = "policy")]
    remove: bool,
    /// Take over devices that somebody else has set up; that cannot be put back.
    #[arg(long)]
    replace: bool,
    /// Where it is remembered what was found and made.
    #[arg(long, value_name = "FOLDER", default_value = StateStore::DEFAULT)]
    state: PathBuf,
    /// Try what this kernel and its programs can do.
    #[arg(long, conflicts_with_all = ["policy", "hosts", "host", "dry_run", "remove", "replace"])]
    probe: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ApplyArgs) -> Result<Answer, OperationError> {
    if args.probe {
        return probe(args.json);
    }
    let path = args.hosts.as_deref().expect("clap asks for it");
    let (deployment, text) = read_hosts(path)?;
    let policy = args.policy.as_deref().map(read_policy).transpose()?;
    let wanted = wanted(policy.as_ref(), &deployment)?;
    wanted.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    let chosen = chosen(args, &wanted, path)?;
    if !args.dry_run && !may_configure_networks() {
        return Err(OperationError::machine("this process may not configure networks")
            .hint("run as root; --dry-run shows what would be run"));
    }
    let store = StateStore::new(&args.state);
    let _lock = if args.dry_run { None } else { Some(store.lock()?) };
    let mut reports = Vec::new();
    for (host, here) in chosen {
        let mut report = on_host(args, host, here, &store)?;
        let servers = deployment.servers.iter().filter(|server| server.host == host.host.name);
        for server in servers.filter(|server| here && server.storage.is_some()) {
            report.commands.push(tell_proxy(args, &server.name, policy.as_ref(), &text)?);
        }
        if !args.json {
            print_report(args, &report);
        }
        reports.push(report);
    }
    if args.json {
        terminal::print(&json::pretty(
            &reports.iter().map(|report| View::of(report, args)).collect::<Vec<_>>(),
        ));
    }
    Ok(Answer::Yes)
}

/// Gives the proxy before a server the policy, or takes it away; what was done, in words.
fn tell_proxy(
    args: &ApplyArgs,
    server: &str,
    policy: Option<&Policy>,
    hosts: &str,
) -> Result<String, OperationError> {
    let path = storage::control_path(&args.state, server);
    if !args.dry_run {
        storage::send_policy(&path, policy, hosts.to_owned())?;
    }
    let what = if policy.is_some() { "the policy" } else { "no policy" };
    Ok(format!("# proxy before {server} at {}: {what}", path.display()))
}

/// Of all hosts; nothing when devices are given back.
fn wanted(policy: Option<&Policy>, deployment: &Deployment) -> Result<DesiredNetwork, OperationError> {
    let Some(policy) = policy else {
        let nothing = |host: &DeploymentHost| DesiredHost { host: host.clone(), devices: Vec::new() };
        return Ok(DesiredNetwork {
            hosts: deployment.hosts.iter().map(nothing).collect(),
            warnings: Vec::new(),
        });
    };
    Ok(network::desired_network(policy, deployment)?)
}

/// The hosts to act on, and whether each is on this machine. A dry run shows them all.
fn chosen<'a>(
    args: &ApplyArgs,
    wanted: &'a DesiredNetwork,
    path: &Path,
) -> Result<Vec<(&'a DesiredHost, bool)>, OperationError> {
    let names = || wanted.hosts.iter().map(|wanted| wanted.host.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = &args.host {
        let host = wanted.hosts.iter().find(|wanted| wanted.host.name == *name).ok_or_else(|| {
            OperationError::input(format_args!("{}: there is no host '{name}'", path.display()))
                .hint(format_args!("the hosts are {}", names()))
        })?;
        return Ok(vec![(host, true)]);
    }
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let here = |wanted: &DesiredHost| network::is_local(&wanted.host, hostname.trim());
    let all = wanted.hosts.iter().map(|wanted| (wanted, here(wanted)));
    let chosen: Vec<_> = all.filter(|(_, here)| *here || args.dry_run).collect();
    if chosen.is_empty() {
        return Err(OperationError::input(format_args!(
            "none of {} is this machine, {}",
            names(),
            hostname.trim()
        ))
        .hint("--host NAME says which of them it is"));
    }
    Ok(chosen)
}

fn on_host(
    args: &ApplyArgs,
    host: &DesiredHost,
    here: bool,
    store: &StateStore,
) -> Result<ApplyReport, OperationError> {
    let (mut programs, mut elsewhere) = (Programs, UnreachableHost);
    let run: &mut dyn CommandRunner = if here { &mut programs } else { &mut elsewhere };
    let options = ApplyOptions { dry_run: args.dry_run, replace: args.replace };
    let act = if args.remove { network::remove } else { network::apply };
    let report = act(run, host, store, options)?;
    report.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    Ok(report)
}

fn print_report(args: &ApplyArgs, report: &ApplyReport) {
    let host = &report.host;
    let text = match (report.commands.len(), args.dry_run) {
        (0, _) => format!("# {host}: nothing to do\n"),
        (_, true) => format!("# {host}\n{}\n", report.commands.join("\n")),
        (count, false) => {
            let done = if args.remove { "given back" } else { "brought to the policy" };
            format!("# {host}: {done}, {count} commands\n")
        }
    };
    terminal::print(&text);
}

/// A host in JSON.
#[derive(Serialize)]
struct View<'a> {
    host: &'a str,
    /// Whether anything was changed.
    changed: bool,
    commands: &'a [String],
    warnings: &'a [String],
}

impl<'a> View<'a> {
    fn of(report: &'a ApplyReport, args: &ApplyArgs) -> Self {
        Self {
            host: &report.host,
            changed: !args.dry_run && !report.commands.is_empty(),
            commands: &report.commands,
            warnings: &report.warnings,
        }
    }
}

#[derive(Serialize)]
struct AbilityView<'a> {
    name: &'a str,
    works: bool,
    needed: bool,
    purpose: &'a str,
    lack: Option<&'a str>,
}

fn probe(as_json: bool) -> Result<Answer, OperationError> {
    let abilities = network::probe_kernel(&mut Programs)?;
    terminal::print(&if as_json { probe_json(&abilities) } else { probe_text(&abilities) });
    match abilities.iter().find(|ability| ability.needed && ability.lack.is_some()) {
        Some(ability) => {
            let lack = ability.lack.as_deref().unwrap_or_default();
            Err(OperationError::machine(format_args!("{} does not work here: {lack}", ability.name))
                .hint("install iproute2 and nftables; a host with filters = \"tc\" needs no nft"))
        }
        None => Ok(Answer::Yes),
    }
}

fn probe_json(abilities: &[KernelFeature]) -> String {
    let view = |ability: &KernelFeature| {
        let KernelFeature { name, purpose, needed, lack } = ability.clone();
        serde_json::json!(AbilityView { name, works: lack.is_none(), needed, purpose, lack: lack.as_deref() })
    };
    json::pretty(&abilities.iter().map(view).collect::<Vec<_>>())
}

fn probe_text(abilities: &[KernelFeature]) -> String {
    let mut table = Table::new(&[("ability", Align::Left), ("here", Align::Left), ("for", Align::Left)]);
    for ability in abilities {
        let here = match (&ability.lack, ability.needed) {
            (None, _) => "yes".to_owned(),
            (Some(lack), true) => format!("NO: {lack}"),
            (Some(_), false) => "no".to_owned(),
        };
        table.row(vec![ability.name.into(), here, ability.purpose.into()]);
    }
    table.render()
}
