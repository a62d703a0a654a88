//! The recorded workloads as the analysis of a server sees them, and random draws of them.

use crate::context::{Context, FigureError};
use model::{OperationError, Request, Slo};
use placement::{
    LimitMethod, Normalisation, PlanningClass, PlanningProblem, PlanningWorkload, WorkloadOnClass,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, seq::SliceRandom as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use units::{ByteRate, Nanos, Percentile, Seconds};
use workload::burst::EnvelopeReduction;
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

/// SLOs of §5.4.1, seconds.
pub(super) const SLOS_S: [f64; 5] = [0.1, 0.15, 0.25, 0.5, 1.0];
/// The published procedure of WorkloadCompactor: curves of 12 segments, cut at 30 s of burst.
const SEGMENTS: NonZeroUsize = NonZeroUsize::new(12).expect("12 is not zero");
const CUT_S: f64 = 30.0;
const PROFILE: &str = "traces/ssd-profile.json";

/// A form of curves that some method needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CurveForm {
    Plain,
    Reduced,
    Sustained,
}

/// Curves of a workload on a server, in the forms that methods need.
#[derive(Debug, Clone)]
pub(super) struct WorkloadCurves {
    /// As the trace gives them, for its length only.
    plain: WorkloadOnClass,
    /// The same in the few segments of the published program.
    reduced: WorkloadOnClass,
    /// Limits that sustain the mean rate for ever.
    sustained: WorkloadOnClass,
}

/// A workload that asks for a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DrawnWorkload {
    /// Index of its trace.
    pub(super) trace: usize,
    pub(super) slo: Slo,
}

/// The traces of the data folder on a server with the SSD and the link of the thesis's testbed.
pub(super) struct TraceSet {
    pub(super) profile: StorageProfile,
    pub(super) files: Vec<PathBuf>,
    curves: Vec<WorkloadCurves>,
    /// Traces that keep each of [`SLOS_S`] alone on a server.
    available: Vec<Vec<usize>>,
}

/// An SLO on the 99.9th percentile.
pub(super) fn slo(seconds: f64) -> Slo {
    Slo::new(Percentile::new(99.9).expect("a percentile"), Seconds(seconds)).expect("a positive latency")
}

/// The link of a server in the testbed: 1 Gbps.
pub(super) fn network() -> ByteRate {
    "125MB/s".parse().expect("a rate")
}

impl TraceSet {
    /// Reads all traces of the folder in the order of their names. `keep` selects requests by their arrival
    /// and that of the last, both since the first; curves are larger by `margin`.
    pub(super) fn read(
        context: &Context,
        margin: f64,
        keep: impl Fn(Nanos, Nanos) -> bool,
    ) -> Result<Self, FigureError> {
        let path = context.file(PROFILE)?;
        let text = std::fs::read_to_string(&path).map_err(|error| unusable(&path, error))?;
        let profile = StorageProfile::from_json(&text).map_err(|error| unusable(&path, error))?;
        let files = trace_files(&context.file("traces")?)?;
        if files.is_empty() {
            return Err(FigureError::Missing("traces/trace0000.csv.gz".into()));
        }
        let mut curves = Vec::new();
        for file in &files {
            curves.push(WorkloadCurves::new(&footprint(file, &profile, &keep)?, margin));
        }
        let mut set = Self { profile, files, curves, available: Vec::new() };
        for seconds in SLOS_S {
            set.available
                .push((0..set.curves.len()).filter(|&trace| set.is_kept_alone(trace, seconds)).collect());
        }
        Ok(set)
    }

    fn is_kept_alone(&self, trace: usize, seconds: f64) -> bool {
        let alone = [DrawnWorkload { trace, slo: slo(seconds) }];
        let problem = self.problem(&alone, CurveForm::Sustained);
        LimitMethod::Exact.fit(&problem, 0, vec![0]).is_ok()
    }

    /// Returns all workloads that can have one of [`SLOS_S`], in the order of their names.
    pub(super) fn all_with(&self, slo_index: usize) -> Vec<DrawnWorkload> {
        let slo = slo(SLOS_S[slo_index]);
        self.available[slo_index].iter().map(|&trace| DrawnWorkload { trace, slo }).collect()
    }

    /// Draws so many different workloads, or all there are, in random order, which can have one of [`SLOS_S`].
    pub(super) fn draw_with(
        &self,
        slo_index: usize,
        count: usize,
        random: &mut StdRng,
    ) -> Vec<DrawnWorkload> {
        let mut drawn = self.all_with(slo_index);
        drawn.shuffle(random);
        drawn.truncate(count);
        drawn
    }

    /// Draws so many workloads with random SLOs out of those that each can have, one trace perhaps several times.
    pub(super) fn draw_mixed(&self, count: usize, random: &mut StdRng) -> Vec<DrawnWorkload> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let trace = random.random_range(0..self.curves.len());
            let slo_index = random.random_range(0..SLOS_S.len());
            if self.available[slo_index].contains(&trace) {
                drawn.push(DrawnWorkload { trace, slo: slo(SLOS_S[slo_index]) });
            }
        }
        drawn
    }

    /// Returns the problem of placing workloads with curves of this form on as many servers as are needed.
    pub(super) fn problem(&self, drawn: &[DrawnWorkload], form: CurveForm) -> PlanningProblem {
        let mut workloads = Vec::new();
        for (number, workload) in drawn.iter().enumerate() {
            let curves = &self.curves[workload.trace];
            let on = match form {
                CurveForm::Plain => &curves.plain,
                CurveForm::Reduced => &curves.reduced,
                CurveForm::Sustained => &curves.sustained,
            };
            let name = format!("w{number}");
            workloads.push(PlanningWorkload { name, slo: workload.slo, on_class: vec![on.clone()] });
        }
        let class = PlanningClass { name: "server".into(), count: drawn.len(), enforced: None };
        PlanningProblem::new(vec![class], workloads, PlanningProblem::MAX_RATE, PlanningProblem::SLO_FACTOR)
            .expect("names are unique")
    }
}

impl WorkloadCurves {
    fn new(footprint: &Footprint, safety_margin: f64) -> Self {
        let plain = Normalisation { network: network(), safety_margin, sustained: false, enforced: None };
        let reduced = plain.apply_reduced(footprint, |stage, envelope| {
            let capacity = plain.base_units_per_s(stage);
            let reduction = EnvelopeReduction::to_segments(SEGMENTS);
            envelope.reduce_within(&reduction.up_to_rate(capacity).up_to_burst(CUT_S * capacity))
        });
        let sustained = Normalisation { sustained: true, ..plain };
        Self { plain: plain.apply(footprint), reduced, sustained: sustained.apply(footprint) }
    }
}

/// The traces of a folder, by name.
fn trace_files(folder: &Path) -> Result<Vec<PathBuf>, FigureError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unusable(folder, error))? {
        let path = entry.map_err(|error| unusable(folder, error))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("trace") && name.ends_with(".csv.gz") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The demand of the requests of a trace that `keep` selects.
fn footprint(
    file: &Path,
    profile: &StorageProfile,
    keep: impl Fn(Nanos, Nanos) -> bool,
) -> Result<Footprint, FigureError> {
    let reader = trace::open(file, &trace::OpenOptions::default()).map_err(|error| unusable(file, error))?;
    let requests: Vec<Request> = reader.collect::<Result<_, _>>().map_err(|error| unusable(file, error))?;
    let mut builder = FootprintBuilder::new(NetworkModel::default(), profile);
    if let (Some(first), Some(last)) = (requests.first(), requests.last()) {
        let since_first = |request: &Request| request.arrival - first.arrival;
        for request in requests.iter().filter(|request| keep(since_first(request), since_first(last))) {
            builder.push(request).map_err(|error| unusable(file, error))?;
        }
    }
    builder.finish().map_err(|error| unusable(file, error))
}

/// The error of a file that cannot be used.
pub(super) fn unusable(path: &Path, error: impl std::fmt::Display) -> FigureError {
    OperationError::input(format_args!("{}: {error}", path.display())).into()
}
