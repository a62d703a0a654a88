//! Dependency rules: crates keep apart what the code map says, and every dependency on somebody else's
//! crate has its reason above it.
//!
//! Rules cover what is shipped. Tests may look further, as judges do.

use super::code_map::{Forbidden, MapRule};
use super::manifest::Crate;

/// No crate depends, directly or through others, on what it must not know.
pub(crate) fn check(rules: &[MapRule], crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for rule in rules {
        let Some(krate) = crates.iter().find(|krate| krate.short_name() == rule.of) else { continue };
        for path in reached(krate, crates) {
            let Some(end) = path.last() else { continue };
            let broken = match &rule.forbidden {
                Forbidden::All => true,
                Forbidden::These(names) => names.iter().any(|name| name == end),
            };
            if broken {
                complaints.push(format!(
                    "{}/Cargo.toml: {} must not know {end} (ARCHITECTURE.md), and depends on it: {}",
                    krate.folder,
                    rule.of,
                    path.join(" → ")
                ));
            }
        }
    }
    complaints
}

/// One chain of dependencies to each crate of the workspace that `from` ships with.
fn reached<'a>(from: &'a Crate, crates: &'a [Crate]) -> Vec<Vec<&'a str>> {
    let mut chains: Vec<Vec<&str>> = vec![vec![from.short_name()]];
    let mut next = 0;
    while next < chains.len() {
        let chain = chains[next].clone();
        let end = crates.iter().find(|krate| Some(&krate.short_name()) == chain.last());
        for dependency in end.iter().flat_map(|krate| &krate.dependencies).filter(|d| d.shipped) {
            let known = |name: &str| crates.iter().any(|krate| krate.short_name() == name);
            let new = !chains.iter().any(|chain| chain.last() == Some(&dependency.name.as_str()));
            if known(&dependency.name) && new {
                let mut longer = chain.clone();
                longer.push(&dependency.name);
                chains.push(longer);
            }
        }
        next += 1;
    }
    chains.remove(0);
    chains
}

/// Dependencies on crates outside the workspace with no comment on the line above.
pub(crate) fn uncommented(crates: &[Crate]) -> Vec<String> {
    let mut complaints = Vec::new();
    for krate in crates {
        for dependency in &krate.dependencies {
            let ours = crates.iter().any(|krate| krate.short_name() == dependency.name);
            if !ours && !dependency.commented {
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

    fn a_crate(name: &str, dependencies: &[(&str, bool)]) -> Crate {
        let dependency = |(line, (name, shipped)): (usize, &(&str, bool))| Dependency {
            name: (*name).to_owned(),
            line,
            shipped: *shipped,
            commented: false,
        };
        Crate {
            folder: format!("crates/{name}"),
            dependencies: dependencies.iter().enumerate().map(dependency).collect(),
            ..Crate::default()
        }
    }

    fn rule(of: &str, forbidden: Forbidden) -> [MapRule; 1] {
        [MapRule { of: of.to_owned(), forbidden }]
    }

    #[test]
    fn what_is_reached_through_others_counts_and_tests_do_not() {
        let crates = [
            a_crate("a", &[("b", true), ("d", false)]),
            a_crate("b", &[("c", true)]),
            a_crate("c", &[]),
            a_crate("d", &[]),
        ];
        let these = |name: &str| Forbidden::These(vec![name.to_owned()]);
        let complaints = check(&rule("a", these("c")), &crates);
        assert!(complaints.len() == 1 && complaints[0].contains("a → b → c"), "{complaints:?}");
        assert_eq!(check(&rule("a", these("d")), &crates), [""; 0]);
        assert_eq!(check(&rule("c", Forbidden::All), &crates), [""; 0]);
        assert_eq!(check(&rule("b", Forbidden::All), &crates).len(), 1);
    }

    #[test]
    fn only_other_peoples_crates_need_a_reason() {
        let crates = [a_crate("a", &[("b", true), ("serde", true)]), a_crate("b", &[])];
        let complaints = uncommented(&crates);
        assert!(complaints.len() == 1 && complaints[0].contains("serde"), "{complaints:?}");
    }
}
