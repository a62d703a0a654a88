//! Measured streams. Without a load, one pass over the trace; with a load two, the first to measure the work.
//! Short traces are kept in memory between the passes.

use crate::ideal::figures::IdealOutcome;
use crate::ideal::interruption::nothing_complete;
use crate::ideal::settings::{IdealAnswer, IdealSettings};
use crate::ideal::utilisation::check_stable;
use arrivals::TimedRequest;
use arrivals::scale::{StreamTotals, TimeScaling};
use model::OperationError;
use operation::ProgressObserver;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::ideal::{StationRun, Summary};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use units::Nanos;

/// Maximum number of arrivals kept in memory instead of read again: 64 MiB.
const KEPT_MAX: usize = 1 << 23;
/// Latest instant at which a request can complete, nanoseconds.
const END_NS: u128 = u64::MAX as u128;
/// Requests between two checks for interruption.
const CHUNK: usize = 4096;

/// Measured arrivals that can be read once or more often.
#[derive(Clone, Copy)]
pub(super) enum MeasuredStream<'a> {
    /// A trace file.
    File(&'a Path),
    /// Arrivals in memory, and their name.
    Memory { name: &'a str, arrivals: &'a [Nanos] },
}

impl<'a> MeasuredStream<'a> {
    fn arrivals(
        self,
    ) -> Result<Box<dyn Iterator<Item = Result<Nanos, OperationError>> + 'a>, OperationError> {
        Ok(match self {
            Self::File(path) => Box::new(scenario::trace_arrivals(path)?),
            Self::Memory { arrivals, .. } => Box::new(arrivals.iter().copied().map(Ok)),
        })
    }

    fn can_be_read_again(self) -> bool {
        match self {
            Self::File(path) => path.is_file(),
            Self::Memory { .. } => true,
        }
    }

    /// Names the stream in answers.
    fn name(self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Memory { name, .. } => name.to_owned(),
        }
    }

    /// Names the stream in errors.
    fn place(self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory { name, .. } => name.to_owned(),
        }
    }

    fn empty_error(self) -> OperationError {
        match self {
            Self::File(path) => scenario::empty_trace_error(path),
            Self::Memory { name, .. } => OperationError::input(format_args!("{name}: there are no requests")),
        }
    }
}

/// Plays measured arrivals.
pub(super) fn play(
    settings: &IdealSettings,
    stream: MeasuredStream,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> Result<IdealAnswer, OperationError> {
    let mut plays = DisciplinePlays::new(settings);
    // The number of requests is unknown until the trace has been read.
    let task = observer.begin("simulating", 0, "requests");
    let played = AtomicU64::new(0);
    let goes_on = |requests: usize| {
        let before = played.fetch_add(requests as u64, Ordering::Relaxed);
        task.update(before + requests as u64, before + requests as u64);
        !interrupted()
    };
    match settings.load {
        None => plays.run(settings, stream.arrivals()?, &goes_on)?,
        Some(load) => {
            let (totals, kept) = survey(settings, stream, interrupted)?;
            measure_utilisation(&totals, settings, stream)?;
            let scaling = totals.time_scaling(settings.workers.get(), load).map_err(OperationError::input)?;
            plays.scaling = Some(scaling);
            match kept {
                Some(kept) => plays.run(settings, kept.into_iter().map(Ok), &goes_on)?,
                None => plays.run(settings, stream.arrivals()?, &goes_on)?,
            }
        }
    }
    let utilisation = measure_utilisation(&plays.totals, settings, stream)?;
    // Service times that are all equal leave no chance beside the arrivals, which are given.
    check_stable(utilisation, settings.service.c2() == 0.0, settings)?;
    let name = stream.name();
    let utilisation = settings.load.unwrap_or(utilisation);
    Ok(IdealAnswer { name, utilisation, outcomes: plays.finish(settings)?, requests_needed: None })
}

/// Returns the utilisation of the workers; an error if the requests span no time.
fn measure_utilisation(
    totals: &StreamTotals,
    settings: &IdealSettings,
    stream: MeasuredStream,
) -> Result<f64, OperationError> {
    if totals.arrivals.is_none() {
        return Err(stream.empty_error());
    }
    totals.utilisation(settings.workers.get()).ok_or_else(|| {
        OperationError::input(format!("{}: all requests arrive at one instant", stream.place()))
            .hint("a utilisation needs requests at two instants at least")
    })
}

/// Returns the work of a trace, and its arrivals if they are few or cannot be read again.
fn survey(
    settings: &IdealSettings,
    stream: MeasuredStream,
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Result<(StreamTotals, Option<Vec<Nanos>>), OperationError> {
    let can_be_read_again = stream.can_be_read_again();
    let mut totals = StreamTotals::default();
    let mut kept = Some(Vec::new());
    for (number, request) in timed_requests(settings, stream.arrivals()?).enumerate() {
        let request = request?;
        // The load refers to the whole trace, so a partial survey is no result.
        if number % CHUNK == 0 && interrupted() {
            return Err(nothing_complete());
        }
        totals.add(&request);
        kept.take_if(|kept: &mut Vec<Nanos>| can_be_read_again && kept.len() == KEPT_MAX);
        if let Some(kept) = &mut kept {
            kept.push(request.arrival);
        }
    }
    Ok((totals, kept))
}

/// Returns arrivals with service times, which are the same in every pass because the seed is.
fn timed_requests(
    settings: &IdealSettings,
    arrivals: impl Iterator<Item = Result<Nanos, OperationError>>,
) -> impl Iterator<Item = Result<TimedRequest, OperationError>> {
    let sampler = settings.service.sampler();
    let mut random = StdRng::seed_from_u64(settings.seed);
    arrivals.map(move |arrival| Ok(TimedRequest { arrival: arrival?, service: sampler.draw(&mut random) }))
}

/// Runs of all disciplines at once, so that one pass over the trace serves all.
struct DisciplinePlays {
    plays: Vec<StationRun>,
    /// Wall time of each play, seconds.
    elapsed_s: Vec<f64>,
    /// Scaling of arrivals to the wanted load.
    scaling: Option<TimeScaling>,
    /// Work and time span of the requests so far.
    totals: StreamTotals,
}

impl DisciplinePlays {
    fn new(settings: &IdealSettings) -> Self {
        // A separate stream of random numbers: random service orders do not depend on the service times.
        let seed = StdRng::seed_from_u64(settings.seed).random();
        let disciplines = settings.disciplines.iter();
        let plays: Vec<StationRun> = disciplines
            .map(|&order| StationRun::new(settings.station(order), seed, 0, Summary::of_one_stream()))
            .collect();
        Self { elapsed_s: vec![0.0; plays.len()], plays, scaling: None, totals: StreamTotals::default() }
    }

    fn run(
        &mut self,
        settings: &IdealSettings,
        arrivals: impl Iterator<Item = Result<Nanos, OperationError>>,
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Result<(), OperationError> {
        let mut timed_requests = timed_requests(settings, arrivals);
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            for request in timed_requests.by_ref().take(CHUNK) {
                let request = request?;
                let request = self.scaling.map_or(request, |scaling| scaling.apply(request));
                self.totals.add(&request);
                chunk.push(request);
            }
            if u128::from(self.totals.arrivals.map_or(0, |(_, last)| last.0)) + self.totals.work > END_NS {
                return Err(OperationError::input("the requests bring more than 584 years of work")
                    .hint("give a shorter --service"));
            }
            if chunk.is_empty() {
                return Ok(());
            }
            for (play, elapsed_s) in self.plays.iter_mut().zip(&mut self.elapsed_s) {
                let start = Instant::now();
                chunk.iter().try_for_each(|request| play.arrive(*request)).map_err(OperationError::input)?;
                *elapsed_s += start.elapsed().as_secs_f64();
            }
            if !goes_on(chunk.len()) {
                return Ok(());
            }
        }
    }

    fn finish(self, settings: &IdealSettings) -> Result<Vec<IdealOutcome>, OperationError> {
        let mut outcomes = Vec::new();
        for ((play, elapsed_s), order) in
            self.plays.into_iter().zip(self.elapsed_s).zip(&settings.disciplines)
        {
            let start = Instant::now();
            let summary = play.finish();
            let elapsed_s = elapsed_s + start.elapsed().as_secs_f64();
            outcomes.push(IdealOutcome::new(*order, &summary, summary.count(), elapsed_s)?);
        }
        Ok(outcomes)
    }
}
