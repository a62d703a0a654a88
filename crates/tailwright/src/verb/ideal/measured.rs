//! A measured stream, read once; with a load twice: how much work it brings, then what becomes of it. Short ones are kept
//! in between.

use super::{IdealArgs, Stream, outcome, stable};
use arrivals::TimedRequest;
use arrivals::scale::{StreamTotals, TimeScaling};
use model::OperationError;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::ideal::{StationRun, Summary};
use std::path::Path;
use std::time::Instant;
use units::Nanos;

/// Arrivals that are kept rather than read again: 64 MiB.
const KEPT: usize = 1 << 23;
/// Nobody ends later, nanoseconds.
const END: u128 = u64::MAX as u128;
/// Requests between two looks at the clock.
const CHUNK: usize = 4096;

pub(super) fn play(args: &IdealArgs, path: &Path) -> Result<Stream, OperationError> {
    let mut players = Players::new(args);
    match args.load {
        None => players.run(args, scenario::arrivals(path)?)?,
        Some(load) => {
            let (extent, kept) = survey(args, path)?;
            spread(&extent, args, path)?;
            let stretch = extent.time_scaling(args.workers.get(), load).map_err(OperationError::input)?;
            players.stretch = Some(stretch);
            match kept {
                Some(kept) => players.run(args, kept.into_iter().map(Ok))?,
                None => players.run(args, scenario::arrivals(path)?)?,
            }
        }
    }
    let utilisation = spread(&players.extent, args, path)?;
    stable(utilisation, args)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Stream { name, utilisation: args.load.unwrap_or(utilisation), outcomes: players.finish(args)? })
}

/// The utilisation, where there is one.
fn spread(extent: &StreamTotals, args: &IdealArgs, path: &Path) -> Result<f64, OperationError> {
    if extent.arrivals.is_none() {
        return Err(scenario::empty(path).into());
    }
    extent.utilisation(args.workers.get()).ok_or_else(|| {
        OperationError::input(format!("{}: all requests arrive at one instant", path.display()))
            .hint("a utilisation needs requests at two instants at least")
    })
}

/// The work, and the arrivals if they are few or cannot be read again.
fn survey(args: &IdealArgs, path: &Path) -> Result<(StreamTotals, Option<Vec<Nanos>>), OperationError> {
    let again = path.is_file();
    let (mut extent, mut kept) = (StreamTotals::default(), Some(Vec::new()));
    for demand in demands(args, scenario::arrivals(path)?) {
        let demand = demand?;
        extent.add(&demand);
        kept.take_if(|kept: &mut Vec<Nanos>| again && kept.len() == KEPT);
        if let Some(kept) = &mut kept {
            kept.push(demand.arrival);
        }
    }
    Ok((extent, kept))
}

/// With their service, the same in every pass.
fn demands(
    args: &IdealArgs,
    arrivals: impl Iterator<Item = Result<Nanos, OperationError>>,
) -> impl Iterator<Item = Result<TimedRequest, OperationError>> {
    let (sampler, mut random) = (args.service.sampler(), StdRng::seed_from_u64(args.seed));
    arrivals.map(move |arrival| Ok(TimedRequest { arrival: arrival?, service: sampler.draw(&mut random) }))
}

/// All disciplines at once, so that the trace is read once for them.
struct Players {
    plays: Vec<StationRun>,
    /// Seconds of each by the clock.
    elapsed: Vec<f64>,
    stretch: Option<TimeScaling>,
    /// Of what was played.
    extent: StreamTotals,
}

impl Players {
    fn new(args: &IdealArgs) -> Self {
        // Lots are drawn apart from service times.
        let seed = StdRng::seed_from_u64(args.seed).random();
        let play = |order| StationRun::new(args.station(order), seed, 0, Summary::of_one());
        let plays: Vec<StationRun> = args.discipline.iter().copied().map(play).collect();
        Self { elapsed: vec![0.0; plays.len()], plays, stretch: None, extent: StreamTotals::default() }
    }

    fn run(
        &mut self,
        args: &IdealArgs,
        arrivals: impl Iterator<Item = Result<Nanos, OperationError>>,
    ) -> Result<(), OperationError> {
        let mut demands = demands(args, arrivals);
        let mut chunk = Vec::with_capacity(CHUNK);
        loop {
            chunk.clear();
            for demand in demands.by_ref().take(CHUNK) {
                let demand = demand?;
                let demand = self.stretch.map_or(demand, |stretch| stretch.apply(demand));
                self.extent.add(&demand);
                chunk.push(demand);
            }
            if u128::from(self.extent.arrivals.map_or(0, |(_, last)| last.0)) + self.extent.work > END {
                return Err(OperationError::input("the requests bring more than 584 years of work")
                    .hint("give a shorter --service"));
            }
            if chunk.is_empty() {
                return Ok(());
            }
            for (play, elapsed) in self.plays.iter_mut().zip(&mut self.elapsed) {
                let begun = Instant::now();
                chunk.iter().try_for_each(|demand| play.arrive(*demand)).map_err(OperationError::input)?;
                *elapsed += begun.elapsed().as_secs_f64();
            }
        }
    }

    fn finish(self, args: &IdealArgs) -> Result<Vec<crate::output::ideal::Outcome>, OperationError> {
        let played = self.plays.into_iter().zip(self.elapsed).zip(&args.discipline);
        let finish = |((play, elapsed), order): ((StationRun, f64), &_)| {
            let begun = Instant::now();
            let summary = play.finish();
            outcome(*order, &summary, elapsed + begun.elapsed().as_secs_f64())
        };
        played.map(finish).collect()
    }
}
