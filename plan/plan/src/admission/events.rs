//! Arrivals and departures, in order.

use model::OperationError;
use operation::files::read_text;
use operation::text::unknown_workload;
use std::path::Path;

/// Something that happens to a cluster; workloads are indices into those of the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdmissionEvent {
    /// These workloads ask for a place, all together.
    Arrive(Vec<usize>),
    /// This workload leaves the cluster.
    Depart(usize),
}

/// All workloads arrive in the given order; members of a group arrive with its first one.
pub(super) fn everybody_arrives(order: &[usize], groups: &[usize]) -> Vec<AdmissionEvent> {
    let first =
        |workload: usize| order.iter().find(|&&other| groups[other] == groups[workload]) == Some(&workload);
    let members =
        |workload: usize| order.iter().copied().filter(|&o| groups[o] == groups[workload]).collect();
    order
        .iter()
        .filter(|&&workload| first(workload))
        .map(|&workload| AdmissionEvent::Arrive(members(workload)))
        .collect()
}

/// Reads lines `arrive NAME …` (a group, if several) and `depart NAME`; commas or spaces, # for remarks.
pub(super) fn read_events(path: &Path, names: &[&str]) -> Result<Vec<AdmissionEvent>, OperationError> {
    let text = read_text(path, "list of events")?;
    let events = parse(&text, names).map_err(|(line, message)| {
        OperationError::input(format_args!("{}:{line}: {message}", path.display()))
    })?;
    if events.is_empty() {
        return Err(OperationError::input(format_args!(
            "{}: there are no events: expected lines such as 'arrive NAME' or 'depart NAME'",
            path.display()
        ))
        .hint("without --events all workloads arrive in the order of the input"));
    }
    Ok(events)
}

fn parse(text: &str, names: &[&str]) -> Result<Vec<AdmissionEvent>, (usize, String)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let meaningful = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    meaningful.map(|(number, line)| event(line, names).map_err(|message| (number, message))).collect()
}

fn event(line: &str, names: &[&str]) -> Result<AdmissionEvent, String> {
    let mut words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
    let verb = words.next().unwrap_or_default().to_ascii_lowercase();
    let find = |name: &str| {
        names.iter().position(|known| *known == name).ok_or_else(|| unknown_workload(name, names))
    };
    let members = words.map(find).collect::<Result<Vec<usize>, _>>()?;
    match (verb.as_str(), &members[..]) {
        ("arrive", [_, ..]) => Ok(AdmissionEvent::Arrive(members)),
        ("depart", &[one]) => Ok(AdmissionEvent::Depart(one)),
        _ => Err(format!("expected 'arrive NAME …' or 'depart NAME', found '{line}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_events_and_says_where_one_is_wrong() {
        let names = ["a", "b", "c"];
        let text = "# morning\narrive,a\narrive b c\n\ndepart a\nArrive a\n";
        let expected = [
            AdmissionEvent::Arrive(vec![0]),
            AdmissionEvent::Arrive(vec![1, 2]),
            AdmissionEvent::Depart(0),
            AdmissionEvent::Arrive(vec![0]),
        ];
        assert_eq!(parse(text, &names).unwrap(), expected);
        for (text, line, what) in [
            ("arrive a\narrive x", 2, "no workload 'x'"),
            ("arrive", 1, "expected 'arrive"),
            ("depart a b", 1, "expected 'arrive"),
            ("stay a", 1, "expected 'arrive"),
        ] {
            let (number, message) = parse(text, &names).unwrap_err();
            assert!(number == line && message.contains(what), "{text}: {number}: {message}");
        }
    }

    #[test]
    fn a_group_arrives_with_its_first_member() {
        let events = everybody_arrives(&[3, 0, 2, 1], &[0, 1, 0, 2]);
        assert_eq!(
            events,
            [
                AdmissionEvent::Arrive(vec![3]),
                AdmissionEvent::Arrive(vec![0, 2]),
                AdmissionEvent::Arrive(vec![1])
            ]
        );
    }
}
