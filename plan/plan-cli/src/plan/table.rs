//! A plan as an aligned table, server by server.

use cli::terminal::{Align, TextTable};
use model::Stage;
use operation::text::{by_stage, percent, time};
use plan::RefusedWorkload;
use plan::planning::{ObjectiveBound, PlannedCluster, WorkloadPlace};
use units::plural;

/// Beyond this number of workloads, servers are shown as one line each.
pub(crate) const DETAILED_MAX: usize = 60;

/// The tables of a plan; one row per workload when `detailed`, otherwise one per server.
pub(crate) fn plan(planned: &PlannedCluster, detailed: bool) -> String {
    if detailed { workloads(planned) } else { servers(planned) }
}

/// All workloads in one table, so that columns line up over servers, cut into servers.
fn workloads(planned: &PlannedCluster) -> String {
    let mut table = TextTable::new(&[
        ("  workload", Align::Left),
        ("prio", Align::Right),
        ("SLO", Align::Left),
        ("bound", Align::Right),
        ("slack", Align::Right),
        ("network-in", Align::Right),
        ("storage", Align::Right),
        ("network-out", Align::Right),
    ]);
    let places = planned.places();
    let mut lengths = Vec::new();
    for number in 0..planned.placement.servers.len() {
        let mut rows = members(&places, number);
        rows.sort_by_key(|(workload, place)| (place.guarantee.priority, *workload));
        let mut length = rows.len();
        for (workload, place) in rows {
            table.row(row(planned, workload, place));
            for further in planned.further_objectives(workload, place) {
                table.row(objective_row(&further));
                length += 1;
            }
        }
        lengths.push(length);
    }
    let headings =
        (0..).zip(&planned.names).map(|(number, name)| format!("{name}: {}", load(planned, number)));
    let table = table.without_first(&["network-out", "network-in", "storage", "prio"]);
    let table = table.answered_by(&["bound", "slack"]);
    by_server(&table, headings.zip(lengths))
}

/// Cuts a table of workloads into servers, each with its heading and number of rows, so that columns line up over
/// servers.
pub(crate) fn by_server(table: &TextTable, servers: impl IntoIterator<Item = (String, usize)>) -> String {
    let rendered = table.render_rows();
    let mut rows = rendered.rows.iter();
    let mut text = rows.next().cloned().unwrap_or_default();
    for (heading, length) in servers {
        text.push_str(&format!("{heading}\n"));
        text.extend(rows.by_ref().take(length).map(String::as_str));
    }
    text + &rendered.note
}

fn members(places: &[Option<WorkloadPlace>], server: usize) -> Vec<(usize, &WorkloadPlace)> {
    let placed = places.iter().enumerate().filter_map(|(w, place)| Some((w, place.as_ref()?)));
    placed.filter(|(_, place)| place.server == server).collect()
}

fn row(planned: &PlannedCluster, index: usize, place: &WorkloadPlace) -> Vec<String> {
    let workload = &planned.instance.workloads[index];
    let slo = workload.slo.latency.0;
    let bound = place.guarantee.total;
    let limits = planned.placement.servers[place.server].limits_of(index);
    let limit = |stage: Stage| format!("{} {}", percent(limits[stage].rate), time(limits[stage].burst));
    vec![
        format!("  {}", workload.name),
        place.guarantee.priority.to_string(),
        workload.slo.to_string(),
        time(bound),
        percent(1.0 - bound / slo),
        limit(Stage::NetworkIn),
        limit(Stage::Storage),
        limit(Stage::NetworkOut),
    ]
}

/// An SLO of a workload beside the first, below the row of the workload.
fn objective_row(objective: &ObjectiveBound) -> Vec<String> {
    let ObjectiveBound { slo, bound_s, slack_s } = *objective;
    let mut cells = vec![String::new(); 8];
    cells[2] = slo.to_string();
    cells[3] = time(bound_s);
    cells[4] = percent(slack_s / slo.slo.latency.0);
    cells
}

/// Describes the load of a server in one line.
fn load(planned: &PlannedCluster, number: usize) -> String {
    let server = &planned.placement.servers[number];
    let mean = planned.mean_load(server);
    format!(
        "{}; mean load {}",
        plural(server.members.len(), "workload"),
        by_stage(mean.iter().map(|(stage, load)| (stage, *load)))
    )
}

fn servers(planned: &PlannedCluster) -> String {
    let mut table = TextTable::new(&[
        ("server", Align::Left),
        ("workloads", Align::Right),
        ("tightest", Align::Left),
        ("slack", Align::Right),
        ("load network-in", Align::Right),
        ("storage", Align::Right),
        ("network-out", Align::Right),
    ]);
    let places = planned.places();
    for (number, server) in planned.placement.servers.iter().enumerate() {
        let slack = |w: usize, place: &WorkloadPlace| {
            1.0 - planned.instance.share_of_slos(w, server.class, place.guarantee.total)
        };
        let members = members(&places, number).into_iter().map(|(w, place)| (slack(w, place), w));
        let (slack, tightest) =
            members.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a server in use has members");
        let mean = planned.mean_load(server);
        let mut cells = vec![
            planned.names[number].clone(),
            server.members.len().to_string(),
            planned.instance.workloads[tightest].name.clone(),
            percent(slack),
        ];
        cells.extend(mean.iter().map(|(_, load)| percent(*load)));
        table.row(cells);
    }
    let table = table.without_first(&["load network-in", "network-out"]);
    table.answered_by(&["slack", "workloads"]).render()
}

/// The links of client hosts; empty if bounds count none.
pub(crate) fn hosts(planned: &PlannedCluster) -> String {
    let hosts = planned.hosts();
    if hosts.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        ("client host", Align::Left),
        ("workloads", Align::Right),
        ("load out", Align::Right),
        ("load in", Align::Right),
        ("longest wait out", Align::Right),
        ("longest wait in", Align::Right),
    ]);
    for host in hosts {
        let mut cells = vec![host.name, host.workloads.to_string()];
        cells.extend(host.mean_load.map(percent));
        cells
            .extend(host.delay_s.map(|delay| if host.workloads == 0 { "–".to_owned() } else { time(delay) }));
        table.row(cells);
    }
    let table = table.without_first(&["load out", "load in"]);
    format!("\n{}", table.answered_by(&["longest wait out", "longest wait in"]).render())
}

/// Formats refused workloads, a line each.
pub(crate) fn not_admitted(refused: &[RefusedWorkload]) -> String {
    let line = |RefusedWorkload { workload, slo, reason, .. }: &RefusedWorkload| {
        format!("not admitted: {workload} ({slo}): {reason}\n")
    };
    refused.iter().map(line).collect()
}

/// Refused workloads in the short form.
const REFUSED_SHOWN: usize = 15;

/// Refused workloads with why, and what would admit them; the first of many unless `detailed`.
pub(crate) fn refused(planned: &PlannedCluster, detailed: bool) -> String {
    let refused = planned.refused();
    let shown = if detailed { refused.len() } else { refused.len().min(REFUSED_SHOWN) };
    let mut text = not_admitted(&refused[..shown]);
    if shown < refused.len() {
        text.push_str(&format!("and {} more (--all lists them)\n", refused.len() - shown));
    }
    text
}
