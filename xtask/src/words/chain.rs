//! How deep the workspace is: the longest chain of crates of which each ships with the next.

use crate::tidy::manifest::Crate;

/// The crates of the longest chain, the one that needs all others first.
pub(super) fn longest(crates: &[Crate]) -> Vec<&str> {
    let mut best = Vec::new();
    for krate in crates {
        let chain = from(krate, crates);
        if chain.len() > best.len() {
            best = chain;
        }
    }
    best
}

/// The longest chain that begins here; crates have no circles.
fn from<'a>(krate: &'a Crate, crates: &'a [Crate]) -> Vec<&'a str> {
    let shipped = krate.dependencies.iter().filter(|dependency| dependency.shipped);
    let below = shipped
        .filter_map(|dependency| crates.iter().find(|other| other.short_name() == dependency.name))
        .map(|other| from(other, crates))
        .max_by_key(Vec::len);
    [vec![krate.short_name()], below.unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::manifest::Dependency;

    fn a_crate(name: &str, dependencies: &[(&str, bool)]) -> Crate {
        let mut krate = Crate { folder: format!("crates/{name}"), ..Crate::default() };
        for (name, shipped) in dependencies {
            let name = (*name).to_owned();
            krate.dependencies.push(Dependency { name, line: 1, shipped: *shipped, commented: true });
        }
        krate
    }

    #[test]
    fn the_longest_of_several_without_those_of_tests() {
        let crates = [
            a_crate("a", &[("d", true), ("b", true), ("serde", true)]),
            a_crate("b", &[("c", true)]),
            a_crate("c", &[("d", false)]),
            a_crate("d", &[]),
        ];
        assert_eq!(longest(&crates), ["a", "b", "c"]);
    }
}
