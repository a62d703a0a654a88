//! One case under one policy, for real.

use super::data::{Bottleneck, Experiment, PolicyName, Tenant};
use super::demand::{Planned, PlannedCase};
use super::ground::Ground;
use super::link::LinkGround;
use crate::device::Model;
use discipline::serve::{FeedbackClass, FeedbackParameters, Kind};
use enforce::command::may_configure_networks;
use enforce::storage::Baseline;
use load::{ClientHost, LoadOptions, LoadProgress, LoadReport, LoadTarget, LoadWorkload, OfferedLoad};
use model::{Op, OperationError, Slo};
use std::sync::atomic::AtomicBool;
use units::Nanos;

/// The copy's workload.
pub(super) const COPY: &str = "L";
/// Of the generator.
const PRIORITY: u32 = 10;
/// A deadline that never comes: 36 years.
const NEVER: u64 = 1 << 60;
/// Of feedback: a tenth of Cake's 10 s, because the device serves more than ten times as many requests as a disk.
const INTERVAL_NS: u64 = 1_000_000_000;
/// Where nothing is held back.
const UNBOUNDED: u32 = 1024;

/// How to play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Not observed. The thesis observes the second half of each run only, so that feedback has converged.
    pub warm_up: Nanos,
    /// Observed.
    pub duration: Nanos,
    /// Of places on the device.
    pub seed: u64,
    /// Device, proxy and generator under SCHED_FIFO.
    pub realtime: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Played {
    /// Of all workloads: the tenants in their order, then the copy.
    pub ran: LoadReport,
}

impl Planned {
    pub(super) fn experiment_device(&self) -> Model {
        Experiment::DEVICE
    }

    /// Names of the workloads of a case, the copy last.
    fn names(&self, case: &PlannedCase) -> Vec<String> {
        let copy = self.experiment.copy.map(|_| COPY.to_owned());
        case.case.tenants.iter().map(|tenant| tenant.name.to_owned()).chain(copy).collect()
    }

    /// A discipline in the place of priorities and limits.
    fn baseline(&self, slos: &[Slo], policy: PolicyName) -> Option<Baseline> {
        let workloads = u32::try_from(slos.len()).expect("few workloads");
        // Everybody, and one for the copy.
        let each = |weight: u32| vec![weight; slos.len() + 1];
        let slo_ns = |slo: &Slo| Nanos::from_secs(slo.latency.0).map_or(NEVER, |latency| latency.0);
        let (kind, outstanding) = match policy {
            PolicyName::BySlo | PolicyName::Tailwright => return None,
            PolicyName::None => (Kind::Fifo, UNBOUNDED),
            PolicyName::Proportional => (Kind::Proportional { weights: each(1) }, self.outstanding),
            PolicyName::Edf => {
                let allowed = slos.iter().map(slo_ns).chain([NEVER]).collect();
                (Kind::Deadline { allowed }, self.outstanding)
            }
            PolicyName::Feedback => {
                let class = |slo| FeedbackClass { weight: 1, slo };
                let classes = slos.iter().map(|slo| class(Some(slo_ns(slo)))).chain([class(None)]);
                let parameters = FeedbackParameters::of(classes.collect(), INTERVAL_NS);
                (Kind::Feedback(parameters), self.outstanding)
            }
        };
        Some(Baseline { kind, outstanding, workloads })
    }

    fn workloads(&self, case: &PlannedCase, ground: &Ground, end: Nanos) -> Vec<LoadWorkload> {
        let mut demands: Vec<OfferedLoad> =
            case.sent.iter().map(|sent| OfferedLoad::Open(sent.until(end))).collect();
        demands.extend(self.experiment.copy.map(|copy| OfferedLoad::Closed {
            in_flight: copy.outstanding,
            op: Op::Read,
            size: copy.size,
            sequential: true,
        }));
        let names = self.names(case);
        assert_eq!(names.len(), ground.workloads(), "a host for each");
        let of = |(name, demand): (String, OfferedLoad)| LoadWorkload {
            target: LoadTarget::Nbd { server: ground.address(), export: name.clone() },
            client: ClientHost { netns: Some(ground.netns(&name).to_owned()), bind: None },
            connections: 1,
            name,
            offered: demand,
        };
        names.into_iter().zip(demands).map(of).collect()
    }
}

/// One connection for each: answers of one workload come in one order, and the link is shared by workloads.
fn on_link(case: &PlannedCase, ground: &LinkGround, end: Nanos) -> Vec<LoadWorkload> {
    let of = |(at, (tenant, sent)): (usize, (&Tenant, &super::Demand))| LoadWorkload {
        target: ground.target(case, at),
        client: ClientHost { netns: Some(ground.netns(tenant.name).to_owned()), bind: None },
        connections: 1,
        name: tenant.name.to_owned(),
        offered: OfferedLoad::Open(sent.until(end)),
    };
    case.case.tenants.iter().zip(&case.sent).enumerate().map(of).collect()
}

fn generate(
    workloads: Vec<LoadWorkload>,
    settings: &Settings,
    progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<Played, OperationError> {
    let options = LoadOptions {
        warm_up: settings.warm_up,
        duration: settings.duration,
        seed: settings.seed,
        realtime: settings.realtime.then_some(PRIORITY),
        ..LoadOptions::default()
    };
    let ran = load::run(workloads, &options, progress, stop)?;
    Ok(Played { ran })
}

/// Sets everything up, plays, and takes everything down.
///
/// # Errors
/// Without root, or when the machine lacks something.
pub fn run(
    planned: &Planned,
    case: &PlannedCase,
    policy: PolicyName,
    settings: &Settings,
    progress: &mut dyn FnMut(LoadProgress),
    stop: &AtomicBool,
) -> Result<Played, OperationError> {
    if !may_configure_networks() {
        return Err(
            OperationError::machine("this process may not make network namespaces").hint("run as root")
        );
    }
    let end = settings.warm_up + settings.duration;
    if planned.experiment.bottleneck == Bottleneck::Link {
        let policy = match policy {
            PolicyName::BySlo => Some(&case.by_slo),
            PolicyName::Tailwright => Some(&case.policy.0),
            _ => None,
        };
        let ground = LinkGround::new(case, policy, settings.realtime)?;
        return generate(on_link(case, &ground, end), settings, progress, stop);
    }
    let mut ground = Ground::new(planned, &planned.names(case), settings.realtime)?;
    let enforced = if policy == PolicyName::Tailwright { &case.policy.0 } else { &case.by_slo };
    ground.enforce(planned, enforced.clone(), planned.baseline(&case.slos, policy), settings.realtime)?;
    let played = generate(planned.workloads(case, &ground, end), settings, progress, stop)?;
    match ground.finish() {
        Some(Err(fault)) => Err(fault),
        _ => Ok(played),
    }
}
