//! Reads a file of observations and checks every row.

use crate::columns::decode::{
    ColumnValues, catch_damage, find_flat_column, malformed_columns, open_untrusted, row_count,
};
use crate::error::{TraceError, TraceErrorKind, TracePosition, excerpt};
use crate::operation;
use model::{Observation, Observations, RequestOutcome};
use parquet::basic::Type as PhysicalType;
use parquet::data_type::{ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::schema::types::SchemaDescriptor;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::Path;
use units::{Bytes, Nanos};

const EXPECTED_COLUMNS: &str =
    "the columns of observations: workload, op, size_bytes, intended_ns, sent_ns, outcome, end_ns";
/// Number of values of a column that are decoded at a time.
const BATCH_ROWS: usize = 1 << 13;

/// Reads a file of observations.
pub(super) fn read_file(path: &Path) -> Result<Observations, TraceError> {
    let file = File::open(path).map_err(TraceErrorKind::Io);
    let file = file.and_then(open_untrusted).map_err(|kind| file_error(path, kind))?;
    let schema = file.metadata().file_metadata().schema_descr();
    let columns = ObservationColumns::find(schema)
        .ok_or_else(|| file_error(path, malformed_columns(schema, EXPECTED_COLUMNS)))?;
    let mut collector = ObservationCollector::default();
    collector.observations.stages = columns.stages.iter().map(|(_, name)| name.clone()).collect();
    for index in 0..file.num_row_groups() {
        let rows = catch_damage(|| columns.decode(&*file.get_row_group(index)?))
            .map_err(|kind| file_error(path, kind))?;
        for row in rows {
            let position = TracePosition::Record(collector.observations.requests.len() as u64 + 1);
            collector.add(&row).map_err(|kind| TraceError::new(path, position, kind))?;
        }
    }
    Ok(collector.observations)
}

fn file_error(path: &Path, kind: TraceErrorKind) -> TraceError {
    TraceError::new(path, TracePosition::File, kind)
}

/// The indexes of the columns in a file.
struct ObservationColumns {
    workload: usize,
    op: usize,
    outcome: usize,
    /// The columns of [`ObservationRow::numbers`], in their order.
    numbers: [usize; 4],
    stages: Vec<(usize, String)>,
}

impl ObservationColumns {
    /// Finds the columns; `None` if one is missing.
    fn find(schema: &SchemaDescriptor) -> Option<Self> {
        let mut stages = Vec::new();
        for (index, column) in schema.columns().iter().enumerate() {
            let name = column.path().string();
            if let Some(stage) = name.strip_prefix("stage_").and_then(|name| name.strip_suffix("_ns")) {
                stages.push((index, stage.to_owned()));
            }
        }
        Some(Self {
            workload: find_flat_column(schema, "workload", PhysicalType::BYTE_ARRAY)?,
            op: find_flat_column(schema, "op", PhysicalType::BYTE_ARRAY)?,
            outcome: find_flat_column(schema, "outcome", PhysicalType::BYTE_ARRAY)?,
            numbers: [
                find_flat_column(schema, "size_bytes", PhysicalType::INT64)?,
                find_flat_column(schema, "intended_ns", PhysicalType::INT64)?,
                find_flat_column(schema, "sent_ns", PhysicalType::INT64)?,
                find_flat_column(schema, "end_ns", PhysicalType::INT64)?,
            ],
            stages,
        })
    }

    /// Decodes the rows of a row group. The stated number of rows is not trusted before the first column
    /// has as many values.
    fn decode(&self, group: &dyn RowGroupReader) -> Result<Vec<ObservationRow>, ParquetError> {
        let count = row_count(group)?;
        let workloads = decode_texts(group, self.workload, count)?;
        let mut rows: Vec<ObservationRow> = workloads
            .into_iter()
            .map(|workload| ObservationRow { workload, ..ObservationRow::default() })
            .collect();
        for (row, op) in rows.iter_mut().zip(decode_texts(group, self.op, count)?) {
            row.op = op;
        }
        for (row, outcome) in rows.iter_mut().zip(decode_texts(group, self.outcome, count)?) {
            row.outcome = outcome;
        }
        for (slot, &column) in self.numbers.iter().enumerate() {
            for (row, number) in rows.iter_mut().zip(decode_integers(group, column, count)?) {
                row.numbers[slot] = number;
            }
        }
        for (column, _) in &self.stages {
            for (row, time) in rows.iter_mut().zip(decode_integers(group, *column, count)?) {
                row.stages.push(time);
            }
        }
        Ok(rows)
    }
}

fn decode_texts(
    group: &dyn RowGroupReader,
    column: usize,
    count: usize,
) -> Result<Vec<Option<String>>, ParquetError> {
    decode_column::<ByteArrayType, _>(group, column, count, |text| {
        String::from_utf8_lossy(text.data()).into_owned()
    })
}

fn decode_integers(
    group: &dyn RowGroupReader,
    column: usize,
    count: usize,
) -> Result<Vec<Option<i64>>, ParquetError> {
    decode_column::<Int64Type, _>(group, column, count, |number| *number)
}

/// Decodes a column in batches: memory grows with the actual values, not with the number that the file
/// states.
fn decode_column<T: DataType, V>(
    group: &dyn RowGroupReader,
    column: usize,
    count: usize,
    convert: impl Fn(&T::T) -> V,
) -> Result<Vec<Option<V>>, ParquetError> {
    let mut values = ColumnValues::<T>::open(group, column)?;
    let mut decoded = Vec::new();
    while decoded.len() < count {
        let batch = (count - decoded.len()).min(BATCH_ROWS);
        values.read(batch, |_, value| decoded.push(value.map(&convert)))?;
    }
    Ok(decoded)
}

/// A row before it is checked; `None` is a null.
#[derive(Clone, Default)]
struct ObservationRow {
    workload: Option<String>,
    op: Option<String>,
    outcome: Option<String>,
    /// Size, intended time, sending time and end, in this order.
    numbers: [Option<i64>; 4],
    stages: Vec<Option<i64>>,
}

/// The form in which error messages show a malformed row.
impl fmt::Debug for ObservationRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("workload", &self.workload)
            .field("op", &self.op)
            .field("outcome", &self.outcome)
            .field("numbers", &self.numbers)
            .field("stages", &self.stages)
            .finish()
    }
}

/// Checks rows and collects them as observations.
#[derive(Default)]
struct ObservationCollector {
    /// The number of each workload by its name.
    workloads: HashMap<String, u32>,
    observations: Observations,
}

impl ObservationCollector {
    fn add(&mut self, row: &ObservationRow) -> Result<(), TraceErrorKind> {
        const EXPECTED: &str = "a workload, op read or write, outcome done, failed or lost with its end, and times \
            that are not negative";
        let Some((observation, times)) = self.check(row) else {
            let found = excerpt(format!("{row:?}").as_bytes());
            return Err(TraceErrorKind::Malformed { expected: EXPECTED, found });
        };
        let previous_ns = self.observations.requests.last().map_or(0, |last| last.intended.0);
        if observation.intended.0 < previous_ns {
            return Err(TraceErrorKind::Unsorted { previous_ns, arrival_ns: observation.intended.0 });
        }
        self.observations.requests.push(observation);
        self.observations.stage_times.extend(times);
        Ok(())
    }

    /// Converts the row into an observation and its time in each stage; `None` if a value is missing or
    /// out of range.
    fn check(&mut self, row: &ObservationRow) -> Option<(Observation, Vec<Nanos>)> {
        let [size, intended, sent, end] = row.numbers.map(non_negative);
        let intended = Nanos(intended?);
        // No request is sent or ends before it was intended to be sent.
        let sent = sent.map(Nanos).filter(|sent| *sent >= intended);
        let end = end.map(Nanos).filter(|end| *end >= intended);
        let outcome = match row.outcome.as_deref()? {
            "done" => RequestOutcome::Done(end?),
            "failed" => RequestOutcome::Failed(end?),
            "lost" => RequestOutcome::Lost,
            _ => return None,
        };
        let op = operation::from_name(row.op.as_deref()?.as_bytes())?;
        let times: Option<Vec<Nanos>> =
            row.stages.iter().map(|&time| non_negative(time).map(Nanos)).collect();
        let times = times?;
        let workload = self.workload_number(row.workload.as_deref()?)?;
        Some((Observation { workload, op, size: Bytes(size?), intended, sent: sent?, outcome }, times))
    }

    fn workload_number(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.workloads.get(name) {
            return Some(*number);
        }
        let number = u32::try_from(self.observations.workloads.len()).ok()?;
        self.workloads.insert(name.to_owned(), number);
        self.observations.workloads.push(name.to_owned());
        Some(number)
    }
}

fn non_negative(value: Option<i64>) -> Option<u64> {
    value.and_then(|value| u64::try_from(value).ok())
}
