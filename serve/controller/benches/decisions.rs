//! Time of one decision on a standing cluster.
//!
//! `cargo bench -p controller --bench decisions -- --workloads 1000` fills a cluster of a quarter as many servers, and then
//! times admissions, refusals and removals.

#[path = "../tests/simulation/simulated/mod.rs"]
mod simulated;

use agent::{Abilities, AgentMode, AgentReport, ClientPlace};
use controller::{
    ClassDescription, ClassesDescription, Command, Controller, EVENT_VERSION, Event, HostsDescription,
    NetworkEnforcement, RecordedEvent, ReportOutcome, ServerPlace, WorkloadRequest,
};
use simulated::traffic::{CLASS, MARGIN, PROFILE, class, footprint};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

fn number(option: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != option);
    arguments.nth(1)?.parse().ok()
}

fn apply(controller: &mut Controller, event: Event) {
    let seq = controller.state().seq + 1;
    let recorded = RecordedEvent { seq, at_ns: 0, version: EVENT_VERSION, event };
    controller.apply(&recorded).expect("it was decided");
}

/// A cluster of so many servers, each on a host whose agent enforces.
fn cluster(servers: u64) -> Controller {
    let name = |number: u64| format!("{CLASS}-{number}");
    let host = |number: u64| format!("store-{number}");
    let place =
        |number: u64| ServerPlace { server: name(number), class: CLASS.to_owned(), host: host(number) };
    let mut controller = Controller::new(1);
    let classes = vec![ClassDescription { class: class(), profile: PROFILE.to_owned() }];
    let hosts = HostsDescription {
        text: String::new(),
        hosts: (1..=servers).map(host).collect(),
        servers: (1..=servers).map(place).collect(),
        network: NetworkEnforcement::Assumed,
    };
    apply(&mut controller, Event::Founded { cluster: "bench".to_owned() });
    apply(&mut controller, Event::ClassesDescribed(ClassesDescription { safety_margin: MARGIN, classes }));
    apply(&mut controller, Event::HostsDescribed(hosts));
    for number in 1..=servers {
        let abilities = Abilities { storage: BTreeSet::from([name(number)]), network: false };
        let seen = Event::AgentSeen { host: host(number), mode: AgentMode::Applying, abilities };
        apply(&mut controller, seen);
    }
    controller
}

/// Confirms whatever a host is to enforce, as its agent would.
fn confirm(controller: &mut Controller, host: &str) {
    for _ in 0..2 {
        let wanted = controller.state().wanted_epoch(host);
        let answer = controller.answer(host, 0);
        let (mode, abilities) = {
            let (_, state) = controller.state().hosts().find(|(name, _)| *name == host).expect("a host");
            state.agent.clone().expect("it reported")
        };
        let cluster = Some("bench".to_owned());
        let report = AgentReport {
            cluster,
            ticket: Some(answer.ticket),
            mode,
            abilities,
            applied: wanted,
            refused: None,
            advice: None,
            observations: Vec::new(),
            warnings: Vec::new(),
        };
        let ReportOutcome::Events(events) = controller.judge(host, &report) else { panic!("a host of it") };
        events.into_iter().for_each(|event| apply(controller, event));
    }
}

fn print(what: &str, times: &mut [Duration]) {
    times.sort();
    let Some(last) = times.len().checked_sub(1) else { return println!("{what:>10}: none") };
    let at = |percent: usize| times[last * percent / 100].as_secs_f64() * 1e3;
    println!(
        "{what:>10}: {:>6}, p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
        times.len(),
        at(50),
        at(99),
        at(100)
    );
}

fn main() {
    let count = number("--workloads").unwrap_or(1000);
    let mut controller = cluster(count.div_ceil(4) + 4);
    let footprints = [(2, 50), (5, 100), (8, 300)].map(|(burst, every_ms)| footprint(burst, every_ms));
    let slos = ["99% < 60ms", "99% < 90ms", "99% < 150ms", "99% < 300ms"];
    let request = |number: usize| WorkloadRequest {
        tenant: "t".to_owned(),
        name: format!("w{number}"),
        slo: slos[number % slos.len()].parse().expect("an SLO"),
        clients: vec![ClientPlace { host: None, address: vec![format!("a{number}")], export: None }],
        key: None,
        footprints: BTreeMap::from([(CLASS.to_owned(), footprints[number % footprints.len()].clone())]),
    };
    let begun = Instant::now();
    let mut filling = Vec::new();
    let mut number = 0;
    while controller.state().workloads().count() < usize::try_from(count).expect("fits") {
        let decided = Instant::now();
        let event = controller.decide(&Command::Request(Box::new(request(number)))).expect("a right request");
        filling.push(decided.elapsed());
        number += 1;
        if matches!(event, Event::WorkloadRefused { .. }) {
            println!("full with {} workloads", controller.state().workloads().count());
            break;
        }
        let Event::WorkloadAdmitted(admission) = &event else { unreachable!("it was asked for") };
        let host = format!("store-{}", admission.change.server.rsplit('-').next().unwrap_or_default());
        apply(&mut controller, event);
        confirm(&mut controller, &host);
    }
    println!(
        "{} workloads on {} servers in use, filled in {:.1} s",
        controller.state().workloads().count(),
        controller.state().servers().filter(|server| !server.decided.workloads.is_empty()).count(),
        begun.elapsed().as_secs_f64()
    );
    print("filling", &mut filling);
    let mut admitted = Vec::new();
    let mut refused = Vec::new();
    for number in number..number + 300 {
        let decided = Instant::now();
        let event = controller.decide(&Command::Request(Box::new(request(number)))).expect("a right request");
        let elapsed = decided.elapsed();
        match event {
            Event::WorkloadAdmitted(_) => admitted.push(elapsed),
            _ => refused.push(elapsed),
        }
    }
    print("admitted", &mut admitted);
    print("refused", &mut refused);
    let mut removed = Vec::new();
    for number in 0..300 {
        let decided = Instant::now();
        let removal = Command::Remove { tenant: "t".to_owned(), name: format!("w{number}") };
        let event = controller.decide(&removal).expect("it is there");
        apply(&mut controller, event);
        removed.push(decided.elapsed());
    }
    print("removed", &mut removed);
}
