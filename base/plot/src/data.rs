//! Data of a chart for the page's script: as CSV for download, and as JSON in an attribute of the figure.
//!
//! Rows of the CSV end with a line feed, and quotes are doubled in quotes. Names that a spreadsheet would run as
//! formulas get an apostrophe in front. Numbers are the shortest text that reads back as the same number, in base units;
//! an infinite number is `inf`, and one that is unknown an empty field. The document is in an attribute and not in a
//! `script` element, where names could end the element.

use crate::unit::Unit;

/// Longest name of a file, in characters, without its ending.
const FILE_NAME_MAX: usize = 60;

/// Fields of a JSON object, in the order in which they are written.
#[derive(Debug, Default)]
pub(crate) struct Json(String);

impl Json {
    /// Adds a field with a string.
    pub(crate) fn text(self, name: &str, value: &str) -> Self {
        let quoted = quoted(value);
        self.raw(name, &quoted)
    }

    /// Adds a field with a value that is JSON already.
    pub(crate) fn raw(mut self, name: &str, value: &str) -> Self {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.extend(["\"", name, "\":", value]);
        self
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Joins values that are JSON already to an array.
pub(crate) fn array(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

/// Writes a string with quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c.is_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// Writes a finite number so that the same number is read back; anything else is `null`.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let plain = value.to_string();
    let short = format!("{value:e}");
    if plain.len() > short.len() + 2 { short } else { plain }
}

/// Writes a number as a field of CSV.
pub(crate) fn csv_number(value: f64) -> String {
    match value {
        v if v.is_nan() => String::new(),
        f64::INFINITY => "inf".to_owned(),
        f64::NEG_INFINITY => "-inf".to_owned(),
        v => number(v),
    }
}

/// Writes a text as a field of CSV: in quotes where it needs them, and never as a formula.
pub(crate) fn csv_field(text: &str) -> String {
    let is_formula = text.trim_start().starts_with(['=', '+', '-', '@']) || text.starts_with(['\t', '\r']);
    let safe = if is_formula { format!("'{text}") } else { text.to_owned() };
    if safe.contains(['"', ',', '\n', '\r', '\t']) || safe != safe.trim() {
        return format!("\"{}\"", safe.replace('"', "\"\""));
    }
    safe
}

/// Joins a name and a unit to the heading of a column.
pub(crate) fn csv_heading(name: &str, unit: Unit) -> String {
    let base = match unit {
        Unit::Plain | Unit::Count => return csv_field(name),
        Unit::Seconds => "s",
        Unit::Bytes => "B",
        Unit::BytesPerSec => "B/s",
        Unit::PerSec => "1/s",
        Unit::Percent => "fraction",
    };
    csv_field(format!("{name} ({base})").trim_start())
}

/// Returns the name of a file of CSV for the chart with this title.
pub(crate) fn file_name(title: &str, ending: &str) -> String {
    let words = title.to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.collect::<Vec<_>>().join("-").chars().take(FILE_NAME_MAX).collect();
    let name = if name.is_empty() { "chart" } else { &name };
    format!("{name}{ending}.csv")
}

/// Returns the document of a chart of rows, which has one number for each column; empty without rows. `parts` is the
/// number of series that the legend can show alone.
pub(crate) fn rows_document(
    title: &str,
    columns: &[String],
    rows: impl IntoIterator<Item = (String, Vec<f64>)>,
    parts: usize,
) -> String {
    let mut csv = format!("name,{}\n", columns.join(","));
    let mut is_empty = true;
    for (name, values) in rows {
        is_empty = false;
        let values: Vec<String> = values.into_iter().map(csv_number).collect();
        csv.push_str(&format!("{},{}\n", csv_field(&name), values.join(",")));
    }
    if is_empty {
        return String::new();
    }
    let json = Json::default().text("file", &file_name(title, "")).text("csv", &csv);
    json.raw("parts", &parts.to_string()).end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_quoted_and_never_formulas() {
        for (text, field) in [
            ("plain", "plain"),
            ("", ""),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@sum", "'@sum"),
            (" =1", "' =1"),
            ("x ", "\"x \""),
            ("\t=1", "\"'\t=1\""),
            ("=cmd|'/c calc',\"x\"", "\"'=cmd|'/c calc',\"\"x\"\"\""),
        ] {
            assert_eq!(csv_field(text), field, "{text:?}");
        }
    }

    #[test]
    fn headings_have_base_units_and_files_safe_names() {
        assert_eq!(csv_heading("p99", Unit::Seconds), "p99 (s)");
        assert_eq!(csv_heading("share, above", Unit::Percent), "\"share, above (fraction)\"");
        assert_eq!(csv_heading("", Unit::Bytes), "(B)");
        assert_eq!(file_name("../<Wait> by stage, 99%", ""), "wait-by-stage-99.csv");
        assert_eq!(file_name("\"'", "-decimated"), "chart-decimated.csv");
    }

    #[test]
    fn what_is_no_number_is_empty_or_infinite() {
        let fields = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, 1e300].map(csv_number);
        assert_eq!(fields, ["", "inf", "-inf", "-0.5", "1e300"]);
    }

    proptest! {
        #[test]
        fn numbers_are_read_back(bits: u64) {
            let value = f64::from_bits(bits);
            let text = number(value);
            let read: Option<f64> = text.parse().ok();
            prop_assert_eq!(read.map(f64::to_bits), value.is_finite().then_some(bits), "{}", text);
        }
    }
}
