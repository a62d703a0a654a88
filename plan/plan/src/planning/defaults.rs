//! Cost of inputs that the user did not set, in the bounds of a plan.

use crate::planning::request::PlanRun;
use model::{ServerClass, Stage};
use operation::text::time;

/// An input of a class that has its default, and its part in bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct DefaultCost {
    /// Class of servers.
    pub class: String,
    /// The input as in the cluster file: `packet = "1514B"`.
    pub input: String,
    /// Time that the default adds to each bound on the fullest server at most, before the division by what higher
    /// priorities leave; seconds.
    pub seconds: f64,
}

/// Returns the costs of the defaults of the classes in use.
pub fn default_costs(run: &PlanRun) -> Vec<DefaultCost> {
    let instance = &run.planned.instance;
    let mut costs = Vec::new();
    let on_server = if run.problem.hosts.is_empty() { "" } else { " on the server's links" };
    for (number, (class, server)) in instance.classes.iter().zip(&run.problem.servers).enumerate() {
        let Some(enforced) = class.enforced else { continue };
        let used = run.planned.placement.servers.iter().filter(|server| server.class == number);
        let Some(fullest) = used.max_by_key(|server| server.members.len()) else { continue };
        let standard = ServerClass::new("", 1, std::path::PathBuf::new(), server.network);
        let mut add = |is_default: bool, input: String, seconds: f64| {
            if is_default && seconds > 0.0 {
                costs.push(DefaultCost { class: class.name.clone(), input, seconds });
            }
        };
        let with = fullest.begun(instance, enforced);
        let none = fullest.begun(instance, placement::EnforcedClass { best_effort_request: 0.0, ..enforced });
        add(
            server.best_effort_request == standard.best_effort_request,
            format!("best_effort_request = \"{}\"", server.best_effort_request),
            with[Stage::Storage] - none[Stage::Storage],
        );
        add(
            server.packet == standard.packet,
            format!("packet = \"{}B\"{on_server}", server.packet.0),
            with[Stage::NetworkIn] + with[Stage::NetworkOut],
        );
        add(
            server.proxy == standard.proxy,
            format!("proxy = \"{}\"", time(server.proxy.as_secs())),
            enforced.proxy,
        );
    }
    costs
}

/// Says the costs in a sentence for each class; empty without any.
pub fn describe_default_costs(costs: &[DefaultCost]) -> String {
    let mut text = String::new();
    for of_class in costs.chunk_by(|a, b| a.class == b.class) {
        let parts: Vec<String> =
            of_class.iter().map(|cost| format!("{} {}", cost.input, time(cost.seconds))).collect();
        text.push_str(&format!("Defaults in each bound on '{}': {}.\n", of_class[0].class, parts.join(", ")));
    }
    text
}
