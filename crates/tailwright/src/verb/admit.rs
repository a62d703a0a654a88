//! `tailwright admit`: who may come, decided one after the other.

use crate::exit::Answer;
use crate::input::events::{self, Event};
use crate::input::{Scene, SceneArgs};
use crate::output::{admission, json};
use crate::predicting::{self, ProcedureName};
use crate::terminal;
use clap::{Args, ValueEnum};
use model::OperationError;
use plan::admission::StageCurves;
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright admit cluster.toml --model probabilistic
  tailwright admit cluster.toml --model replayed --events day.txt --json
  tailwright admit --slos slos.csv --traces traces/ --storage ssd-profile.json --network 125MB/s \\
      --max-servers 2 --groups teams.csv
  tailwright admit --slos slos.csv --traces traces/ --link-only --network 1Gbps --model silo++

Workloads arrive in the order of the input and go to the first server where everybody, they
included, keeps their SLO. A group arrives as a whole and is accepted or refused as a whole.
Without --max-servers there is one server.

Events, one per line:
  arrive mail
  arrive web-1 web-2        together or not at all
  depart mail

Models, from the one that assumes least:
  worst-case     nothing but that workloads stay within the burst curves of their traces
  probabilistic  workloads (or groups) are independent and behave as their traces; a bound
  replayed       the same, estimated by replaying the traces at random shifts, with confidence
and to compare with: published-snc, priority-meister; on links: silo, silo++, qjump, qjump++.

Exit codes: 0 everybody is admitted; 1 somebody was refused; 2 bad input.";

/// Decide on arriving and departing workloads, and say why one is refused.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct AdmitArgs {
    #[command(flatten)]
    scene: SceneArgs,
    /// What must hold for everybody after each arrival.
    #[arg(long, value_name = "MODEL", value_enum, default_value = "worst-case")]
    model: ProcedureName,
    /// Who comes and goes (default: everybody comes, in the order of the input).
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write who is where, with priorities and limits, as a policy file.
    #[arg(short, long, value_name = "POLICY.json")]
    output: Option<PathBuf>,
    /// Print the decisions as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &AdmitArgs) -> Result<Answer, OperationError> {
    let scene = args.scene.load()?;
    if scene.profile.is_some() && args.model.is_for_links() {
        let name = args.model.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
        return Err(OperationError::input(format_args!("{name} is defined for network links alone"))
            .hint("add --link-only, or choose another --model"));
    }
    if args.model.is_for_links() {
        for tenant in &scene.tenants {
            let wrong =
                |error| OperationError::input(format_args!("workload '{}': {error}", tenant.spec.name));
            StageCurves::from_trace(&tenant.traffic).map_err(wrong)?;
        }
    }
    let events = args.read_events(&scene)?;
    let admission = predicting::admit(&scene, events, args.model);
    if let Some(path) = &args.output {
        json::write(path, &json::pretty(&admission::policy(&scene, &admission)), "policy")?;
    }
    let text =
        if args.json { admission::json(&scene, &admission) } else { admission::text(&scene, &admission) };
    terminal::print(&text);
    Ok(if admission.refused(&scene).is_empty() { Answer::Yes } else { Answer::No })
}

impl AdmitArgs {
    fn read_events(&self, scene: &Scene) -> Result<Vec<Event>, OperationError> {
        let names: Vec<&str> = scene.tenants.iter().map(|tenant| tenant.spec.name.as_str()).collect();
        match &self.events {
            Some(path) => events::read(path, &names),
            None => {
                let groups: Vec<usize> = scene.tenants.iter().map(|tenant| tenant.group).collect();
                Ok(events::all_arrive(&(0..names.len()).collect::<Vec<_>>(), &groups))
            }
        }
    }
}
