//! Recognises the program's own files, so that a verb which is given the file of another one can name it.

use model::OperationError;

/// A file that people write or a verb writes for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFile {
    /// Stations and requests to simulate.
    Scenario,
    /// Servers and workloads to plan.
    Cluster,
    /// Hosts, servers and clients to which a policy is applied.
    Hosts,
    /// Workloads to generate.
    Load,
    /// A plan's placement, priorities and limits.
    Policy,
    /// Device time by request size.
    DeviceProfile,
}

/// Name of a file, and the command that reads it.
struct OwnFileRow {
    file: OwnFile,
    name: &'static str,
    command: &'static str,
}

const FILES: [OwnFileRow; 6] = [
    OwnFileRow { file: OwnFile::Scenario, name: "a scenario", command: "tailwright simulate FILE" },
    OwnFileRow { file: OwnFile::Cluster, name: "a cluster file", command: "tailwright plan FILE" },
    OwnFileRow {
        file: OwnFile::Hosts,
        name: "a hosts file",
        command: "tailwright apply POLICY.json --hosts FILE --dry-run",
    },
    OwnFileRow { file: OwnFile::Load, name: "a load file", command: "tailwright load FILE" },
    OwnFileRow {
        file: OwnFile::Policy,
        name: "a policy",
        command: "tailwright apply FILE --hosts HOSTS.toml --dry-run",
    },
    OwnFileRow {
        file: OwnFile::DeviceProfile,
        name: "a device profile",
        command: "tailwright plan CLUSTER.toml, where storage = \"FILE\"",
    },
];

/// Returns the kind of a file by its content; `None` if it is none of ours, or not even TOML or JSON.
pub fn recognise(text: &str) -> Option<OwnFile> {
    if let Ok(document) = serde_json::from_str::<serde_json::Value>(text) {
        let format = document["format"].as_str().unwrap_or_default();
        return if format == "tailwright.policy" {
            Some(OwnFile::Policy)
        } else if format.starts_with("tailwright-device") {
            Some(OwnFile::DeviceProfile)
        } else if document["server"].is_array() && document["workload"].is_array() {
            Some(OwnFile::Cluster)
        } else {
            None
        };
    }
    let table = text.parse::<toml::Table>().ok()?;
    let has = |key: &str| table.contains_key(key);
    let servers = table.get("server");
    let workloads = table.get("workload").and_then(toml::Value::as_array);
    let workload_has = |key: &str| workloads.is_some_and(|all| all.iter().any(|one| one.get(key).is_some()));
    let has_servers = servers.is_some_and(toml::Value::is_array);
    if has("station") || has("entry") || servers.is_some_and(toml::Value::is_table) {
        Some(OwnFile::Scenario)
    } else if has_servers && workloads.is_some() {
        Some(OwnFile::Cluster)
    } else if has("host") || has("client") {
        Some(OwnFile::Hosts)
    } else if has_servers {
        Some(OwnFile::Cluster)
    } else if workload_has("target") || has("target") {
        Some(OwnFile::Load)
    } else {
        None
    }
}

/// Returns the error for a file that should be `expected` and is recognised as something else. `name` may be
/// empty if the caller adds it.
pub fn mistaken(name: &str, text: &str, expected: OwnFile) -> Option<OperationError> {
    let found = recognise(text).filter(|found| *found != expected)?;
    let row = |file: OwnFile| FILES.iter().find(|row| row.file == file).expect("a row for each file");
    let message = format!("expected {}, found {}", row(expected).name, row(found).name);
    let message = if name.is_empty() { message } else { format!("{name}: {message}") };
    let command = row(found).command;
    let command = if name.is_empty() { command.to_owned() } else { command.replace("FILE", name) };
    Some(OperationError::input(message).hint(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_content() {
        for (text, file) in [
            ("[run]\n[[station]]\nname = \"a\"\n[[entry]]\n", Some(OwnFile::Scenario)),
            ("[server]\nprofile = \"ssd.json\"\n[[workload]]\nname = \"a\"\n", Some(OwnFile::Scenario)),
            (
                "safety_margin = 1.1\n[[server]]\nclass = \"a\"\n[[workload]]\nname = \"a\"\n",
                Some(OwnFile::Cluster),
            ),
            ("[[host]]\nname = \"h\"\n[[server]]\nname = \"s\"\n", Some(OwnFile::Hosts)),
            (
                "[[host]]\nname = \"h\"\n[[server]]\nclas = \"s\"\n[[workload]]\nname = \"a\"\n",
                Some(OwnFile::Cluster),
            ),
            ("[[workload]]\nname = \"a\"\ntarget = \"http://127.0.0.1:80\"\n", Some(OwnFile::Load)),
            ("{\"format\": \"tailwright.policy\", \"version\": 3}", Some(OwnFile::Policy)),
            ("{\"format\": \"tailwright-device-1\"}", Some(OwnFile::DeviceProfile)),
            ("{\"a\": 1}", None),
            ("arrival_ns,size,op\n", None),
            ("", None),
        ] {
            assert_eq!(recognise(text), file, "{text}");
        }
        let error = mistaken("sc.toml", "[[entry]]\n", OwnFile::Cluster).unwrap();
        assert!(
            error.message.contains("sc.toml: expected a cluster file, found a scenario"),
            "{}",
            error.message
        );
        assert!(mistaken("sc.toml", "[[entry]]\n", OwnFile::Scenario).is_none());
    }
}
