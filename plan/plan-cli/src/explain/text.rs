//! The derivation of one bound for people.

use cli::terminal::{Align, TextTable};
use model::Stage;
use operation::text::{percent, time};
use plan::planning::{ClientDerivation, DeviceUse, GuaranteeDerivation, ServerNeighbour, StageDelay};

/// Milliseconds with four decimals, so that the columns can be added up by hand.
fn ms(seconds: f64) -> String {
    format!("{:.4}", seconds * 1e3)
}

/// A fraction in percent with four decimals.
fn fine(fraction: f64) -> String {
    format!("{:.4}%", fraction * 100.0)
}

/// The derivation for people: priority, company, terms and limits.
pub(crate) fn text(derivation: &GuaranteeDerivation) -> String {
    let mut text = format!(
        "{} on {} is guaranteed {} < {}; its SLO is {}: a slack of {} ({}).\n\n",
        derivation.workload,
        derivation.server,
        derivation.slo.percentile,
        time(derivation.bound_s),
        time(derivation.slo_s),
        time(derivation.slack_s),
        percent(derivation.slack_s / derivation.slo_s)
    );
    text.push_str(&steps(derivation));
    text
}

/// The derivation of the least bound that a refused workload could have.
pub(crate) fn refused_text(derivation: &GuaranteeDerivation) -> String {
    format!(
        "\nThe least bound that it could have is {}, on {}. This is how it comes about.\n\n{}",
        time(derivation.bound_s),
        derivation.server,
        steps(derivation)
    )
}

/// Priority, company, terms and limits.
fn steps(derivation: &GuaranteeDerivation) -> String {
    [priority(derivation), company(derivation), terms(derivation), limits(derivation)].concat()
}

fn priority(derivation: &GuaranteeDerivation) -> String {
    let count = |keep: &dyn Fn(&&ServerNeighbour) -> bool| derivation.neighbours.iter().filter(keep).count();
    format!(
        "Priority {}: the tighter the SLO, the higher the priority; 0 is served first, and SLOs close to each other may \
         share one. On {}, {} of the others are above it, {} share its priority and {} are below.\n\n",
        derivation.priority,
        derivation.server,
        count(&|neighbour| neighbour.priority < derivation.priority),
        count(&|neighbour| neighbour.priority == derivation.priority && neighbour.name != derivation.workload),
        count(&|neighbour| neighbour.priority > derivation.priority),
    )
}

/// Lists the workloads that contribute bursts and rates.
fn company(derivation: &GuaranteeDerivation) -> String {
    let mut text = String::from(
        "At each stage a request waits for the bursts of the same and higher priorities, served with what the \
         rates of the higher priorities leave (Eq. 5.5): sum of bursts / (1 - sum of higher rates).\n",
    );
    if let Some(device) = &derivation.device {
        text.push_str(&begun(derivation, device));
    }
    let peers = derivation.neighbours.iter().filter(|neighbour| neighbour.priority == derivation.priority);
    if derivation.device.is_some() && peers.count() > 1 {
        text.push_str(
            "Workloads of one priority take turns on a link: the others count as if they were above, or each with the burst \
             of this one and a packet, whichever is less.\n",
        );
    }
    text.push('\n');
    let mut columns = vec![("workload", Align::Left), ("prio", Align::Right), ("SLO", Align::Left)];
    for (burst, rate) in [("in ms", "in rate"), ("storage ms", "storage rate"), ("out ms", "out rate")] {
        columns.extend([(burst, Align::Right), (rate, Align::Right)]);
    }
    let mut table = TextTable::new(&columns);
    for neighbour in
        derivation.neighbours.iter().filter(|neighbour| neighbour.priority <= derivation.priority)
    {
        let mut row = vec![neighbour.name.clone(), neighbour.priority.to_string(), neighbour.slo.to_string()];
        for stage in 0..3 {
            let rate = neighbour.rates[stage];
            let rate = if rate > 0.0 { fine(rate) } else { "-".to_owned() };
            row.extend([ms(neighbour.bursts[stage]), rate]);
        }
        table.row(row);
    }
    let mut sums = vec!["sum".to_owned(), String::new(), String::new()];
    for step in &derivation.stages {
        sums.extend([ms(step.burst_at_or_above), fine(step.rate_above)]);
    }
    table.row(sums);
    let table = table.without_first(&["in rate", "out rate", "storage rate", "prio"]);
    text.push_str(&table.answered_by(&["in ms", "storage ms", "out ms"]).render());
    text.push('\n');
    text
}

/// Describes the non-preemptible work of a stage and its origin.
fn begun(derivation: &GuaranteeDerivation, device: &DeviceUse) -> String {
    let DeviceUse { channels, outstanding, reserve, best_effort_request_s, largest_request_s } = *device;
    let link = derivation.stages.iter().find(|step| step.stage != Stage::Storage);
    format!(
        "It also waits for what the stage has begun and does not interrupt, which comes before the bursts: \
         packets and the burst of its shaper, {} on a link; at the storage, which serves {channels} at a time, up to {outstanding} requests, {} of \
         them as long as the longest ({}) and {reserve} as the longest of a workload with a guarantee ({}). Control requests \
         count within the limits of their workloads; a best-effort request that is longer than counted is not.\n",
        time(link.map_or(0.0, |step| step.blocking)),
        outstanding - reserve,
        time(best_effort_request_s.max(largest_request_s)),
        time(largest_request_s),
    )
}

/// Term by term to the bound.
fn terms(derivation: &GuaranteeDerivation) -> String {
    let mut table = TextTable::new(&[("term", Align::Left), ("", Align::Right), ("ms", Align::Right)]);
    for step in &derivation.stages {
        let mut summands = Vec::new();
        if step.blocking > 0.0 {
            summands.push(ms(step.blocking));
        }
        summands.push(ms(step.burst_at_or_above - step.allowance));
        if step.allowance > 0.0 {
            summands.push(format!("{} overtaking", ms(step.allowance)));
        }
        let work = summands.join(" + ");
        let work = if summands.len() > 1 { format!("({work})") } else { work };
        let quotient = format!("{work} / (1 - {:.6})", step.rate_above);
        table.row(vec![format!("waiting at {}", step.stage), quotient, ms(step.delay_s)]);
    }
    for step in derivation.stages.iter().filter(|step| step.shaping_s > 0.0) {
        table.row(vec![
            format!("waiting in its own limiter at {}", step.stage),
            "(its r-b curve - burst) / rate".into(),
            ms(step.shaping_s),
        ]);
    }
    if let Some(device) = &derivation.device {
        if device.channels > 1 {
            let service = format!("largest request on one of {} channels", device.channels);
            table.row(vec!["own service".into(), service, ms(derivation.own_service_s)]);
        }
        table.row(vec!["proxy".into(), "class of servers".into(), ms(derivation.proxy_s)]);
    }
    for link in derivation.client.iter().flat_map(|client| &client.links) {
        let host = &derivation.client.as_ref().expect("it has links").host;
        let what = match link.stage {
            Stage::NetworkOut => format!("waiting at the link into {host}"),
            _ => format!("waiting at the link out of {host}"),
        };
        let begun = if link.blocking > 0.0 { format!("{} + ", ms(link.blocking)) } else { String::new() };
        let quotient = format!("({begun}{}) / (1 - {:.6})", ms(link.burst_at_or_above), link.rate_above);
        table.row(vec![what, quotient, ms(link.delay_s)]);
    }
    table.row(vec!["idle storage".into(), "device profile".into(), ms(derivation.base_s)]);
    table.row(vec!["bound".into(), "sum".into(), ms(derivation.bound_s)]);
    table.row(vec!["SLO".into(), derivation.slo.to_string(), ms(derivation.slo_s)]);
    table.row(vec!["slack".into(), String::new(), ms(derivation.slack_s)]);
    format!("{}\n{}", table.answered_by(&["ms"]).render(), objectives(derivation))
}

/// The bounds of several SLOs; empty if there is one only.
fn objectives(derivation: &GuaranteeDerivation) -> String {
    if derivation.objectives.is_empty() {
        return String::new();
    }
    let columns = [("SLO", Align::Left), ("bound ms", Align::Right), ("slack ms", Align::Right)];
    let mut table = TextTable::new(&columns);
    for objective in &derivation.objectives {
        table.row(vec![objective.slo.to_string(), ms(objective.bound_s), ms(objective.slack_s)]);
    }
    format!(
        "It has several SLOs. The bound of reads or writes alone differs from that of all by the idle storage, whose latency \
         is known by direction:\n\n{}\n",
        table.answered_by(&["bound ms", "slack ms"]).render()
    )
}

/// The chosen limits against the r-b curves.
fn limits(derivation: &GuaranteeDerivation) -> String {
    let mut text = String::from(
        "Its limits: a token bucket per stage, on its r-b curve or above, so that the limiter delays nothing that \
         looks like its trace. A lower rate would need a larger burst:\n",
    );
    let mut columns = vec![("", Align::Left), ("mean rate", Align::Right)];
    columns.extend([("rate", Align::Right), ("burst ms", Align::Right)]);
    let has_allowance = derivation.stages.iter().any(|step| step.allowance > 0.0);
    if has_allowance {
        columns.push(("allowance ms", Align::Right));
    }
    columns.push(("r-b curve: rate -> ms", Align::Left));
    let mut table = TextTable::new(&columns);
    for step in &derivation.stages {
        let mut row =
            vec![format!("  {}", step.stage), fine(step.mean_rate), fine(step.rate), ms(step.burst)];
        if has_allowance {
            row.push(ms(step.allowance));
        }
        row.push(curve(step));
        table.row(row);
    }
    text.push_str(&table.answered_by(&["rate", "burst ms"]).render());
    if has_allowance {
        text.push_str(
            "The enforcer's bucket holds the allowance beyond the burst: while its longest request is served on one channel, so \
             much of its later answers may overtake it on the others. The burst that the workload adds to the term of that \
             stage contains the allowance; its own traffic may spend the burst alone.\n",
        );
    }
    if let Some(client) = &derivation.client {
        text.push_str(&client_limits(client));
    }
    text
}

/// The limits on the links of the host from which requests come.
fn client_limits(client: &ClientDerivation) -> String {
    let limits: Vec<String> = client
        .links
        .iter()
        .map(|link| format!("{}, {} ms at {}", fine(link.rate), ms(link.burst), link.stage))
        .collect();
    format!(
        "On the links of {}, which it shares with all workloads of that host, it has priority {} and also keeps {}, as \
         shares of the link.\n",
        client.host,
        client.priority,
        limits.join(", and ")
    )
}

fn curve(step: &StageDelay) -> String {
    let points: Vec<String> =
        step.curve.iter().map(|(rate, burst)| format!("{} -> {}", percent(*rate), ms(*burst))).collect();
    points.join(", ")
}
