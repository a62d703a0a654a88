//! Classes by number and by name.

use crate::file::{EntrySpec, KindSpec, Scenario};
use serde::Deserialize;

const CLASSES_MAX: u32 = 1000;

/// A class as an entry or a kind names it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum ClassRef {
    Number(u32),
    Name(String),
}

type Result<T> = std::result::Result<T, String>;

/// The number of a kind's class; 0 unless it says otherwise.
pub(crate) fn number(scenario: &Scenario, kind: &KindSpec) -> Result<u32> {
    match &kind.class {
        None => Ok(0),
        Some(ClassRef::Number(class)) if *class < CLASSES_MAX => Ok(*class),
        Some(ClassRef::Number(class)) => {
            Err(format!("class {class}: classes count from 0 and are below {CLASSES_MAX}"))
        }
        Some(ClassRef::Name(name)) => {
            let found = (0u32..).zip(&scenario.classes).find(|(_, class)| class.name == *name);
            let known =
                || scenario.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>().join(", ");
            found
                .map(|(number, _)| number)
                .ok_or_else(|| format!("class: no [[class]] has the name '{name}'; there are: {}", known()))
        }
    }
}

/// A name for each class: its own, or those of all kinds (of entries without kinds) in it, or its number.
pub(crate) fn names(scenario: &Scenario) -> Result<Vec<String>> {
    let mut members: Vec<Vec<Option<&str>>> = vec![Vec::new(); scenario.classes.len()];
    for entry in &scenario.entries {
        for (class, name) in members_of(scenario, entry)? {
            if members.len() <= class {
                members.resize(class + 1, Vec::new());
            }
            if !members[class].contains(&name) {
                members[class].push(name);
            }
        }
    }
    members.resize(members.len().max(1), Vec::new());
    let name = |(class, members): (usize, &Vec<Option<&str>>)| match scenario.classes.get(class) {
        Some(spec) => spec.name.clone(),
        None => {
            let names: Option<Vec<&str>> = members.iter().copied().collect();
            names
                .filter(|names| !names.is_empty())
                .map_or_else(|| format!("class {class}"), |names| names.join(", "))
        }
    };
    Ok(members.iter().enumerate().map(name).collect())
}

fn members_of<'a>(scenario: &Scenario, entry: &'a EntrySpec) -> Result<Vec<(usize, Option<&'a str>)>> {
    if entry.kinds.is_empty() {
        let alone = KindSpec { class: entry.class.clone(), ..KindSpec::default() };
        return Ok(vec![(number(scenario, &alone)? as usize, entry.name.as_deref())]);
    }
    let of = |kind: &'a KindSpec| Ok((number(scenario, kind)? as usize, kind.name.as_deref()));
    entry.kinds.iter().map(of).collect()
}
