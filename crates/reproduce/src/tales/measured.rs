//! Real arrivals, compressed or stretched to 70 %.

use super::SERVICE;
use crate::context::{Context, FigureError};
use ::arrivals::{TimedRequest, scale};
use flate2::read::GzDecoder;
use model::OperationError;
use sim::ideal::{IdealStation, ServiceOrder, StationRun, Summary};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::num::NonZeroUsize;
use std::path::Path;
use units::Nanos;

/// In the place of the requests to Wikipedia: inference requests of two services, block I/O of two servers.
const STREAMS: [(&str, &str); 4] = [
    ("inference, conversations", "data/azure_llm/conv.csv.gz"),
    ("inference, code", "data/azure_llm/code.csv.gz"),
    ("block I/O, trace 0", "traces/trace0000.csv.gz"),
    ("block I/O, trace 5", "traces/trace0005.csv.gz"),
];

/// Each with its name, at a utilisation of 0.7; none when no data was given.
pub(super) fn streams(context: &Context) -> Result<Vec<(&'static str, Summary)>, FigureError> {
    if context.data.is_none() {
        return Ok(Vec::new());
    }
    let stream = |(name, path)| Ok((name, play(&arrivals(&context.file(path)?)?, path)?));
    STREAMS.into_iter().map(stream).collect()
}

fn play(arrivals: &[Nanos], path: &str) -> Result<Summary, FigureError> {
    let fault = |error: &dyn std::fmt::Display| fault(Path::new(path), &error.to_string());
    let service = Nanos(50_000);
    debug_assert!((service.as_secs() - SERVICE).abs() < 1e-12);
    let demands: Vec<TimedRequest> =
        arrivals.iter().map(|arrival| TimedRequest { arrival: *arrival, service }).collect();
    let demands = scale::to_utilisation(&demands, 1, 0.7).map_err(|error| fault(&error))?;
    let station = IdealStation { workers: NonZeroUsize::MIN, order: ServiceOrder::Fifo };
    let mut play = StationRun::new(station, 0, 0, Summary::of_one_stream());
    demands.into_iter().try_for_each(|demand| play.arrive(demand)).map_err(|error| fault(&error))?;
    Ok(play.finish())
}

fn arrivals(path: &Path) -> Result<Vec<Nanos>, FigureError> {
    if path.components().any(|part| part.as_os_str() == "azure_llm") {
        return timestamps(path);
    }
    Ok(scenario::read_trace_arrivals(path)?)
}

/// The first column of a table with a heading: `2023-11-16 18:15:46.6805900`, within one month.
fn timestamps(path: &Path) -> Result<Vec<Nanos>, FigureError> {
    let file = File::open(path).map_err(|error| fault(path, &error.to_string()))?;
    let mut all = Vec::new();
    for (number, line) in BufReader::new(GzDecoder::new(file)).lines().enumerate().skip(1) {
        let line = line.map_err(|error| fault(path, &error.to_string()))?;
        let at = instant(&line);
        let wrong = || fault(path, &format!("line {}: expected a time first, found '{line}'", number + 1));
        all.push(at.ok_or_else(wrong)?);
    }
    Ok(all)
}

fn instant(line: &str) -> Option<Nanos> {
    let (date, time) = line.split(',').next()?.split_once(' ')?;
    let day: u64 = date.rsplit('-').next()?.parse().ok()?;
    let mut parts = time.splitn(3, ':');
    let hour: u64 = parts.next()?.parse().ok()?;
    let minute: u64 = parts.next()?.parse().ok()?;
    let second: Nanos = format!("{}s", parts.next()?).parse().ok()?;
    let minutes = day.checked_mul(24)?.checked_add(hour)?.checked_mul(60)?.checked_add(minute)?;
    Some(Nanos(minutes.checked_mul(60_000_000_000)?.checked_add(second.0)?))
}

fn fault(path: &Path, message: &str) -> FigureError {
    let error = OperationError::input(format_args!("{}: {message}", path.display()));
    error.hint("--data gives the folder with the data that docs/reproduce.md describes").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_to_the_digit_or_not_at_all() {
        let day = 24 * 3_600_000_000_000;
        assert_eq!(instant("2023-11-01 01:00:02.5000001,374,44"), Some(Nanos(day + 3_602_500_000_100)));
        for wrong in
            ["", "TIMESTAMP,ContextTokens", "2023-11-16 18:15,1", "2023-11-16 18:15:x,1", "a-b-c d:e:f"]
        {
            assert_eq!(instant(wrong), None, "{wrong}");
        }
    }
}
