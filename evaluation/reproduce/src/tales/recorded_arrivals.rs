//! Recorded arrivals, compressed or stretched in time to a utilisation of 70 %.

use super::runs::SERVICE;
use crate::context::{Context, FigureError};
use crate::data_file::{data_error, read_rows};
use arrivals::{TimedRequest, scale};
use sim::ideal::{IdealStation, ServiceOrder, StationRun, Summary};
use std::num::NonZeroUsize;
use std::path::Path;
use units::Nanos;

/// Substitutes for the requests to Wikipedia, by name and file: inference requests of two services, and block
/// I/O of two servers.
const STREAMS: [(&str, &str); 4] = [
    ("inference, conversations", "data/azure_llm/conv.csv.gz"),
    ("inference, code", "data/azure_llm/code.csv.gz"),
    ("block I/O, trace 0", "traces/trace0000.csv.gz"),
    ("block I/O, trace 5", "traces/trace0005.csv.gz"),
];
const UTILISATION: f64 = 0.7;

/// The latencies of each stream by its name; none when no data was given.
pub(super) fn summaries(context: &Context) -> Result<Vec<(&'static str, Summary)>, FigureError> {
    let mut summaries = Vec::new();
    if context.data.is_some() {
        for (name, file) in STREAMS {
            let arrivals = read_arrivals(&context.file(file)?)?;
            summaries.push((name, simulate(&arrivals).map_err(|error| data_error(file, error))?));
        }
    }
    Ok(summaries)
}

/// The latencies at one worker that serves these arrivals first come, first served.
fn simulate(arrivals: &[Nanos]) -> Result<Summary, String> {
    let service = Nanos(50_000);
    debug_assert!((service.as_secs() - SERVICE).abs() < 1e-12);
    let requests: Vec<TimedRequest> =
        arrivals.iter().map(|arrival| TimedRequest { arrival: *arrival, service }).collect();
    let scaled = scale::to_utilisation(&requests, 1, UTILISATION).map_err(|error| error.to_string())?;
    let station = IdealStation { workers: NonZeroUsize::MIN, order: ServiceOrder::Fifo };
    let mut run = StationRun::new(station, 0, 0, Summary::of_one_stream());
    for request in scaled {
        run.arrive(request).map_err(|error| error.to_string())?;
    }
    Ok(run.finish())
}

fn read_arrivals(path: &Path) -> Result<Vec<Nanos>, FigureError> {
    if path.components().any(|part| part.as_os_str() == "azure_llm") {
        return read_rows(path, path.display(), "a time first", parse_instant);
    }
    Ok(scenario::read_trace_arrivals(path)?)
}

/// Reads the first column, such as `2023-11-16 18:15:46.6805900`, as time since the beginning of the month. All times of
/// a file are in one month.
fn parse_instant(line: &str) -> Option<Nanos> {
    let (date, time) = line.split(',').next()?.split_once(' ')?;
    let day: u64 = date.rsplit('-').next()?.parse().ok()?;
    let mut parts = time.splitn(3, ':');
    let hour: u64 = parts.next()?.parse().ok()?;
    let minute: u64 = parts.next()?.parse().ok()?;
    let second: Nanos = format!("{}s", parts.next()?).parse().ok()?;
    let minutes = day.checked_mul(24)?.checked_add(hour)?.checked_mul(60)?.checked_add(minute)?;
    Some(Nanos(minutes.checked_mul(60_000_000_000)?.checked_add(second.0)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_to_the_digit_or_not_at_all() {
        let day = 24 * 3_600_000_000_000;
        assert_eq!(parse_instant("2023-11-01 01:00:02.5000001,374,44"), Some(Nanos(day + 3_602_500_000_100)));
        for wrong in
            ["", "TIMESTAMP,ContextTokens", "2023-11-16 18:15,1", "2023-11-16 18:15:x,1", "a-b-c d:e:f"]
        {
            assert_eq!(parse_instant(wrong), None, "{wrong}");
        }
    }
}
