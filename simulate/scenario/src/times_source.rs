//! Times in a scenario: a distribution, or measured values in a file.
//!
//! `empirical("FILE")` is each time of a file with the same probability: one per line, or a column of a CSV with a
//! header, `empirical("FILE", column="duration_us")`. A time without a unit has that of the column's name (`_s`, `_ms`,
//! `_us`, `_ns`).

use crate::text_field::ReadText;
use arrivals::TimeDistribution;
use std::path::{Path, PathBuf};
use units::Nanos;

/// Source of the times in a scenario.
#[derive(Debug, Clone)]
pub(crate) enum TimesSource {
    Distribution(TimeDistribution),
    Measured { file: PathBuf, column: Option<String> },
}

impl ReadText for TimesSource {
    fn read(text: &str) -> Result<Self, String> {
        let Some(inside) = text.trim().strip_prefix("empirical(") else {
            return TimeDistribution::read(text).map(Self::Distribution);
        };
        let expected = || {
            let form = "empirical(\"FILE\") or empirical(\"FILE\", column=\"NAME\")";
            format!("law '{text}', expected {form}")
        };
        let inside = inside.strip_suffix(')').ok_or_else(expected)?;
        let mut quoted = inside.split(['"', '\'']);
        let parts: Vec<&str> = quoted.by_ref().map(str::trim).collect();
        match parts.as_slice() {
            ["", file, ""] => Ok(Self::Measured { file: file.into(), column: None }),
            ["", file, middle, column, ""] if middle.replace(' ', "") == ",column=" => {
                Ok(Self::Measured { file: file.into(), column: Some((*column).to_owned()) })
            }
            _ => Err(expected()),
        }
    }
}

impl TimesSource {
    /// The distribution of the times; files are relative to `folder`.
    pub(crate) fn distribution(&self, folder: &Path) -> Result<TimeDistribution, String> {
        match self {
            Self::Distribution(distribution) => Ok(distribution.clone()),
            Self::Measured { file, column } => {
                let path = folder.join(file);
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
                read_times(&text, column.as_deref())
                    .and_then(|times| TimeDistribution::empirical(times).map_err(|error| error.to_string()))
                    .map_err(|error| format!("{}: {error}", path.display()))
            }
        }
    }
}

/// The times of a file, without its empty lines.
fn read_times(text: &str, column: Option<&str>) -> Result<Vec<Nanos>, String> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some(column) = column else {
        return lines.map(|(number, line)| read_time(number, line, "")).collect();
    };
    let (_, header) = lines.next().ok_or("expected a header with the names of columns")?;
    let index = header.split(',').position(|name| name.trim() == column);
    let index = index.ok_or_else(|| format!("expected a column '{column}', found {header}"))?;
    let unit = ["ns", "us", "ms", "s"].into_iter().find(|unit| column.ends_with(&format!("_{unit}")));
    let mut times = Vec::new();
    for (number, line) in lines {
        let field = line.split(',').nth(index);
        let field = field.ok_or_else(|| format!("line {number}: no column {}", index + 1))?;
        times.push(read_time(number, field, unit.unwrap_or(""))?);
    }
    Ok(times)
}

/// Parses the time in a line; `unit` applies to a number without a unit.
fn read_time(number: usize, text: &str, unit: &str) -> Result<Nanos, String> {
    let text = text.trim();
    let has_no_unit = text.parse::<f64>().is_ok();
    let with_unit = if has_no_unit { format!("{text}{unit}") } else { text.to_owned() };
    let read = with_unit.parse::<Nanos>();
    read.map_err(|_| format!("line {number}: expected a time such as 50us, found '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_own_unit_or_that_of_the_column() {
        assert_eq!(read_times("1ms\n\n 2us\n", None), Ok(vec![Nanos(1_000_000), Nanos(2000)]));
        let csv = "name,duration_us\na,5\nb,7.5\nc,1ms\n";
        assert_eq!(
            read_times(csv, Some("duration_us")),
            Ok(vec![Nanos(5000), Nanos(7500), Nanos(1_000_000)])
        );
        for (text, column, part) in [
            ("5\n", None, "line 1: expected a time such as 50us"),
            ("a,b\n1ms,2ms\n", Some("c"), "column 'c', found a,b"),
            ("a,b\n1ms\n", Some("b"), "line 2: no column 2"),
            ("a\n-1ms\n", Some("a"), "'-1ms'"),
            ("", Some("a"), "a header"),
        ] {
            let error = read_times(text, column).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn files_are_named_in_quotes() {
        for text in ["empirical(\"a b.csv\", column = 'x_s')", "empirical('a b.csv',column=\"x_s\")"] {
            let Ok(TimesSource::Measured { file, column }) = TimesSource::read(text) else {
                panic!("{text}")
            };
            assert_eq!((file.as_path(), column.as_deref()), (Path::new("a b.csv"), Some("x_s")));
        }
        for text in ["empirical(a.csv)", "empirical(\"a.csv\"", "empirical(\"a.csv\", \"b\")"] {
            assert!(TimesSource::read(text).unwrap_err().contains("expected empirical(\"FILE\")"), "{text}");
        }
        assert!(matches!(TimesSource::read("exp(1ms)"), Ok(TimesSource::Distribution(_))));
    }
}
