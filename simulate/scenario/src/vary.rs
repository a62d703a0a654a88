//! Variations of a scenario: axes whose combinations are all run.

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

/// The choice of a variant on one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisChoice {
    /// The name of the axis.
    pub axis: String,
    /// The name of the case, or the value as text.
    pub value: String,
}

/// A choice with the values that it sets, by path.
pub(crate) type AxisSetting = (AxisChoice, Vec<(String, Value)>);

/// More combinations than this are taken for a mistake.
const COMBINATIONS_MAX: usize = 10_000;

impl VarySpec {
    /// The choices on this axis, in the order of the file.
    fn settings(&self) -> Result<Vec<AxisSetting>, String> {
        let settings: Vec<AxisSetting> = match (&self.set, &self.values, &self.cases) {
            (Some(path), Some(values), None) => values
                .iter()
                .map(|value| (self.choice(text(value)), vec![(path.clone(), value.clone())]))
                .collect(),
            (None, None, Some(cases)) => cases
                .iter()
                .map(|case| (self.choice(case.name.clone()), case.set.clone().into_iter().collect()))
                .collect(),
            _ => return Err(format!("vary '{}': expected set and values, or cases", self.name)),
        };
        if settings.is_empty() {
            return Err(format!("vary '{}': expected at least one value", self.name));
        }
        Ok(settings)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it varies values, and only at paths that `is_meant` accepts.
    pub(crate) fn varies_only(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let of_cases = self.cases.iter().flatten().flat_map(|case| case.set.keys());
        let mut paths = self.set.iter().chain(of_cases).peekable();
        paths.peek().is_some() && paths.all(|path| is_meant(path))
    }

    fn choice(&self, value: String) -> AxisChoice {
        AxisChoice { axis: self.name.clone(), value }
    }
}

/// All combinations, the last axis fastest; one without choices when nothing is varied.
pub(crate) fn combinations(axes: &[VarySpec]) -> Result<Vec<Vec<AxisSetting>>, String> {
    let mut all: Vec<Vec<AxisSetting>> = vec![Vec::new()];
    for axis in axes {
        let settings = axis.settings()?;
        if all.len() * settings.len() > COMBINATIONS_MAX {
            return Err(format!("vary: more than {COMBINATIONS_MAX} combinations"));
        }
        let mut longer = Vec::with_capacity(all.len() * settings.len());
        for before in &all {
            for setting in &settings {
                longer.push(before.iter().chain([setting]).cloned().collect());
            }
        }
        all = longer;
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
