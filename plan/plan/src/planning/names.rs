//! Names of servers in use, `<class>-<n>`.

use crate::cluster::server_name;
use placement::{PlannedServer, PlanningProblem};
use std::collections::BTreeMap;

/// Names of servers by their number in a fleet.
#[derive(Debug, Default)]
pub(super) struct ServerNames(BTreeMap<usize, String>);

impl ServerNames {
    /// Assigns an existing name to the server with this number.
    pub(super) fn give(&mut self, number: usize, name: String) {
        self.0.insert(number, name);
    }

    /// Returns the names of all servers: those assigned, and the first free `<class>-<n>` for the others.
    pub(super) fn complete(
        mut self,
        instance: &PlanningProblem,
        numbers: &[usize],
        servers: &[PlannedServer],
    ) -> Vec<String> {
        let mut taken: Vec<String> = self.0.values().cloned().collect();
        let mut names = Vec::new();
        for (number, server) in numbers.iter().zip(servers) {
            names.push(self.0.remove(number).unwrap_or_else(|| {
                let name = free_name(&instance.classes[server.class].name, &taken);
                taken.push(name.clone());
                name
            }));
        }
        names
    }
}

fn free_name(class: &str, taken: &[String]) -> String {
    let mut names = (1..).map(|number| server_name(class, number));
    names.find(|name| !taken.contains(name)).expect("there are more numbers than servers")
}

/// `<class>-<n>`, counted by class in the order of the servers.
pub(super) fn fresh_names(instance: &PlanningProblem, servers: &[PlannedServer]) -> Vec<String> {
    let mut used = vec![0; instance.classes.len()];
    let mut names = Vec::new();
    for server in servers {
        used[server.class] += 1;
        names.push(server_name(&instance.classes[server.class].name, used[server.class]));
    }
    names
}
