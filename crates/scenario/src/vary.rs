//! What a scenario varies: axes whose combinations are all run.

use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// An axis as people write it: values of one path, or named cases that set several.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VarySpec {
    name: String,
    set: Option<String>,
    values: Option<Vec<Value>>,
    cases: Option<Vec<CaseSpec>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseSpec {
    name: String,
    #[serde(default)]
    set: BTreeMap<String, Value>,
}

/// What a variant has on one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Name of the axis.
    pub axis: String,
    /// Name of the case, or the value as text.
    pub value: String,
}

/// A choice with the values that it sets, by path.
pub(crate) type Setting = (Choice, Vec<(String, Value)>);

/// More combinations than that are a mistake.
const COMBINATIONS_MAX: usize = 10_000;

impl VarySpec {
    fn settings(&self) -> Result<Vec<Setting>, String> {
        let choice = |value: String| Choice { axis: self.name.clone(), value };
        let settings: Vec<Setting> = match (&self.set, &self.values, &self.cases) {
            (Some(path), Some(values), None) => {
                let one = |value: &Value| (choice(text(value)), vec![(path.clone(), value.clone())]);
                values.iter().map(one).collect()
            }
            (None, None, Some(cases)) => {
                let one =
                    |case: &CaseSpec| (choice(case.name.clone()), case.set.clone().into_iter().collect());
                cases.iter().map(one).collect()
            }
            _ => return Err(format!("vary '{}': expected set and values, or cases", self.name)),
        };
        if settings.is_empty() {
            return Err(format!("vary '{}': expected at least one value", self.name));
        }
        Ok(settings)
    }
}

/// All combinations, the last axis fastest; one without choices when nothing is varied.
pub(crate) fn combinations(axes: &[VarySpec]) -> Result<Vec<Vec<Setting>>, String> {
    let mut all: Vec<Vec<Setting>> = vec![Vec::new()];
    for axis in axes {
        let settings = axis.settings()?;
        if all.len() * settings.len() > COMBINATIONS_MAX {
            return Err(format!("vary: more than {COMBINATIONS_MAX} combinations"));
        }
        let with = |before: &Vec<Setting>| {
            let longer = |setting: &Setting| before.iter().chain([setting]).cloned().collect();
            settings.iter().map(longer).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    Ok(all)
}

/// Text without quotes, numbers as people write them; tables and lists have no short form.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        other => other.type_str().to_owned(),
    }
}
