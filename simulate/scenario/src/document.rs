//! A scenario as text: read, changed by path, varied, and turned into cases.

use crate::error::scenario_error;
use crate::file::Scenario;
use crate::simulation_case::SimulationCase;
use crate::vary::{AxisChoice, AxisSetting, combinations};
use model::{NAME_EXPECTED, OperationError, is_usable_name};
use operation::own_files::{OwnFile, mistaken};
use operation::toml_path;
use std::path::{Path, PathBuf};
use toml::Value;

/// A scenario file that can be read, with values that can be replaced.
#[derive(Debug, Clone)]
pub struct ScenarioDocument {
    /// Origin of the text, for messages.
    origin: String,
    /// The name that it has unless the file gives it one.
    stem: String,
    /// The folder to which paths in it are relative.
    folder: PathBuf,
    table: toml::Table,
}

/// One combination of the varied values.
#[derive(Debug, Clone)]
pub struct Variant {
    /// The choice on each axis, in the order of the file; empty when nothing is varied.
    pub choices: Vec<AxisChoice>,
    /// The document with these choices.
    pub document: ScenarioDocument,
}

impl ScenarioDocument {
    /// Reads a file, or standard input where the path is `-`.
    ///
    /// # Errors
    /// When it cannot be read or is not a scenario.
    pub fn read(path: &Path) -> Result<Self, OperationError> {
        let origin = path.display().to_string();
        let text = match origin.as_str() {
            "-" => std::io::read_to_string(std::io::stdin()),
            _ => std::fs::read_to_string(path),
        };
        let text = text.map_err(|error| {
            OperationError::input(format_args!("{origin}: cannot read the scenario: {error}"))
                .hint("check the path and its permissions")
        })?;
        Self::parse(path, &text)
    }

    /// Parses the text of a file that is or could be at `path`.
    ///
    /// # Errors
    /// When it is not a scenario: the error gives line, column and what was expected.
    pub fn parse(path: &Path, text: &str) -> Result<Self, OperationError> {
        let origin = path.display().to_string();
        // Deserialised from the text once, because only errors of text have a line.
        toml::from_str::<Scenario>(text).map_err(|error| {
            mistaken(&origin, text, OwnFile::Scenario)
                .unwrap_or_else(|| scenario_error(&origin, &error.to_string()))
        })?;
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| scenario_error(&origin, &error.to_string()))?;
        if let Some(name) = table.values().find_map(unusable_name) {
            return Err(scenario_error(&origin, &format!("{name:?}: {NAME_EXPECTED}")));
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { origin, stem, folder, table })
    }

    /// Replaces the values at a path, such as `station.*.workers`. The value is as in a file; text needs no quotes.
    ///
    /// # Errors
    /// When nothing is there.
    pub fn set(&mut self, path: &str, value: &str) -> Result<(), OperationError> {
        let table = format!("value = {value}").parse::<toml::Table>().ok();
        let parsed = table.and_then(|mut table| table.remove("value"));
        self.put(path, &parsed.unwrap_or_else(|| Value::String(value.to_owned())))
    }

    /// Removes the axes that vary only values at paths accepted by `is_given`, and returns their names.
    /// For values that the user sets in another way.
    ///
    /// # Errors
    /// When the file is not a scenario.
    pub fn remove_axes(&mut self, is_given: impl Fn(&str) -> bool) -> Result<Vec<String>, OperationError> {
        let axes = self.scenario()?.vary;
        let removed: Vec<bool> = axes.iter().map(|axis| axis.varies_only(&is_given)).collect();
        if let Some(Value::Array(vary)) = self.table.get_mut("vary") {
            let mut keep = removed.iter().map(|is_removed| !is_removed);
            vary.retain(|_| keep.next().unwrap_or(true));
        }
        let named = axes.iter().zip(removed).filter(|(_, is_removed)| *is_removed);
        Ok(named.map(|(axis, _)| axis.name().to_owned()).collect())
    }

    /// Returns one document for each combination of varied values; the document itself if it varies
    /// nothing.
    ///
    /// # Errors
    /// When a path of `[[vary]]` matches nothing, or there are too many combinations.
    pub fn variants(&self) -> Result<Vec<Variant>, OperationError> {
        let axes = self.scenario()?.vary;
        let all = combinations(&axes).map_err(|error| self.error(&error))?;
        let variant = |settings: Vec<AxisSetting>| {
            let mut document = self.clone();
            document.table.remove("vary");
            let mut choices = Vec::with_capacity(settings.len());
            for (choice, values) in settings {
                for (path, value) in values {
                    document.put(&path, &value)?;
                }
                choices.push(choice);
            }
            Ok(Variant { choices, document })
        };
        all.into_iter().map(variant).collect()
    }

    /// The name that the file gives, or its own.
    pub fn name(&self) -> &str {
        self.table.get("name").and_then(Value::as_str).unwrap_or(&self.stem)
    }

    /// Returns true if a text of the document is the path of this file, such as that of a trace, policy
    /// or profile.
    pub fn names_file(&self, file: &Path) -> bool {
        let Ok(wanted) = file.canonicalize() else { return false };
        let is_it = |text: &str| self.folder.join(text).canonicalize().is_ok_and(|found| found == wanted);
        self.table.values().any(|value| has_text(value, &is_it))
    }

    /// Builds the case that this document describes; varied values stay as they are in the file.
    ///
    /// # Errors
    /// When names do not match, a trace cannot be read, or a value is out of its range.
    pub fn case(&self) -> Result<SimulationCase, OperationError> {
        let mut scenario = self.scenario()?;
        let name = scenario.name.take().unwrap_or_else(|| self.stem.clone());
        SimulationCase::build(name, scenario, &self.folder).map_err(|error| self.error(&error))
    }

    fn put(&mut self, path: &str, value: &Value) -> Result<(), OperationError> {
        match toml_path::set(&mut self.table, path, value) {
            Ok(0) => Err(self.error(&format!("'{path}': nothing is there"))),
            Ok(_) => Ok(()),
            Err(error) => Err(self.error(&error)),
        }
    }

    /// An error about this scenario.
    pub(crate) fn error(&self, message: &str) -> OperationError {
        scenario_error(&self.origin, message)
    }

    fn scenario(&self) -> Result<Scenario, OperationError> {
        let value = Value::Table(self.table.clone());
        value.try_into().map_err(|error: toml::de::Error| self.error(&error.to_string()))
    }
}

/// A name of something that people could not tell from others in tables.
fn unusable_name(value: &Value) -> Option<&str> {
    match value {
        Value::Array(values) => values.iter().find_map(unusable_name),
        Value::Table(table) => {
            let own = table.get("name").and_then(Value::as_str).filter(|name| !is_usable_name(name));
            own.or_else(|| table.values().find_map(unusable_name))
        }
        _ => None,
    }
}

/// Returns true if `is_it` accepts some text in a value.
fn has_text(value: &Value, is_it: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_it(text),
        Value::Array(values) => values.iter().any(|value| has_text(value, is_it)),
        Value::Table(table) => table.values().any(|value| has_text(value, is_it)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[run]\nload = 0.5\n[[station]]\nname = \"web\"\nworkers = 1\ndiscipline = \"fifo\"\n\
        [[entry]]\narrivals = \"poisson(500/s)\"\nservice = { web = \"exp(1ms)\" }\n";

    fn document(more: &str) -> Result<ScenarioDocument, OperationError> {
        ScenarioDocument::parse(Path::new("folder/queue.toml"), &format!("{FILE}{more}"))
    }

    #[test]
    fn values_are_replaced_with_or_without_quotes() {
        let mut document = document("").unwrap();
        assert_eq!(document.name(), "queue");
        document.set("station.web.workers", "4").unwrap();
        document.set("station.web.discipline", "round-robin(slice=50us)").unwrap();
        document.set("entry.0.service.web", "\"exp(2ms)\"").unwrap();
        let case = document.case().unwrap();
        assert_eq!(case.network.stations[0].workers, 4);
        // 0.5 of four workers stays when everything else changes.
        assert!((case.utilisation(0) - 0.5).abs() < 1e-12);
        assert!(
            document
                .set("station.db.workers", "4")
                .unwrap_err()
                .message
                .contains("folder/queue.toml: 'station.db")
        );
        document.set("station.web.worker", "4").unwrap();
        assert!(document.case().map(drop).unwrap_err().message.contains("worker"));
    }

    #[test]
    fn variants_are_all_combinations_in_the_order_of_the_file() {
        let vary = "[[vary]]\nname = \"load\"\nset = \"run.load\"\nvalues = [0.5, 0.9]\n[[vary]]\nname = \"order\"\n\
            cases = [{ name = \"as it is\" }, { name = \"LIFO\", set = { \"station.*.discipline\" = \"lifo\" } }]\n";
        let variants = document(vary).unwrap().variants().unwrap();
        let choices =
            |variant: &Variant| variant.choices.iter().map(|choice| choice.value.clone()).collect::<Vec<_>>();
        let all: Vec<_> = variants.iter().map(choices).collect();
        assert_eq!(all, [["0.5", "as it is"], ["0.5", "LIFO"], ["0.9", "as it is"], ["0.9", "LIFO"]]);
        let last = variants[3].document.case().unwrap();
        assert_eq!(last.network.stations[0].discipline, ::discipline::serve::DisciplineSpec::Lifo);
        assert!((last.busiest().1 - 0.9).abs() < 1e-12);
        assert_eq!(document("").unwrap().variants().unwrap().len(), 1);
    }

    #[test]
    fn axes_of_values_that_are_given_otherwise_are_removed() {
        let vary = "[[vary]]\nname = \"load\"\nset = \"run.load\"\nvalues = [0.5, 0.9]\n[[vary]]\nname = \"both\"\n\
            cases = [{ name = \"a\", set = { \"run.load\" = 0.7, \"station.web.workers\" = 2 } }]\n\
            [[vary]]\nname = \"as it is\"\ncases = [{ name = \"b\" }]\n";
        let mut varied = document(vary).unwrap();
        assert!(varied.remove_axes(|path| path == "run.requests").unwrap().is_empty());
        assert_eq!(varied.remove_axes(|path| path == "run.load").unwrap(), ["load"]);
        let variants = varied.variants().unwrap();
        assert_eq!(variants.len(), 1);
        let axes: Vec<&str> = variants[0].choices.iter().map(|choice| choice.axis.as_str()).collect();
        assert_eq!(axes, ["both", "as it is"]);
        assert!(document("").unwrap().remove_axes(|_| true).unwrap().is_empty());
    }

    #[test]
    fn names_are_in_one_line() {
        for name in ["a\\nb", "\\u001B[31m", "  "] {
            let text = FILE.replace("\"web\"", &format!("\"{name}\""));
            let error = ScenarioDocument::parse(Path::new("folder/queue.toml"), &text).unwrap_err();
            assert!(error.message.contains(NAME_EXPECTED), "{error}");
        }
    }

    #[test]
    fn errors_of_what_is_varied_are_reported() {
        for (vary, part) in [
            ("name = \"x\"", "expected set and values, or cases"),
            ("name = \"x\"\nset = \"run.load\"\nvalues = []", "at least one value"),
            ("name = \"x\"\nset = \"nowhere.at.all\"\nvalues = [1]", "no 'nowhere' here"),
            ("name = \"x\"\nvalue = 3", "unknown field"),
        ] {
            let error =
                document(&format!("[[vary]]\n{vary}\n")).and_then(|document| document.variants().map(drop));
            let error = error.unwrap_err();
            assert!(error.message.contains(part), "{error}");
        }
    }
}
