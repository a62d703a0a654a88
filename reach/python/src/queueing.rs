//! `ideal` and `simulate`.

use crate::call::{call, unlocked};
use crate::columns::TimeColumn;
use crate::errors::input;
use crate::inputs::{ClusterInput, policy};
use crate::observations::Observations;
use arrivals::TimedRequest;
use model::OperationError;
use numpy::PyArray1;
use operation::document::document;
use plan::cluster::ClusterProblem;
use pyo3::prelude::*;
use sim::ideal::{IdealStation, ServiceOrder};
use simulate::ideal::{IdealSettings, IdealStream, ideal_latency};
use simulate::simulation::{
    PolicySimulationSettings, ScenarioSettings, VariedDocument, observe_policy, read_scenario,
    simulate_variants,
};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Arrivals of an ideal: a process, a trace file or a column of times.
#[derive(FromPyObject)]
pub(crate) enum ArrivalsInput<'py> {
    #[pyo3(transparent)]
    Column(TimeColumn<'py>),
    #[pyo3(transparent)]
    Process(String),
    #[pyo3(transparent)]
    Trace(PathBuf),
}

#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the Python function names them")]
pub(crate) fn ideal(
    py: Python<'_>,
    arrivals: ArrivalsInput<'_>,
    requests: u64,
    service: String,
    workers: NonZeroUsize,
    disciplines: Vec<String>,
    load: Option<f64>,
    seed: u64,
) -> PyResult<String> {
    let stream = match arrivals {
        ArrivalsInput::Column(column) => {
            let view = column.view();
            let arrivals =
                unlocked(py, || view.collect("arrivals"))?.map_err(|message| input(py, message))?;
            IdealStream::Recorded { name: "arrivals".to_owned(), arrivals }
        }
        ArrivalsInput::Trace(path) => IdealStream::Trace(path),
        ArrivalsInput::Process(process) => {
            IdealStream::Random { arrivals: process.parse().map_err(|error| input(py, error))?, requests }
        }
    };
    call(py, move |call| {
        let orders = disciplines.iter().map(|name| name.parse()).collect::<Result<Vec<ServiceOrder>, _>>();
        let settings = IdealSettings {
            stream,
            service: service.parse().map_err(OperationError::input)?,
            workers,
            disciplines: orders.map_err(OperationError::input)?,
            load,
            seed,
        };
        let answer = ideal_latency(&settings, &|| call.is_stopped(), call)?;
        Ok(document(&answer.document(&settings)))
    })
}

/// The latency of each request, nanoseconds.
#[pyfunction]
pub(crate) fn ideal_latencies<'py>(
    py: Python<'py>,
    arrivals: TimeColumn<'py>,
    service: TimeColumn<'py>,
    workers: NonZeroUsize,
    discipline: &str,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let order: ServiceOrder = discipline.parse().map_err(|error| input(py, error))?;
    let station = IdealStation { workers, order };
    let arrivals = arrivals.view();
    let services = service.view();
    let latencies = unlocked(py, || {
        let mut requests = Vec::with_capacity(arrivals.len());
        let mut end = 0_u128;
        for row in 0..arrivals.len() {
            let arrival = arrivals.get(row, "arrivals")?;
            let service = services.get(row, "service")?;
            end = end.max(u128::from(arrival.0)) + u128::from(service.0);
            requests.push(TimedRequest { arrival, service });
        }
        // One worker ends last.
        if end > i64::MAX as u128 {
            return Err("the requests bring more than 292 years of work".to_owned());
        }
        let latencies = station.latencies(requests, seed).map_err(|error| error.to_string())?;
        Ok(latencies.into_iter().map(|latency| latency.0.cast_signed()).collect::<Vec<_>>())
    })?;
    latencies.map(|latencies| PyArray1::from_vec(py, latencies)).map_err(|message| input(py, message))
}

#[pyfunction]
pub(crate) fn simulate_policy(
    py: Python<'_>,
    text: String,
    cluster: ClusterInput,
    seed: u64,
    flood: bool,
    without_bounds: bool,
) -> PyResult<String> {
    call(py, move |call| {
        let policy = policy(&text)?;
        let problem = ClusterProblem::read(&cluster.source()?, call)?;
        let settings = PolicySimulationSettings { seed, without_bounds, flood, has_class: true };
        let interrupted = || call.is_stopped();
        let simulation =
            simulate::simulation::simulate_policy(&policy, &problem, settings, &interrupted, call)?;
        Ok(document(&simulation.document(&policy, seed)))
    })
}

/// Every request of one run of a policy, all traces from their beginning.
#[pyfunction]
pub(crate) fn simulate_requests(
    py: Python<'_>,
    text: String,
    cluster: ClusterInput,
    seed: u64,
) -> PyResult<Observations> {
    let observed = call(py, move |call| {
        let policy = policy(&text)?;
        let problem = ClusterProblem::read(&cluster.source()?, call)?;
        observe_policy(&policy, &problem, seed, &|| call.is_stopped())
    });
    observed.map(Observations::new)
}

#[pyfunction]
pub(crate) fn simulate_scenario(
    py: Python<'_>,
    file: PathBuf,
    set: Vec<String>,
    load: Option<f64>,
    seed: u64,
    without_bounds: bool,
) -> PyResult<String> {
    call(py, move |call| {
        let variants = read_scenario(&ScenarioSettings { file, set, load, report: None })?.variants()?;
        let simulated = simulate_variants(&variants, seed, without_bounds, &|| call.is_stopped(), call)?;
        Ok(match simulated.as_slice() {
            [only] if only.run.choices.is_empty() => document(&only.figures(seed).document()),
            several => document(&VariedDocument::new(several, seed)),
        })
    })
}
