//! Everything that is decided before anything runs: requests on this device, SLOs and policies, all from traces.

use super::case_plan::CasePlan;
use super::definition::{BackgroundCopy, Bottleneck, ExperimentCase, LabExperiment, RESERVE, SloRule};
use super::device_analysis::{AnalysedTenant, DeviceAnalysis};
use super::requests::{TenantRequests, distinct_sizes, load_all};
use super::scaled_trace::{ScaledTrace, ceil_nanos};
use super::{link, slo_assignment};
use calculus::DeviceQueue;
use model::{LatencyModel as _, Op, OperationError, Request, Slo, Stage};
use predict::{Reshaping, WorstCase};
use std::path::Path;
use units::{Bytes, Nanos};
use workload::device::StorageProfile;

/// Requests outstanding per channel of the device: enough to keep it busy while an answer is on its way.
const OUTSTANDING_PER_CHANNEL: u32 = 2;

/// An experiment, ready to run.
#[derive(Debug, Clone)]
pub struct ExperimentPlan {
    /// The experiment that is planned.
    pub experiment: LabExperiment,
    /// The profile of the device.
    pub profile: StorageProfile,
    /// The largest number of requests outstanding at the device.
    pub outstanding: u32,
    /// The largest request of any workload.
    pub largest: Bytes,
    /// The cases in the order of the experiment.
    pub cases: Vec<CasePlan>,
}

impl ExperimentPlan {
    /// Reads the traces in this folder, scales them, sets SLOs, and makes the policies.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub fn new(experiment: &LabExperiment, traces: &Path) -> Result<Self, OperationError> {
        let requests = load_all(experiment, traces)?;
        let device = DeviceSetting::new(&distinct_sizes(experiment, &requests), experiment.copy);
        let mut cases: Vec<CasePlan> = Vec::new();
        for (case, requests) in experiment.cases.iter().zip(requests) {
            cases.push(match experiment.bottleneck {
                Bottleneck::Device => device.plan_case(case, requests, cases.first())?,
                Bottleneck::Link => link::plan_case(case, requests)?,
            });
        }
        let DeviceSetting { profile, outstanding, largest, .. } = device;
        Ok(Self { experiment: *experiment, profile, outstanding, largest, cases })
    }

    /// A description of the bottleneck.
    pub fn setting(&self) -> String {
        match self.experiment.bottleneck {
            Bottleneck::Device => {
                format!(
                    "emulated SSD: {}; at most {} at it",
                    LabExperiment::DEVICE,
                    units::plural(self.outstanding, "request")
                )
            }
            Bottleneck::Link => format!(
                "the link on which answers leave: {} Mbit/s; a bound counts 1 ms beside queues",
                LabExperiment::LINK_BITS_PER_S / 1e6
            ),
        }
    }
}

/// The device and its parameters for the analysis.
#[derive(Debug, Clone)]
struct DeviceSetting {
    profile: StorageProfile,
    outstanding: u32,
    largest: Bytes,
    queue: DeviceQueue,
    /// The device time of a request of the copy, seconds; 0 without a copy.
    best_effort: f64,
}

impl DeviceSetting {
    /// The setting for requests of these sizes, which ascend.
    fn new(sizes: &[Bytes], copy: Option<BackgroundCopy>) -> Self {
        let model = LabExperiment::DEVICE;
        let profile = model.profile(sizes);
        let outstanding = OUTSTANDING_PER_CHANNEL * model.channels;
        let largest = *sizes.last().expect("there are requests");
        let queue = DeviceQueue { channels: model.channels, outstanding, reserve: RESERVE };
        let read = |copy: BackgroundCopy| Request {
            arrival: Nanos::ZERO,
            size: copy.size,
            op: Op::Read,
            offset: None,
            response: None,
        };
        let best_effort = copy.map_or(0.0, |copy| longest_work(&[read(copy)], &profile));
        Self { profile, outstanding, largest, queue, best_effort }
    }

    fn plan_case(
        &self,
        case: &ExperimentCase,
        requests: TenantRequests,
        first: Option<&CasePlan>,
    ) -> Result<CasePlan, OperationError> {
        let analysis = self.analysis(case, &requests)?;
        let slos = self.slos(case, &analysis, first);
        let (policy, admits_all) = analysis.protecting_policy(&slos);
        let by_slo = analysis.by_slo(&slos);
        Ok(CasePlan { case: *case, sent: self.scaled(case, requests)?, slos, policy, admits_all, by_slo })
    }

    /// Analyses the tenants with their planned loads. A tenant that sends more does not change the
    /// result.
    fn analysis(
        &self,
        case: &ExperimentCase,
        requests: &[Vec<Request>],
    ) -> Result<DeviceAnalysis, OperationError> {
        let mut tenants = Vec::new();
        for (tenant, requests) in case.tenants.iter().zip(requests) {
            let planned = ScaledTrace::with_device_load(requests.clone(), &self.profile, tenant.load)?;
            let worst_case = WorstCase { reshaping: Reshaping::EveryStage };
            let sketch = worst_case.sketch(&planned.storage_jobs(&self.profile));
            tenants.push(AnalysedTenant {
                name: tenant.name.to_owned(),
                curve: sketch.curve(Stage::Storage).clone(),
                largest: longest_work(requests, &self.profile),
            });
        }
        Ok(DeviceAnalysis::new(tenants, self.queue, self.best_effort))
    }

    fn slos(&self, case: &ExperimentCase, analysis: &DeviceAnalysis, first: Option<&CasePlan>) -> Vec<Slo> {
        let bound = |tenant: usize, above: &[usize]| analysis.bound(tenant, above);
        match case.slos {
            SloRule::LastTightest => slo_assignment::last_tightest(case.tenants, bound),
            SloRule::OwnBound => slo_assignment::own_bound(case.tenants, bound),
            SloRule::InOrder => slo_assignment::in_order(case.tenants, bound),
            SloRule::Requested(seconds) => slo_assignment::requested(case.tenants, seconds),
            SloRule::AsFirstCase => first.expect("the first case has a rule of its own").slos.clone(),
        }
    }

    /// The requests that the tenants send.
    fn scaled(
        &self,
        case: &ExperimentCase,
        requests: TenantRequests,
    ) -> Result<Vec<ScaledTrace>, OperationError> {
        let mut sent = Vec::new();
        for (index, requests) in requests.into_iter().enumerate() {
            let load = match case.misbehaves {
                Some((tenant, load)) if tenant == index => load,
                _ => case.tenants[index].load,
            };
            sent.push(ScaledTrace::with_device_load(requests, &self.profile, load)?);
        }
        Ok(sent)
    }
}

/// The device time of the longest of these requests, seconds.
fn longest_work(requests: &[Request], profile: &StorageProfile) -> f64 {
    let mut model = profile.work_model();
    let works = requests.iter().map(|request| ceil_nanos(model.work(request).base_units()).as_secs());
    works.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
