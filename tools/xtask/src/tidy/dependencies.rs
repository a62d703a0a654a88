//! Checks what crates ship with against [`rules`](super::rules), and that each dependency on a crate from a registry
//! has its reason above it.
//!
//! Dependencies of tests and benchmarks are free: a judge may know both sides.

use super::manifest::Crate;
use super::rules::{EDGES, Edge, FREE_SYSTEMS, FRONT_LIBRARIES, LIMITS, Limit, Reach, is_front};

/// The file that a complaint sends to.
const RULES_FILE: &str = "tools/xtask/src/tidy/rules.rs";

/// Complains about dependencies that the rules do not permit.
pub(crate) fn check(crates: &[Crate]) -> Vec<String> {
    [systems(EDGES, crates), unused(EDGES, crates), limits(LIMITS, crates), front(crates)].concat()
}

/// Complains about dependencies from one system to another that are no edge.
fn systems(edges: &[Edge], crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for krate in crates {
        for target in shipped(krate, crates) {
            if !may_depend(edges, krate, target) {
                complaints.push(format!(
                    "{}/Cargo.toml: {} (in {}) must not depend on {} (in {}); let them meet in base, or add the edge \
                     with its reason to {RULES_FILE}",
                    krate.folder,
                    krate.name(),
                    krate.system(),
                    target.name(),
                    target.system()
                ));
            }
        }
    }
    complaints
}

fn may_depend(edges: &[Edge], from: &Crate, to: &Crate) -> bool {
    // Only the command line of a system may depend on that of another, which FREE_SYSTEMS permit or an edge names.
    let is_hidden = is_front(to.name()) && to.system() != "base" && !is_front(from.name());
    if to.system() == "tools" || is_hidden {
        return false;
    }
    if from.system() == to.system() || to.system() == "base" {
        return true;
    }
    if FREE_SYSTEMS.contains(&from.system()) {
        return to.system() != "app";
    }
    edges.iter().any(|edge| edge.from == from.name() && edge.to.contains(&to.name()))
}

/// Complains about edges that no dependency uses.
fn unused(edges: &[Edge], crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for edge in edges {
        for name in edge.to {
            let from = find(edge.from, crates);
            let is_used = from.is_some_and(|from| shipped(from, crates).any(|to| to.name() == *name));
            if !is_used {
                complaints.push(format!(
                    "{RULES_FILE}: {} does not depend on {name}; remove the edge ({})",
                    edge.from, edge.reason
                ));
            }
        }
    }
    complaints
}

/// Complains about crates that reach, directly or through others, what their limit forbids.
fn limits(limits: &[Limit], crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for limit in limits {
        let (Reach::Only(named) | Reach::Never(named)) = limit.reach;
        for name in named.iter().chain([&limit.of]).filter(|name| find(name, crates).is_none()) {
            complaints
                .push(format!("{RULES_FILE}: the limit of {} names {name}, which is no crate", limit.of));
        }
        let Some(krate) = find(limit.of, crates) else { continue };
        for chain in chains(krate, crates) {
            let end = *chain.last().expect("a chain has an end");
            let is_broken = match limit.reach {
                Reach::Only(permitted) => !permitted.contains(&end),
                Reach::Never(forbidden) => forbidden.contains(&end),
            };
            if is_broken {
                complaints.push(format!(
                    "{}/Cargo.toml: {} must not know {end} ({}; {RULES_FILE}), and depends on it: {}",
                    krate.folder,
                    limit.of,
                    limit.reason,
                    chain.join(" → ")
                ));
            }
        }
    }
    complaints
}

/// Complains about terminals and pages below the command line.
fn front(crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for krate in crates.iter().filter(|krate| !is_front(krate.name())) {
        for dependency in krate.dependencies.iter().filter(|it| it.shipped) {
            if FRONT_LIBRARIES.contains(&dependency.name.as_str()) {
                complaints.push(format!(
                    "{}/Cargo.toml:{}: {} must not link {}; what prints belongs in the cli crate of its system",
                    krate.folder,
                    dependency.line,
                    krate.name(),
                    dependency.name
                ));
            }
        }
    }
    complaints
}

fn find<'a>(name: &str, crates: &'a [Crate]) -> Option<&'a Crate> {
    crates.iter().find(|krate| krate.name() == name)
}

/// The crates of the workspace that a crate ships with directly.
fn shipped<'a>(of: &'a Crate, crates: &'a [Crate]) -> impl Iterator<Item = &'a Crate> {
    of.dependencies.iter().filter(|it| it.shipped).filter_map(|it| find(&it.name, crates))
}

/// One chain of dependencies to each crate of the workspace that `from` ships with.
fn chains<'a>(from: &'a Crate, crates: &'a [Crate]) -> Vec<Vec<&'a str>> {
    let mut found: Vec<Vec<&str>> = vec![vec![from.name()]];
    let mut next = 0;
    while next < found.len() {
        let chain = found[next].clone();
        let end = chain.last().and_then(|name| find(name, crates));
        for dependency in end.into_iter().flat_map(|krate| shipped(krate, crates)) {
            let is_new = !found.iter().any(|chain| chain.last() == Some(&dependency.name()));
            if is_new {
                let mut longer = chain.clone();
                longer.push(dependency.name());
                found.push(longer);
            }
        }
        next += 1;
    }
    found.remove(0);
    found
}

/// Returns the crates of a longest chain of shipped dependencies, from the program down.
pub(crate) fn longest_chain(crates: &[Crate]) -> Vec<&str> {
    crates.iter().map(|krate| longest_from(krate, crates)).max_by_key(Vec::len).unwrap_or_default()
}

fn longest_from<'a>(krate: &'a Crate, crates: &'a [Crate]) -> Vec<&'a str> {
    let below = shipped(krate, crates).map(|next| longest_from(next, crates)).max_by_key(Vec::len);
    [vec![krate.name()], below.unwrap_or_default()].concat()
}

/// Complains about dependencies on crates from a registry with no comment on the line above.
pub(crate) fn uncommented(crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for krate in crates {
        for dependency in &krate.dependencies {
            let is_ours = find(&dependency.name, crates).is_some();
            if !is_ours && !dependency.commented {
                complaints.push(format!(
                    "{}/Cargo.toml:{}: {} needs a comment on the line above that says why it is needed",
                    krate.folder, dependency.line, dependency.name
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Dependency;
    use super::*;

    /// A crate from its folder and what it depends on; names in parentheses are for tests only.
    fn a_crate(folder: &str, dependencies: &[&str]) -> Crate {
        let dependency = |(line, name): (usize, &&str)| Dependency {
            name: name.trim_matches(['(', ')']).to_owned(),
            line,
            shipped: !name.starts_with('('),
            commented: false,
        };
        Crate {
            folder: folder.to_owned(),
            package: folder.rsplit('/').next().unwrap_or(folder).to_owned(),
            dependencies: dependencies.iter().enumerate().map(dependency).collect(),
            ..Crate::default()
        }
    }

    fn one(complaints: &[String], part: &str) {
        assert!(complaints.len() == 1 && complaints[0].contains(part), "{part}: {complaints:?}");
    }

    const LOAD_TO_WIRE: &[Edge] = &[Edge { from: "load", to: &["wire"], reason: "tests" }];

    fn with_wire(of: Crate) -> [Crate; 6] {
        [
            of,
            a_crate("enforce/wire", &[]),
            a_crate("base/units", &[]),
            a_crate("tools/testkit", &[]),
            a_crate("app/tailwright", &[]),
            a_crate("enforce/enforce-cli", &[]),
        ]
    }

    #[test]
    fn systems_meet_in_base_and_at_edges() {
        for krate in [
            a_crate("measure/load", &["wire", "units", "serde"]),
            a_crate("measure/verify", &["units", "(wire)", "(testkit)"]),
            a_crate("enforce/proxy", &["wire"]),
            a_crate("enforce/other-cli", &["enforce-cli"]),
            a_crate("evaluation/lab", &["wire"]),
            a_crate("evaluation/evaluation-cli", &["enforce-cli"]),
            a_crate("app/tailwright", &["wire", "enforce-cli"]),
        ] {
            assert_eq!(systems(LOAD_TO_WIRE, &with_wire(krate)), [""; 0]);
        }
    }

    #[test]
    fn other_dependencies_between_systems_are_refused() {
        for (krate, part) in [
            (
                a_crate("measure/verify", &["wire"]),
                "verify (in measure) must not depend on wire (in enforce)",
            ),
            (a_crate("base/trace", &["wire"]), "on wire"),
            (a_crate("measure/load", &["testkit"]), "on testkit"),
            (a_crate("evaluation/lab", &["tailwright"]), "on tailwright"),
            (a_crate("evaluation/lab", &["enforce-cli"]), "on enforce-cli"),
            (a_crate("enforce/proxy", &["enforce-cli"]), "on enforce-cli"),
        ] {
            one(&systems(LOAD_TO_WIRE, &with_wire(krate)), part);
        }
    }

    #[test]
    fn an_edge_that_is_not_used_goes() {
        let crates = |dependencies| with_wire(a_crate("measure/load", dependencies));
        assert_eq!(unused(LOAD_TO_WIRE, &crates(&["wire"])), [""; 0]);
        one(&unused(LOAD_TO_WIRE, &crates(&["(wire)"])), "load does not depend on wire");
        one(&unused(LOAD_TO_WIRE, &[]), "load does not depend on wire");
    }

    #[test]
    fn limits_hold_through_others_and_not_for_tests() {
        let crates = [
            a_crate("base/a", &["b", "(d)"]),
            a_crate("base/b", &["c"]),
            a_crate("base/c", &[]),
            a_crate("base/d", &[]),
        ];
        let complaints = |of, reach| limits(&[Limit { of, reach, reason: "tests" }], &crates);
        one(&complaints("a", Reach::Never(&["c"])), "a → b → c");
        assert_eq!(complaints("a", Reach::Never(&["d"])), [""; 0]);
        assert_eq!(complaints("a", Reach::Only(&["b", "c"])), [""; 0]);
        one(&complaints("a", Reach::Only(&["b"])), "must not know c");
        assert_eq!(complaints("c", Reach::Only(&[])), [""; 0]);
        one(&complaints("e", Reach::Only(&[])), "names e, which is no crate");
        one(&complaints("c", Reach::Never(&["e"])), "names e, which is no crate");
        assert_eq!(longest_chain(&crates), ["a", "b", "c"]);
    }

    #[test]
    fn only_the_front_prints() {
        let printing = ["clap", "plot"];
        assert_eq!(front(&[a_crate("measure/measure-cli", &printing)]), [""; 0]);
        assert_eq!(front(&[a_crate("measure/load", &["serde", "(clap)"])]), [""; 0]);
        assert_eq!(front(&[a_crate("measure/load", &printing)]).len(), 2);
    }

    #[test]
    fn only_crates_from_a_registry_need_a_reason() {
        let crates = [a_crate("base/a", &["b", "serde"]), a_crate("base/b", &[])];
        one(&uncommented(&crates), "serde");
    }
}
