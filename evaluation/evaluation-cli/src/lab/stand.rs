//! `tailwright lab up`, `status` and `down`: hosts, a switch and real servers as namespaces of this machine.

use clap::Args;
use cli::choice::value_of;
use cli::exit::VerbAnswer;
use cli::interrupt::undo_on_termination;
use cli::terminal::{self, Align, Talk, TextTable, talk};
use enforce::command::Programs;
use lab::persistent_lab::{
    LabFolder, LabSpecification, LabState, RecordedHost, RecordedServer, STORE, bring_up, read_state,
    take_down,
};
use lab::servers::{LAB_SERVERS, LabServer};
use model::OperationError;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::path::PathBuf;

const UP_HELP: &str = "\
Examples:
  tailwright lab up   all servers, and three hosts for clients
  tailwright lab up memcached ssd         only these
  tailwright lab up nfs --behind-proxy
      on 127.0.0.1 of the host `store`: a proxy takes its address
  ip netns exec tw-client-1 COMMAND       runs something on a host

Up again does nothing; servers that have ended are started again. docs/reference/lab.md has more.

Exit codes: 0 up; 2 a lab with other hosts is up; 3 without root or a program, or a server does not start.";

const STATUS_HELP: &str = "\
Examples:
  tailwright lab status
  tailwright lab status --prefix tw2 --state /run/lab2 --json    of a second lab

Exit codes: 0 everything runs; 1 nothing is up, or a server has ended; 2 bad input; 3 without root.";

const DOWN_HELP: &str = "\
Examples:
  tailwright lab down
  tailwright lab down --prefix tw2 --state /run/lab2    a second lab

Namespaces whose names begin with `tw-` and everything that runs in them are removed, also what a crash left.

Exit codes: 0 nothing is left; 2 bad input; 3 without root.";

/// Hosts, a switch and real servers on this machine, until `down`
#[derive(Debug, Args)]
#[command(after_help = UP_HELP)]
pub(crate) struct UpArgs {
    #[arg(value_name = "NAME", help = "Servers [default: all]", value_parser = value_of(LAB_SERVERS.iter().map(|row| (row, row.name, row.words))))]
    names: Vec<&'static LabServer>,
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=200), help = "Hosts client-1, client-2, …")]
    clients: u8,
    /// Servers listen on 127.0.0.1 of their host only; clients are given the address that a proxy takes.
    #[arg(long)]
    behind_proxy: bool,
    #[command(flatten)]
    common: LabStateArgs,
}

#[derive(Debug, Args)]
#[command(about = "What is up", after_help = STATUS_HELP)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    common: LabStateArgs,
}

/// Remove the lab and everything in it
#[derive(Debug, Args)]
#[command(after_help = DOWN_HELP)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    common: LabStateArgs,
}

#[derive(Debug, Args)]
struct LabStateArgs {
    /// Folder of the state: the running hosts and servers, and logs.
    #[arg(long, value_name = "FOLDER", default_value = LabFolder::DEFAULT)]
    state: PathBuf,
    /// Names of namespaces are this, `-` and the host; a second lab needs another, and a --state of its own.
    #[arg(long, value_name = "NAME", default_value = "tw", value_parser = prefix)]
    prefix: String,
    #[arg(long, help = "Print JSON: what is up, or what was removed")]
    json: bool,
}

/// It becomes part of commands.
fn prefix(text: &str) -> Result<String, String> {
    let fits = (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if fits { Ok(text.to_owned()) } else { Err("expected up to 20 letters and digits".to_owned()) }
}

pub(crate) fn up(args: &UpArgs) -> Result<VerbAnswer, OperationError> {
    let _ = undo_on_termination();
    let ip = if args.behind_proxy { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED }.into();
    let all: Vec<&LabServer> = LAB_SERVERS.iter().collect();
    let servers = if args.names.is_empty() { &all } else { &args.names };
    let services: Result<_, _> = servers.iter().map(|server| (server.service)(ip)).collect();
    let clients = (1..=args.clients).map(|number| format!("client-{number}")).collect();
    let wanted = LabSpecification { prefix: args.common.prefix.clone(), clients, services: services? };
    let folder = LabFolder::open(&args.common.state)?;
    let (state, changed) = bring_up(&mut Programs, &folder, &wanted)?;
    let summary = match changed.as_slice() {
        [] => "nothing to do".to_owned(),
        names => format!("new: {}", names.join(", ")),
    };
    talk(Talk::Plain, summary);
    print(&state, args.common.json);
    Ok(VerbAnswer::Yes)
}

pub(crate) fn status(args: &StatusArgs) -> Result<VerbAnswer, OperationError> {
    let Some(state) = read_state(&args.common.state)? else {
        if args.common.json {
            terminal::print(&operation::document::document(&LabDocument { hosts: &[], servers: Vec::new() }));
        } else {
            terminal::print_text("nothing is up\n");
        }
        return Ok(VerbAnswer::No);
    };
    print(&state, args.common.json);
    let all_run = state.servers.iter().all(RecordedServer::is_running);
    Ok(if all_run { VerbAnswer::Yes } else { VerbAnswer::No })
}

pub(crate) fn down(args: &DownArgs) -> Result<VerbAnswer, OperationError> {
    let _ = undo_on_termination();
    let folder = LabFolder::open(&args.common.state)?;
    let removed = take_down(&mut Programs, &folder, &args.common.prefix)?;
    if args.common.json {
        terminal::print(&operation::document::document(&RemovedLabDocument { namespaces: &removed }));
    } else {
        match removed.as_slice() {
            [] => terminal::print_text("nothing was up\n"),
            names => terminal::print_text(&format!("removed: {}\n", names.join(", "))),
        }
    }
    Ok(VerbAnswer::Yes)
}

/// The namespaces that were removed with everything in them.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemovedLabDocument<'a> {
    namespaces: &'a [String],
}

/// State of the lab; no hosts if it is down.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LabDocument<'a> {
    hosts: &'a [RecordedHost],
    servers: Vec<LabServerDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct LabServerDocument<'a> {
    #[serde(flatten)]
    server: &'a RecordedServer,
    running: bool,
}

fn print(state: &LabState, as_json: bool) {
    if as_json {
        let servers = state.servers.iter();
        let servers =
            servers.map(|server| LabServerDocument { server, running: server.is_running() }).collect();
        return terminal::print(&operation::document::document(&LabDocument {
            hosts: &state.hosts,
            servers,
        }));
    }
    let mut table =
        TextTable::new(&[("host", Align::Left), ("namespace", Align::Left), ("address", Align::Left)]);
    for host in &state.hosts {
        table.row(vec![host.name.clone(), host.netns.clone(), host.ipv4.to_string()]);
    }
    terminal::print_text(&(table.render() + "\n"));
    let mut table =
        TextTable::new(&[("server", Align::Left), ("", Align::Left), ("clients use", Align::Left)]);
    for server in &state.servers {
        let running = if server.is_running() { "running" } else { "ENDED" };
        table.row(vec![server.name.clone(), running.to_owned(), server.uri.clone()]);
    }
    terminal::print_text(&table.render());
    let hidden: Vec<&str> = state
        .servers
        .iter()
        .filter(|server| server.behind_proxy)
        .map(|server| server.name.as_str())
        .collect();
    if !hidden.is_empty() {
        terminal::print_text(&format!(
            "\nOn 127.0.0.1 of `{STORE}` only: {}. Clients reach these addresses when `tailwright proxy` listens there.\n",
            hidden.join(", ")
        ));
    }
}
