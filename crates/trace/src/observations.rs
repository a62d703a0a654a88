//! Files of observations: Parquet with a row per request.
//!
//! | column | type | |
//! |---|---|---|
//! | `workload` | string | |
//! | `op` | string | `read` or `write` |
//! | `size_bytes` | integer | payload |
//! | `intended_ns` | integer | does not decrease |
//! | `sent_ns` | integer | |
//! | `outcome` | string | `done`, `failed` or `lost` |
//! | `end_ns` | integer or null | null if lost |
//! | `stage_NAME_ns` | integer | time in each stage that was taken, in path order |
//!
//! All instants count from one origin.

use crate::columns::decode::{Checked, Values, guarded, is_placed};
use crate::columns::encode::{error, number, op_text, optional, properties, required, text, texts};
use crate::error::{ErrorKind, Place, TraceError};
use crate::write::Partial;
use model::{Observation, Observations, RequestOutcome};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use units::{Bytes, Nanos};

const GROUP_ROWS: usize = 1 << 17;
const EXPECTED: &str =
    "the columns of observations: workload, op, size_bytes, intended_ns, sent_ns, outcome, end_ns";
const COLUMNS: [(&str, Physical); 7] = [
    ("workload", Physical::BYTE_ARRAY),
    ("op", Physical::BYTE_ARRAY),
    ("size_bytes", Physical::INT64),
    ("intended_ns", Physical::INT64),
    ("sent_ns", Physical::INT64),
    ("outcome", Physical::BYTE_ARRAY),
    ("end_ns", Physical::INT64),
];

/// Writes a file, whole or not at all.
///
/// # Errors
/// When it cannot be written.
///
/// # Panics
/// When a workload has no name or stage times are missing.
pub fn write(path: &Path, observations: &Observations) -> Result<(), TraceError> {
    let fault = |kind| TraceError::new(path, Place::File, kind);
    let io_fault = |error| fault(ErrorKind::Io(error));
    let mut partial = Partial::create(path).map_err(io_fault)?;
    let file = partial.file.try_clone().map_err(io_fault)?;
    encode(file, observations).map_err(|kind| fault(error(kind)))?;
    partial.keep(path).map_err(io_fault)
}

fn encode(file: File, observations: &Observations) -> Result<(), ParquetError> {
    let stages = observations.stages.len();
    assert_eq!(
        observations.stage_times.len(),
        stages * observations.requests.len(),
        "a time per request and stage"
    );
    let schema = Arc::new(schema(&observations.stages)?);
    let mut writer =
        SerializedFileWriter::new(BufWriter::new(file), schema, Arc::new(properties("intended_ns")?))?;
    for (index, rows) in observations.requests.chunks(GROUP_ROWS).enumerate() {
        let mut group = writer.next_row_group()?;
        let name = |row: &Observation| observations.workloads[row.workload as usize].as_str();
        texts(&mut group, rows.iter().map(name))?;
        texts(&mut group, rows.iter().map(|row| op_text(row.op)))?;
        required(&mut group, rows.iter().map(|row| row.size.0))?;
        required(&mut group, rows.iter().map(|row| row.intended.0))?;
        required(&mut group, rows.iter().map(|row| row.sent.0))?;
        texts(&mut group, rows.iter().map(|row| outcome(row).0))?;
        optional(&mut group, rows.iter().map(|row| outcome(row).1))?;
        let first = index * GROUP_ROWS;
        for stage in 0..stages {
            let time = |row: usize| observations.stage_times[(first + row) * stages + stage].0;
            required(&mut group, (0..rows.len()).map(time))?;
        }
        group.close()?;
    }
    let mut inner = writer.into_inner()?;
    io::Write::flush(&mut inner).map_err(|error| ParquetError::External(Box::new(error)))
}

fn outcome(row: &Observation) -> (&'static str, Option<u64>) {
    match row.outcome {
        RequestOutcome::Done(at) => ("done", Some(at.0)),
        RequestOutcome::Failed(at) => ("failed", Some(at.0)),
        RequestOutcome::Lost => ("lost", None),
    }
}

fn schema(stages: &[String]) -> Result<Type, ParquetError> {
    let optional = |name: &str| if name == "end_ns" { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = |(name, physical): (&str, Physical)| match physical {
        Physical::BYTE_ARRAY => text(name),
        _ => number(name, optional(name)),
    };
    let mut fields = COLUMNS.into_iter().map(field).collect::<Result<Vec<_>, _>>()?;
    for stage in stages {
        fields.push(number(&format!("stage_{stage}_ns"), Repetition::REQUIRED)?);
    }
    Type::group_type_builder("observations").with_fields(fields).build()
}

/// Reads a file. Workloads are numbered in the order in which they appear.
///
/// # Errors
/// When it cannot be read, lacks a column, or a row is not an observation: which, and what was expected.
pub fn read(path: &Path) -> Result<Observations, TraceError> {
    let fault = |kind| TraceError::new(path, Place::File, kind);
    let file = File::open(path).map_err(|error| fault(ErrorKind::Io(error)))?;
    let file = guarded(|| SerializedFileReader::new(Checked(file))).map_err(fault)?;
    let metadata = file.metadata().file_metadata();
    let columns = metadata.schema_descr().columns();
    let place = |(name, physical): (&str, Physical)| {
        let is_it = |column: &parquet::schema::types::ColumnDescPtr| {
            let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
            column.path().string() == name && column.physical_type() == physical && flat
        };
        columns.iter().position(is_it)
    };
    let places: Option<Vec<usize>> = COLUMNS.into_iter().map(place).collect();
    let names = || columns.iter().map(|column| column.path().string());
    let Some(places) = places else {
        let found = crate::error::excerpt(names().collect::<Vec<_>>().join(", ").as_bytes());
        return Err(fault(ErrorKind::Malformed { expected: EXPECTED, found }));
    };
    let stage_of = |name: String| Some(name.strip_prefix("stage_")?.strip_suffix("_ns")?.to_owned());
    let stages: Vec<(usize, String)> =
        names().enumerate().filter_map(|(at, name)| Some((at, stage_of(name)?))).collect();
    let mut reading =
        Reading { places, stages: stages.iter().map(|(at, _)| *at).collect(), ..Reading::default() };
    reading.found.stages = stages.into_iter().map(|(_, name)| name).collect();
    for index in 0..file.num_row_groups() {
        let rows = guarded(|| reading.rows(&*file.get_row_group(index)?)).map_err(fault)?;
        reading.take(rows).map_err(|(row, kind)| TraceError::new(path, Place::Record(row), kind))?;
    }
    Ok(reading.found)
}

/// A row before it is checked.
#[derive(Debug, Clone, Default)]
struct Row {
    workload: Option<String>,
    op: Option<String>,
    outcome: Option<String>,
    /// Size, intended, sent, end.
    numbers: [Option<i64>; 4],
    stages: Vec<Option<i64>>,
}

#[derive(Default)]
struct Reading {
    /// Of [`COLUMNS`].
    places: Vec<usize>,
    stages: Vec<usize>,
    workloads: HashMap<String, u32>,
    found: Observations,
}

impl Reading {
    fn rows(&self, group: &dyn RowGroupReader) -> Result<Vec<Row>, ParquetError> {
        is_placed(group.metadata())?;
        let count = usize::try_from(group.metadata().num_rows())
            .map_err(|_| ParquetError::General("a negative number of rows".to_owned()))?;
        // Before memory is taken on the file's word, its first column has to have as many values.
        let words = |at: usize| -> Result<Vec<Option<String>>, ParquetError> {
            let reader = get_typed_column_reader::<ByteArrayType>(group.get_column_reader(at)?);
            collect(Values::new(reader), count, |text| String::from_utf8_lossy(text.data()).into_owned())
        };
        let numbers = |at: usize| -> Result<Vec<Option<i64>>, ParquetError> {
            let reader = get_typed_column_reader::<Int64Type>(group.get_column_reader(at)?);
            collect(Values::new(reader), count, |number| *number)
        };
        let mut rows: Vec<Row> =
            words(self.places[0])?.into_iter().map(|workload| Row { workload, ..Row::default() }).collect();
        let fill = |rows: &mut [Row], at: usize, slot: usize| -> Result<(), ParquetError> {
            let values = numbers(at)?;
            rows.iter_mut().zip(values).for_each(|(row, value)| row.numbers[slot] = value);
            Ok(())
        };
        rows.iter_mut().zip(words(self.places[1])?).for_each(|(row, op)| row.op = op);
        rows.iter_mut().zip(words(self.places[5])?).for_each(|(row, outcome)| row.outcome = outcome);
        for (slot, column) in [2, 3, 4, 6].into_iter().enumerate() {
            fill(&mut rows, self.places[column], slot)?;
        }
        for at in &self.stages {
            rows.iter_mut().zip(numbers(*at)?).for_each(|(row, time)| row.stages.push(time));
        }
        Ok(rows)
    }

    /// Appends rows; the number of the one that is wrong otherwise, from 1.
    fn take(&mut self, rows: Vec<Row>) -> Result<(), (u64, ErrorKind)> {
        for row in rows {
            let number = self.found.requests.len() as u64 + 1;
            let Some((observation, times)) = self.observation(&row) else {
                let expected = "a workload, op read or write, outcome done, failed or lost with its end, and times \
                    that are not negative";
                let found = crate::error::excerpt(format!("{row:?}").as_bytes());
                return Err((number, ErrorKind::Malformed { expected, found }));
            };
            let previous_ns = self.found.requests.last().map_or(0, |last| last.intended.0);
            if observation.intended.0 < previous_ns {
                let arrival_ns = observation.intended.0;
                return Err((number, ErrorKind::Unsorted { previous_ns, arrival_ns }));
            }
            self.found.requests.push(observation);
            self.found.stage_times.extend(times);
        }
        Ok(())
    }

    fn observation(&mut self, row: &Row) -> Option<(Observation, Vec<Nanos>)> {
        let number = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        let [size, intended, sent, end] = row.numbers.map(number);
        let intended = Nanos(intended?);
        // Nothing ends or is sent before it was meant to begin.
        let after = |at: Option<u64>| at.map(Nanos).filter(|at| *at >= intended);
        let outcome = match row.outcome.as_deref()? {
            "done" => RequestOutcome::Done(after(end)?),
            "failed" => RequestOutcome::Failed(after(end)?),
            "lost" => RequestOutcome::Lost,
            _ => return None,
        };
        let op = crate::read::op_of(row.op.as_deref()?.as_bytes())?;
        let times = row.stages.iter().map(|time| number(*time).map(Nanos)).collect::<Option<Vec<_>>>()?;
        let workload = self.workload(row.workload.as_deref()?)?;
        Some((Observation { workload, op, size: Bytes(size?), intended, sent: after(sent)?, outcome }, times))
    }

    fn workload(&mut self, name: &str) -> Option<u32> {
        if let Some(index) = self.workloads.get(name) {
            return Some(*index);
        }
        let index = u32::try_from(self.found.workloads.len()).ok()?;
        self.workloads.insert(name.to_owned(), index);
        self.found.workloads.push(name.to_owned());
        Some(index)
    }
}

/// A whole column, decoded a batch at a time: memory follows what is there, not what the file says.
fn collect<T: parquet::data_type::DataType, V>(
    mut values: Values<T>,
    count: usize,
    convert: impl Fn(&T::T) -> V,
) -> Result<Vec<Option<V>>, ParquetError> {
    let mut all = Vec::new();
    while all.len() < count {
        let batch = (count - all.len()).min(1 << 13);
        values.read(batch, |_, value| all.push(value.map(&convert)))?;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Op;

    fn some() -> Observations {
        let at = |workload, intended, outcome| Observation {
            workload,
            op: if workload == 0 { Op::Read } else { Op::Write },
            size: Bytes(4096),
            intended: Nanos(intended),
            sent: Nanos(intended + 1),
            outcome,
        };
        Observations {
            workloads: vec!["web".to_owned(), "mail".to_owned()],
            stages: vec!["storage".to_owned(), "network".to_owned()],
            requests: vec![
                at(0, 5, RequestOutcome::Done(Nanos(10))),
                at(1, 5, RequestOutcome::Lost),
                at(0, 7, RequestOutcome::Failed(Nanos(9))),
            ],
            stage_times: (1..=6).map(Nanos).collect(),
        }
    }

    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("observations-{name}-{}.parquet", std::process::id()))
    }

    #[test]
    fn come_back_as_they_were() {
        let path = file("round");
        for observations in [some(), Observations::default()] {
            write(&path, &observations).unwrap();
            assert_eq!(read(&path).unwrap(), observations);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn faults_say_which_row() {
        let path = file("faults");
        let mut unsorted = some();
        unsorted.requests.swap(0, 2);
        write(&path, &unsorted).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("record 2"));
        let mut early = some();
        early.requests[0].outcome = RequestOutcome::Done(Nanos(1));
        write(&path, &early).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("record 1"));
        std::fs::write(&path, b"PAR1 not at all PAR1").unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(read(&path).unwrap_err().kind(), ErrorKind::Io(_)));
    }

    #[test]
    fn damage_is_an_error() {
        let path = file("damage");
        write(&path, &some()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            std::fs::write(&path, &damaged).unwrap();
            // Either it is noticed or it changes a value: never a panic.
            drop(read(&path));
        }
        std::fs::remove_file(path).unwrap();
    }
}
