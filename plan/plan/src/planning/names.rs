//! Names of servers in use, `<class>-<n>`.

use crate::cluster::server_name;
use placement::{Placement, PlanningProblem};
use std::collections::BTreeMap;

/// Names of servers by their number in a fleet.
#[derive(Debug, Default)]
pub(super) struct ServerNames(BTreeMap<usize, String>);

impl ServerNames {
    /// Assigns an existing name to the server with this number.
    pub(super) fn give(&mut self, number: usize, name: String) {
        self.0.insert(number, name);
    }

    /// Returns the names of all servers: those assigned, those that their workloads ask for, and the first free
    /// `<class>-<n>` for the others. `numbers` are the keys of the servers of the placement.
    pub(super) fn complete(
        mut self,
        instance: &PlanningProblem,
        numbers: &[usize],
        placement: &Placement,
    ) -> Vec<String> {
        for (position, number) in numbers.iter().enumerate() {
            if let Some(asked) = placement.numbers.get(position).copied().flatten() {
                let class = placement.servers[position].class;
                self.0.entry(*number).or_insert_with(|| server_name(&instance.classes[class].name, asked));
            }
        }
        let mut taken: Vec<String> = self.0.values().cloned().collect();
        let mut names = Vec::new();
        for (number, server) in numbers.iter().zip(&placement.servers) {
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

/// The names of the servers of a new plan.
pub(super) fn names_of(instance: &PlanningProblem, placement: &Placement) -> Vec<String> {
    fresh_names(instance, placement.servers.iter().map(|server| server.class), &placement.numbers)
}

/// `<class>-<n>`: as workloads ask, and otherwise counted by class in the order of the servers.
pub(super) fn fresh_names(
    instance: &PlanningProblem,
    classes: impl Iterator<Item = usize>,
    numbers: &[Option<usize>],
) -> Vec<String> {
    let classes: Vec<usize> = classes.collect();
    let numbers = placement::fresh_numbers(&classes, numbers);
    let named = classes.iter().zip(numbers);
    named.map(|(&class, number)| server_name(&instance.classes[class].name, number)).collect()
}
