//! Workloads and SLOs as a CSV table, the form in which scripts give them. Columns are found by the names in
//! the header; others are ignored.

use model::{OperationError, Slo, WorkloadSpec};
use operation::files::read_text;
use std::path::Path;
use units::{Percentile, Seconds};

/// Positions of the columns that matter, and how many cells each line has.
struct SloTableColumns {
    order: Option<usize>,
    workload: usize,
    trace: usize,
    percentile: usize,
    latency: usize,
    count: usize,
}

/// Reads the table. Workloads come in the order of the column `order`, ties in the order of lines; without
/// that column in the order of lines.
pub(super) fn read(path: &Path, traces: &Path) -> Result<Vec<WorkloadSpec>, OperationError> {
    let text = read_text(path, "table of SLOs")?;
    parse(&text, traces).map_err(|(line, message)| {
        OperationError::input(format_args!("{}:{line}: {message}", path.display()))
    })
}

/// The number of a line, from 1, and what is wrong there.
type NumberedError = (usize, String);

fn parse(text: &str, traces: &Path) -> Result<Vec<WorkloadSpec>, NumberedError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or((1, "the file is empty: expected a header".to_owned()))?;
    let columns = SloTableColumns::find(&cells(header)).map_err(|message| (1, message))?;
    let mut rows = Vec::new();
    for (index, line) in lines {
        rows.push(columns.workload(&cells(line), traces).map_err(|message| (index + 1, message))?);
    }
    rows.sort_by_key(|(order, _)| *order);
    Ok(rows.into_iter().map(|(_, spec)| spec).collect())
}

/// The cells of a line, without quotes and spaces around them.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"')).collect()
}

impl SloTableColumns {
    fn find(header: &[&str]) -> Result<Self, String> {
        Ok(Self {
            order: position(header, "order"),
            workload: required(header, "workload")?,
            trace: required(header, "trace")?,
            percentile: required(header, "slo_percentile")?,
            latency: required(header, "slo_latency_s")?,
            count: header.len(),
        })
    }

    /// The workload of a line with its place in the order.
    fn workload(&self, cells: &[&str], traces: &Path) -> Result<(i64, WorkloadSpec), String> {
        if cells.len() != self.count {
            return Err(format!(
                "expected {} cells as in the header, found {} (cells cannot contain commas)",
                self.count,
                cells.len()
            ));
        }
        for (column, at) in [("workload", self.workload), ("trace", self.trace)] {
            if cells[at].is_empty() {
                return Err(unexpected(column, "", "a name"));
            }
        }
        let order = match self.order.map(|at| cells[at]) {
            None => 0,
            Some(text) => text.parse().map_err(|_| unexpected("order", text, "a whole number"))?,
        };
        let percentile = cells[self.percentile];
        let percentile: Percentile = percentile
            .parse()
            .map_err(|_| unexpected("slo_percentile", percentile, "a number above 0 and at most 100"))?;
        let latency = cells[self.latency];
        let slo = latency.parse().ok().and_then(|s| Slo::new(percentile, Seconds(s)));
        let slo = slo.ok_or_else(|| {
            unexpected("slo_latency_s", latency, "seconds above 0 and at most 1e9, such as 0.2")
        })?;
        Ok((order, WorkloadSpec::new(cells[self.workload], traces.join(cells[self.trace]), slo)))
    }
}

fn position(header: &[&str], name: &str) -> Option<usize> {
    header.iter().position(|cell| cell.eq_ignore_ascii_case(name))
}

fn required(header: &[&str], name: &str) -> Result<usize, String> {
    position(header, name).ok_or_else(|| {
        format!(
            "there is no column '{name}': expected a header with workload, trace, slo_percentile, slo_latency_s"
        )
    })
}

fn unexpected(column: &str, found: &str, expected: &str) -> String {
    format!("{column} is '{found}', expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "note,slo_latency_s,workload,trace,slo_percentile";

    fn parse_rows(rows: &str) -> Result<Vec<WorkloadSpec>, NumberedError> {
        parse(&format!("{HEADER}\n{rows}"), Path::new("dir"))
    }

    #[test]
    fn columns_are_found_by_name() {
        let specs = parse_rows("x,0.2,a,t.gz,99.9\r\n\n,0.5,\"b\", u.csv ,p99\n").unwrap();
        assert_eq!(specs[0].slo.to_string(), "99.9% < 200ms");
        assert_eq!((specs[1].name.as_str(), specs[1].trace.as_path()), ("b", Path::new("dir/u.csv")));
    }

    #[test]
    fn the_order_column_decides_the_order() {
        let text = "order,workload,trace,slo_percentile,slo_latency_s\n2,b,t,99,1\n1,a,t,99,1\n";
        let names: Vec<_> = parse(text, Path::new("")).unwrap().into_iter().map(|w| w.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn errors_name_the_line_and_what_was_expected() {
        for (rows, line, part) in [
            ("x,0.2,a,t,99.9\nx,0.2,b,t", 3, "expected 5 cells"),
            ("x,fast,a,t,99", 2, "slo_latency_s is 'fast', expected seconds above 0"),
            ("x,1e300,a,t,99", 2, "slo_latency_s is '1e300', expected seconds above 0 and at most 1e9"),
            ("x,0,a,t,99", 2, "slo_latency_s is '0'"),
            ("x,1,a,t,101", 2, "slo_percentile is '101'"),
            ("x,1,,t,99", 2, "workload is ''"),
        ] {
            let (at, message) = parse_rows(rows).unwrap_err();
            assert!(at == line && message.contains(part), "{rows}: line {at}: {message}");
        }
        assert!(parse("workload,trace\n", Path::new("")).unwrap_err().1.contains("slo_percentile"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_workloads_or_an_error_at_one_of_its_lines(
            rows in proptest::collection::vec("[a-z0-9.,\"%\u{e9} -]{0,40}", 0..6)
        ) {
            match parse_rows(&rows.join("\n")) {
                Ok(specs) => proptest::prop_assert!(specs.len() <= rows.len()),
                Err((line, _)) => proptest::prop_assert!((1..=rows.len() + 1).contains(&line)),
            }
        }
    }
}
