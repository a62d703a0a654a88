//! `tailwright apply`: enforces a policy on the hosts of a deployment, and removes it.

use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::undo_on_termination;
use cli::terminal::{self, Align, TerminalObserver, TextTable};
use enforce::command::Programs;
use enforce::facade::{ApplySettings, HostAnswer, HostsFile, ProxyAnswer, apply_policy, hosts_template};
use enforce::network::{self, ApplyReport, KernelFeature, StateStore};
use model::OperationError;
use operation::policy_file::read_policy;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use units::plural;

const HELP: &str = "\
Examples:
  tailwright apply --template tailwright-demo/plan.json > hosts.toml
      a hosts file to fill in
  tailwright apply policy.json --hosts hosts.toml --dry-run
      print the commands for every host
  tailwright apply policy.json --hosts hosts.toml
      apply on this machine and its network namespaces
  tailwright apply policy.json --hosts hosts.toml \\
      --host app-1   this machine is app-1
  tailwright apply --remove --hosts hosts.toml   restore devices
  tailwright apply --probe   test features of this kernel

A hosts file:
  [[host]]
  name = \"app-1\"
  device.eth0 = \"1Gbps\"            # device to shape, and its line rate
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

docs/reference/hosts-file.md describes every field. Applying again does nothing; a changed policy changes only what differs.

Exit codes: 0 done; 2 bad input; 3 without root, without tc or nft, without a proxy where one is needed, or a device that \
already has a queueing discipline. After any other than 0, hosts and proxies are unchanged, or the message names those that are not.";

/// Enforce a policy on hosts: priorities and rate limits of network traffic, and of storage where a proxy runs.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ApplyArgs {
    /// Policy from `tailwright plan -o`.
    #[arg(value_name = "POLICY.json", required_unless_present_any = ["remove", "probe"])]
    policy: Option<PathBuf>,
    /// Where servers and clients are.
    #[arg(long, value_name = "HOSTS.toml", required_unless_present_any = ["probe", "template"])]
    hosts: Option<PathBuf>,
    /// Only this host; without a network namespace of its own it is this machine.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Print what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Restore devices to their state before the first `apply`.
    #[arg(long, conflicts_with = "policy")]
    remove: bool,
    /// Accept servers that are used differently from the assumptions of the policy's bounds. The output then
    /// begins with a line that bounds do not apply.
    #[arg(long)]
    without_bounds: bool,
    /// Replace queueing disciplines that others have set up; those cannot be restored.
    #[arg(long)]
    replace: bool,
    /// Folder of the state: the settings before the first `apply`, and those that were made.
    #[arg(long, value_name = "FOLDER", default_value = StateStore::DEFAULT)]
    state: PathBuf,
    /// Print a hosts file for the policy, with placeholders for devices and addresses.
    #[arg(long, requires = "policy", conflicts_with_all = ["hosts", "host", "dry_run", "remove", "replace", "probe", "json"])]
    template: bool,
    /// Test the features of this kernel and its programs.
    #[arg(long, conflicts_with_all = ["policy", "hosts", "host", "dry_run", "remove", "replace"])]
    probe: bool,
    #[arg(long, help = "Print JSON: the changes of each host")]
    json: bool,
}

pub fn run(args: &ApplyArgs) -> Result<VerbAnswer, OperationError> {
    if args.probe {
        return probe(args.json);
    }
    if let (true, Some(policy)) = (args.template, &args.policy) {
        terminal::print(&hosts_template(&read_policy(policy)?));
        return Ok(VerbAnswer::Yes);
    }
    // A signal must not leave a change half done: it is completed or undone first.
    let _ = undo_on_termination();
    let hosts = HostsFile::read(args.hosts.as_deref().expect("clap asks for it"))?;
    let policy = args.policy.as_deref().map(read_policy).transpose()?;
    let settings = ApplySettings {
        host: args.host.clone(),
        dry_run: args.dry_run,
        remove: args.remove,
        replace: args.replace,
        state: args.state.clone(),
        without_bounds: args.without_bounds,
    };
    let mut answers = Vec::new();
    let broken = apply_policy(policy.as_ref(), &hosts, &settings, &TerminalObserver, &mut |answer| {
        answers.push(answer);
    })?;
    if args.json {
        let hosts = answers.iter().map(|answer| HostDocument::new(answer, args)).collect();
        terminal::print(&operation::document::document(&ApplyDocument {
            dry_run: args.dry_run,
            bounds_do_not_apply: broken,
            hosts,
        }));
    } else {
        broken.iter().for_each(|broken| terminal::print(&format!("# {broken}\n")));
        answers.iter().for_each(|answer| terminal::print(&answer_text(args, answer)));
    }
    Ok(VerbAnswer::Yes)
}

fn answer_text(args: &ApplyArgs, answer: &HostAnswer) -> String {
    let host = &answer.network.host;
    let commands = &answer.network.commands;
    let mut text = match (commands.len(), args.dry_run) {
        (0, _) => format!("# {host}: nothing to do\n"),
        (_, true) => format!("# {host}\n{}\n", commands.join("\n")),
        (count, false) => {
            let done = if args.remove { "restored" } else { "changed" };
            format!("# {host}: {done}, {}\n", plural(count, "command"))
        }
    };
    for proxy in &answer.proxies {
        text += &format!("# {}\n", proxy_text(args, proxy));
    }
    text
}

fn proxy_text(args: &ApplyArgs, proxy: &ProxyAnswer) -> String {
    let what = match (proxy.is_running, proxy.is_change, args.remove) {
        (false, _, false) if !proxy.is_known => "the policy",
        (false, _, true) if !proxy.is_known => "no policy",
        (true, true, false) => "the policy",
        (true, true, true) => "no policy",
        (true, false, _) => "unchanged",
        (false, _, false) => "the policy; no proxy runs there, and without one `apply` changes nothing",
        (false, true, true) => "none runs there; its saved policy is deleted",
        (false, false, true) => "none runs there, nothing to remove",
    };
    format!("proxy before {} at {}: {what}", proxy.server, proxy.control.display())
}

/// Changes of all hosts, made or planned.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ApplyDocument<'a> {
    /// True if the changes were only planned.
    dry_run: bool,
    /// Reason why bounds do not apply: servers accepted by --without-bounds, or a policy of version 1 for
    /// several channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds_do_not_apply: Option<String>,
    hosts: Vec<HostDocument<'a>>,
}

/// Features of this kernel and its programs.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FeaturesDocument<'a> {
    features: Vec<AbilityView<'a>>,
}

/// Changes of one host.
#[derive(Serialize, JsonSchema)]
struct HostDocument<'a> {
    host: &'a str,
    /// True if anything was changed.
    changed: bool,
    commands: &'a [String],
    proxies: Vec<ProxyDocument<'a>>,
    warnings: &'a [String],
}

/// Changes of one proxy.
#[derive(Serialize, JsonSchema)]
struct ProxyDocument<'a> {
    server: &'a str,
    control: &'a Path,
    running: bool,
    changed: bool,
    done: String,
}

impl<'a> HostDocument<'a> {
    fn new(answer: &'a HostAnswer, args: &ApplyArgs) -> Self {
        let ApplyReport { host, commands, warnings } = &answer.network;
        let mut proxies = Vec::new();
        for proxy in &answer.proxies {
            let ProxyAnswer { server, control, is_running, is_change, .. } = proxy;
            let running = *is_running;
            let changed = *is_change && !args.dry_run;
            proxies.push(ProxyDocument { server, control, running, changed, done: proxy_text(args, proxy) });
        }
        let is_change = !commands.is_empty() || proxies.iter().any(|proxy| proxy.changed);
        Self { host, changed: is_change && !args.dry_run, commands, proxies, warnings }
    }
}

#[derive(Serialize, JsonSchema)]
struct AbilityView<'a> {
    name: &'a str,
    works: bool,
    needed: bool,
    purpose: &'a str,
    lack: Option<&'a str>,
}

fn probe(as_json: bool) -> Result<VerbAnswer, OperationError> {
    let abilities = network::probe_kernel(&mut Programs)?;
    if as_json {
        terminal::print(&probe_json(&abilities));
    } else {
        terminal::print_text(&probe_text(&abilities));
    }
    match abilities.iter().find(|ability| ability.needed && ability.lack.is_some()) {
        Some(ability) => {
            let lack = ability.lack.as_deref().unwrap_or_default();
            Err(OperationError::machine(format_args!("{} does not work here: {lack}", ability.name))
                .hint("install iproute2 and nftables; a host with filters = \"tc\" needs no nft"))
        }
        None => Ok(VerbAnswer::Yes),
    }
}

fn probe_json(abilities: &[KernelFeature]) -> String {
    let view = |ability| {
        let KernelFeature { name, purpose, needed, lack }: &KernelFeature = ability;
        let needed = *needed;
        let lack = lack.as_deref();
        AbilityView { name, works: lack.is_none(), needed, purpose, lack }
    };
    operation::document::document(&FeaturesDocument { features: abilities.iter().map(view).collect() })
}

fn probe_text(abilities: &[KernelFeature]) -> String {
    let mut table = TextTable::new(&[("ability", Align::Left), ("here", Align::Left), ("for", Align::Left)]);
    for ability in abilities {
        let here = match (&ability.lack, ability.needed) {
            (None, _) => "yes".to_owned(),
            (Some(lack), true) => format!("NO: {lack}"),
            (Some(_), false) => "no".to_owned(),
        };
        table.row(vec![ability.name.into(), here, ability.purpose.into()]);
    }
    table.answered_by(&["here"]).render()
}
