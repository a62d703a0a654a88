//! The question that placement answers, as plain numbers: classes of servers, and workloads as arrival curves on each
//! class. Files, traces and units are left behind here; what the numbers are fractions of is said by
//! [`Normalisation`](crate::Normalisation).

#[cfg(test)]
mod tests;

use crate::client_place::ClientPlace;
use crate::rules::PlacementRules;
use calculus::{ArrivalCurve, EnforcedClass, round_up};
use model::{Objective, PerStage, Slo, Stage};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use units::Seconds;
use workload::device::StorageProfile;

/// A class of identical servers.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningClass {
    /// The name of the class; no two classes share one.
    pub name: String,
    pub count: usize,
    /// Non-preemptible work of its servers. Without it, bounds are those of the published formula for
    /// preemptive servers, which do not exist; for comparison.
    pub enforced: Option<EnforcedClass>,
}

/// A workload as it looks on one class of server.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadOnClass {
    /// The workload's arrival curve at each stage, as fractions of the stage's capacity; the safety margin is included.
    pub curves: PerStage<ArrivalCurve>,
    /// The mean rate at each stage, fraction of capacity (for the average-rate baseline).
    pub mean_rate: PerStage<f64>,
    /// The work of the largest request at the storage, seconds; the safety margin is included.
    pub largest_request: f64,
    /// The latency of its requests on the idle storage stack at the promised percentile, seconds; it is added to every
    /// queueing bound (thesis §2.3.2).
    pub base_latency: f64,
    /// The work at network-out that may overtake one of its requests at a device that serves several at a time, seconds. The
    /// curve there contains it.
    pub overtaking: f64,
}

impl WorkloadOnClass {
    /// Returns the workload that sends what this one may or what `other` may: the least curves above both.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let largest_request = self.largest_request.max(other.largest_request);
        // The work that overtakes a request is proportional to its own.
        let share =
            |of: &Self| if of.largest_request > 0.0 { of.overtaking / of.largest_request } else { 0.0 };
        let overtaking = round_up(share(self).max(share(other)) * largest_request)
            .max(self.overtaking)
            .max(other.overtaking);
        let [one, two] = [self, other].map(|of| of.clone().with_overtaking(overtaking - of.overtaking));
        Self {
            curves: PerStage::from_fn(|stage| one.curves[stage].join(&two.curves[stage])),
            mean_rate: PerStage::from_fn(|stage| one.mean_rate[stage].max(two.mean_rate[stage])),
            largest_request,
            base_latency: self.base_latency.max(other.base_latency),
            overtaking,
        }
    }

    /// Returns true if a promise for this workload is one for `other`, too.
    pub fn covers(&self, other: &Self) -> bool {
        self.largest_request >= other.largest_request
            && self.base_latency >= other.base_latency
            && self.overtaking >= other.overtaking
            && Stage::ALL.iter().all(|&stage| {
                self.mean_rate[stage] >= other.mean_rate[stage]
                    && self.curves[stage].dominates(&other.curves[stage])
            })
    }

    /// Returns the workload as it looks on links with no storage behind them.
    #[must_use]
    pub fn without_storage(mut self) -> Self {
        self.curves[Stage::Storage] = ArrivalCurve::from_limits(&[(0.0, 0.0)]);
        self.mean_rate[Stage::Storage] = 0.0;
        self.largest_request = 0.0;
        self
    }

    /// Adds the latency of the idle storage stack, by its profile, for requests up to the workload's largest.
    #[must_use]
    pub fn with_base_latency(mut self, profile: &StorageProfile) -> Self {
        self.base_latency = profile.base_latency_within(Seconds(self.largest_request)).0;
        self
    }

    /// Enlarges the curve at network-out by `overtaking` seconds of work that may overtake a request.
    #[must_use]
    pub fn with_overtaking(mut self, overtaking: f64) -> Self {
        if overtaking > 0.0 {
            let out = &mut self.curves[Stage::NetworkOut];
            *out = ArrivalCurve::sum([&*out, &ArrivalCurve::from_limits(&[(0.0, overtaking)])]);
            self.overtaking += overtaking;
        }
        self
    }
}

/// A workload that asks for a guarantee.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningWorkload {
    /// The name of the workload; no two workloads share one.
    pub name: String,
    /// The latency that it asks for.
    pub slo: Slo,
    /// The workload on each class, in the order of [`PlanningProblem::classes`].
    pub on_class: Vec<WorkloadOnClass>,
}

impl PlanningWorkload {
    /// Returns the workload that sends what this one may or what `other` may.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let both = self.on_class.iter().zip(&other.on_class);
        let on_class = both.map(|(own, other)| own.join(other)).collect();
        Self { name: self.name.clone(), slo: self.slo, on_class }
    }

    /// Returns true if a promise for this workload is one for `other`, too.
    pub fn covers(&self, other: &Self) -> bool {
        self.on_class.iter().zip(&other.on_class).all(|(own, other)| own.covers(other))
    }
}

/// An SLO of a workload beside the first one, which is about all its requests.
#[derive(Debug, Clone, PartialEq)]
pub struct FurtherSlo {
    /// The SLO.
    pub slo: Objective,
    /// Time by which the idle storage stack answers the requests that it is about sooner than the slowest of the
    /// workload, seconds by class; 0 or more.
    pub shorter_by: Vec<f64>,
}

impl FurtherSlo {
    /// Returns the latency that it asks for, seconds.
    pub fn latency(&self) -> f64 {
        self.slo.slo.latency.0
    }

    /// Returns the guaranteed latency of the requests that it is about, seconds, from that of all on a class.
    pub fn bound(&self, class: usize, total: f64) -> f64 {
        let shorter_by = self.shorter_by[class];
        if shorter_by > 0.0 { round_up(total - shorter_by) } else { total }
    }
}

/// The SLO of a workload that leaves the least of a guarantee on a class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TightestSlo {
    /// Its latency, seconds.
    pub(crate) latency: f64,
    /// Time by which its requests are answered sooner than the slowest of the workload, seconds.
    pub(crate) shorter_by: f64,
    /// The latency of all requests that it asks for, seconds.
    pub(crate) asked: f64,
}

/// Servers and workloads, and how far capacities and SLOs may be used.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanningProblem {
    /// Classes of server; a new server is taken from the first class that has one left.
    pub classes: Vec<PlanningClass>,
    /// Price of a server by class; empty if servers have none, and the fewest are wanted instead of the cheapest.
    pub prices: Vec<f64>,
    /// The workloads in their order of arrival.
    pub workloads: Vec<PlanningWorkload>,
    /// Σ r at a stage never exceeds this fraction of capacity.
    pub max_rate: f64,
    /// Bounds stay below this fraction of the SLO.
    pub slo_factor: f64,
    /// Rules on where workloads may go.
    pub rules: PlacementRules,
    /// The place of each workload on the links of its client host; empty if bounds count none.
    pub clients: Vec<ClientPlace>,
    /// The hosts that shape links.
    shapers: LinkShapers,
    /// SLOs of workloads beside the first one, by workload; empty if there are none.
    further: Vec<Vec<FurtherSlo>>,
    /// The curves cut to the bursts that the workload's own SLOs allow, by class and then workload.
    relevant_curves: Vec<Vec<PerStage<ArrivalCurve>>>,
}

/// The links of a server that its own kind of host shapes, with turns among equals and buckets that may lose tokens. At
/// the others a switch serves what shapers elsewhere have let pass.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LinkShapers {
    /// One shaper on each link of a server.
    BothLinks,
    /// Clients' hosts shape requests, the server its answers.
    Server,
    /// The problem is about a host of clients: it shapes requests, servers their answers, and others may keep those
    /// links from them for a share of their SLOs here.
    ClientHost { hold_up_share: f64 },
}

/// Why classes and workloads make no planning problem: a name is given twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanningProblemError(String);

impl fmt::Display for PlanningProblemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PlanningProblemError {}

impl PlanningProblem {
    /// Rates up to this fraction of capacity are handed out unless the caller says otherwise.
    pub const MAX_RATE: f64 = 0.999;
    /// Bounds stay below this fraction of the SLO unless the caller says otherwise.
    pub const SLO_FACTOR: f64 = 0.999;

    /// A problem whose names are unique and whose workloads are each described on every class.
    ///
    /// `max_rate` and `slo_factor` are [`PlanningProblem::MAX_RATE`] and [`PlanningProblem::SLO_FACTOR`] unless the
    /// caller has a reason.
    ///
    /// # Errors
    /// When two classes or two workloads share a name.
    ///
    /// # Panics
    /// When a workload is not described once for each class.
    pub fn new(
        classes: Vec<PlanningClass>,
        workloads: Vec<PlanningWorkload>,
        max_rate: f64,
        slo_factor: f64,
    ) -> Result<Self, PlanningProblemError> {
        if let Some(name) = repeated(classes.iter().map(|c| c.name.as_str())) {
            return Err(PlanningProblemError(format!(
                "server class '{name}' is given twice; names must be unique"
            )));
        }
        if let Some(name) = repeated(workloads.iter().map(|w| w.name.as_str())) {
            return Err(PlanningProblemError(format!(
                "workload '{name}' is given twice; names must be unique"
            )));
        }
        assert!(workloads.iter().all(|w| w.on_class.len() == classes.len()), "one description per class");
        let rules = PlacementRules::default();
        let mut problem = Self {
            classes,
            prices: Vec::new(),
            workloads,
            max_rate,
            slo_factor,
            rules,
            clients: Vec::new(),
            shapers: LinkShapers::BothLinks,
            further: Vec::new(),
            relevant_curves: Vec::new(),
        };
        problem.cut_all_curves();
        Ok(problem)
    }

    fn cut_all_curves(&mut self) {
        let mut relevant_curves = Vec::with_capacity(self.classes.len());
        for class in 0..self.classes.len() {
            relevant_curves.push((0..self.workloads.len()).map(|w| self.cut_curves(w, class)).collect());
        }
        self.relevant_curves = relevant_curves;
    }

    /// The problem with workloads whose requests come over these links, one place for each workload.
    ///
    /// # Panics
    /// When there is not one place for each workload.
    #[must_use]
    pub fn with_clients(mut self, clients: Vec<ClientPlace>) -> Self {
        assert_eq!(clients.len(), self.workloads.len(), "one place per workload");
        self.clients = clients;
        self.shapers = LinkShapers::Server;
        self.cut_all_curves();
        self
    }

    /// The problem with SLOs beside the first one, a list for each workload.
    ///
    /// # Panics
    /// When there is not one list for each workload, or an SLO does not have a value for each class.
    #[must_use]
    pub fn with_further_slos(mut self, further: Vec<Vec<FurtherSlo>>) -> Self {
        assert_eq!(further.len(), self.workloads.len(), "one list per workload");
        let is_by_class = |slo: &FurtherSlo| slo.shorter_by.len() == self.classes.len();
        assert!(further.iter().flatten().all(is_by_class), "one value per class");
        if further.iter().all(Vec::is_empty) {
            return self;
        }
        self.further = further;
        self.cut_all_curves();
        self
    }

    /// Returns the SLOs of a workload beside the first one.
    pub fn further_slos(&self, workload: usize) -> &[FurtherSlo] {
        self.further.get(workload).map_or(&[], Vec::as_slice)
    }

    /// Returns the longest guarantee of all requests of a workload on a class with which every SLO of the workload
    /// holds, seconds, before [`Self::slo_factor`]: its SLO if it has one only.
    pub fn latency_asked(&self, workload: usize, class: usize) -> f64 {
        self.tightest_slo(workload, class).asked
    }

    /// Returns the least [`Self::latency_asked`] of a workload over all classes, seconds.
    pub fn least_latency_asked(&self, workload: usize) -> f64 {
        let by_class = (0..self.classes.len()).map(|class| self.latency_asked(workload, class));
        by_class.fold(self.workloads[workload].slo.latency.0, f64::min)
    }

    /// Returns the SLO of a workload that decides [`Self::latency_asked`] on a class.
    pub(crate) fn tightest_slo(&self, workload: usize, class: usize) -> TightestSlo {
        let latency = self.workloads[workload].slo.latency.0;
        let mut tightest = TightestSlo { latency, shorter_by: 0.0, asked: latency };
        for further in self.further_slos(workload) {
            let shorter_by = further.shorter_by[class];
            let asked = further.latency() + shorter_by / self.slo_factor;
            if asked < tightest.asked {
                tightest = TightestSlo { latency: further.latency(), shorter_by, asked };
            }
        }
        tightest
    }

    /// Returns the largest share of an SLO of a workload that a guarantee for all its requests on a class takes.
    pub fn share_of_slos(&self, workload: usize, class: usize, total: f64) -> f64 {
        let further = self.further_slos(workload).iter();
        let further = further.map(|slo| slo.bound(class, total) / slo.latency());
        further.fold(total / self.workloads[workload].slo.latency.0, f64::max)
    }

    /// The problem without what its workloads wait on the links of their hosts: servers are no worse there.
    pub(crate) fn without_clients(&self) -> Cow<'_, Self> {
        if self.clients.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut changed = Self { clients: Vec::new(), shapers: LinkShapers::BothLinks, ..self.clone() };
        changed.cut_all_curves();
        Cow::Owned(changed)
    }

    /// The problem of a host of clients: it shapes network-in, and its network-out is served by a switch. Others may keep
    /// servers' links from answers for this share of the latencies of the SLOs.
    pub(crate) fn of_client_host(self, hold_up_share: f64) -> Self {
        Self { shapers: LinkShapers::ClientHost { hold_up_share }, ..self }
    }

    /// Returns the network stages at which the host that the problem is about shapes a link.
    pub(crate) fn shaped_stages(&self) -> &'static [Stage] {
        match self.shapers {
            LinkShapers::BothLinks => &[Stage::NetworkIn, Stage::NetworkOut],
            LinkShapers::Server => &[Stage::NetworkOut],
            LinkShapers::ClientHost { .. } => &[Stage::NetworkIn],
        }
    }

    /// Returns the network stage whose traffic a shaper elsewhere has let pass, if there is one.
    pub(crate) fn stage_shaped_elsewhere(&self) -> Option<Stage> {
        match self.shapers {
            LinkShapers::BothLinks => None,
            LinkShapers::Server => Some(Stage::NetworkIn),
            LinkShapers::ClientHost { .. } => Some(Stage::NetworkOut),
        }
    }

    /// Returns the longest time for which others keep the link from a workload where a shaper elsewhere holds its bucket,
    /// seconds.
    pub(crate) fn held_up_elsewhere(&self, workload: usize) -> f64 {
        match self.shapers {
            LinkShapers::BothLinks => 0.0,
            LinkShapers::Server => self.clients[workload].served().map_or(0.0, |links| links.held_up),
            LinkShapers::ClientHost { hold_up_share } => {
                self.workloads[workload].slo.latency.0 * hold_up_share
            }
        }
    }

    /// Returns the longest time for which others may keep the link of a server's answers from a workload without its host's
    /// bucket losing tokens, seconds.
    pub(crate) fn hold_up_max(&self, workload: usize) -> f64 {
        let links = self.clients.get(workload).and_then(ClientPlace::served);
        links.map_or(f64::INFINITY, |links| links.hold_up_max)
    }

    /// Returns the longest delay of a workload on the links of its client host, seconds.
    pub(crate) fn client_delay(&self, workload: usize) -> f64 {
        self.clients.get(workload).map_or(0.0, ClientPlace::delay)
    }

    /// The workload's curves on a class, cut to the bursts that its own SLO allows.
    fn cut_curves(&self, workload: usize, class: usize) -> PerStage<ArrivalCurve> {
        let budget = self.budget(workload, class).max(0.0);
        self.workloads[workload].on_class[class].curves.map(|curve| curve.within_burst(budget))
    }

    /// The problem with rules on where its workloads may go.
    #[must_use]
    pub fn with_rules(self, rules: PlacementRules) -> Self {
        Self { rules, ..self }
    }

    /// The problem with these prices of a server, by class.
    ///
    /// # Panics
    /// When there is not one price for each class.
    #[must_use]
    pub fn with_prices(self, prices: Vec<f64>) -> Self {
        assert_eq!(prices.len(), self.classes.len(), "one price per class");
        Self { prices, ..self }
    }

    /// Returns the price of servers of these classes; 0 if servers have no prices. Equal numbers of each class have the same
    /// price, whatever their order.
    pub fn price(&self, servers: impl IntoIterator<Item = usize>) -> f64 {
        let mut counts = vec![0_usize; self.classes.len()];
        servers.into_iter().for_each(|class| counts[class] += 1);
        counts.iter().zip(&self.prices).map(|(count, price)| *count as f64 * price).sum()
    }

    /// Returns the classes by ascending price, equal ones and those without in their order.
    pub(crate) fn classes_by_price(&self) -> Vec<usize> {
        let mut classes: Vec<usize> = (0..self.classes.len()).collect();
        if !self.prices.is_empty() {
            classes.sort_by(|&a, &b| self.prices[a].total_cmp(&self.prices[b]));
        }
        classes
    }

    /// The problem with other numbers of servers, by class.
    #[must_use]
    pub fn with_counts(&self, counts: &[usize]) -> Self {
        let mut changed = self.clone();
        changed.classes.iter_mut().zip(counts).for_each(|(class, count)| class.count = *count);
        changed.rules = changed.rules.with_counts(counts);
        changed
    }

    /// The problem with servers of one class only, of which there are enough for all workloads.
    pub(crate) fn on_one_class(&self, class: usize) -> Self {
        let mut changed = self.clone();
        let count = self.workloads.len();
        changed.classes = vec![PlanningClass { count, ..self.classes[class].clone() }];
        changed.prices = Vec::new();
        changed.relevant_curves = vec![self.relevant_curves[class].clone()];
        for workload in &mut changed.workloads {
            workload.on_class = vec![workload.on_class[class].clone()];
        }
        for slo in changed.further.iter_mut().flatten() {
            slo.shorter_by = vec![slo.shorter_by[class]];
        }
        changed.rules = changed.rules.on_one_class(class, count);
        changed
    }

    /// The problem with some of its workloads only, in this order, and without rules.
    pub(crate) fn subset(&self, workloads: &[usize]) -> Self {
        let mut relevant_curves = Vec::with_capacity(self.classes.len());
        for curves_of_class in &self.relevant_curves {
            relevant_curves.push(workloads.iter().map(|&w| curves_of_class[w].clone()).collect());
        }
        Self {
            classes: self.classes.clone(),
            prices: self.prices.clone(),
            workloads: workloads.iter().map(|&w| self.workloads[w].clone()).collect(),
            rules: PlacementRules::default(),
            clients: workloads.iter().filter_map(|&w| self.clients.get(w).cloned()).collect(),
            further: workloads.iter().filter_map(|&w| self.further.get(w).cloned()).collect(),
            relevant_curves,
            ..*self
        }
    }

    /// The problem with another latency in one workload's SLO, seconds (positive). Its further SLOs change by the same
    /// factor.
    pub(crate) fn with_slo(&self, workload: usize, latency: f64) -> Self {
        let mut changed = self.clone();
        let asked = std::mem::replace(&mut changed.workloads[workload].slo.latency.0, latency);
        for slo in changed.further.get_mut(workload).into_iter().flatten() {
            slo.slo.slo.latency.0 *= latency / asked;
        }
        changed.with_curves_cut_again(workload)
    }

    /// The problem with other non-preemptible work of a class.
    pub(crate) fn with_enforced(&self, class: usize, enforced: EnforcedClass) -> Self {
        let mut changed = self.clone();
        changed.classes[class].enforced = Some(enforced);
        changed.relevant_curves[class] =
            (0..changed.workloads.len()).map(|workload| changed.cut_curves(workload, class)).collect();
        changed
    }

    /// The problem with one workload's work multiplied by `factor`.
    pub(crate) fn with_load(&self, workload: usize, factor: f64) -> Self {
        let mut changed = self.clone();
        for description in &mut changed.workloads[workload].on_class {
            description.curves = description.curves.map(|curve| curve.scaled(factor));
            description.mean_rate = description.mean_rate.map(|rate| rate * factor);
            description.largest_request *= factor;
            description.overtaking *= factor;
        }
        changed.with_curves_cut_again(workload)
    }

    fn with_curves_cut_again(mut self, workload: usize) -> Self {
        for class in 0..self.classes.len() {
            self.relevant_curves[class][workload] = self.cut_curves(workload, class);
        }
        self
    }

    /// The workload's curves on a class, cut to the bursts that its own SLO allows: no limits above them can be part of
    /// any plan, so optimisation looks no further.
    pub(crate) fn relevant_curves(&self, workload: usize, class: usize) -> &PerStage<ArrivalCurve> {
        &self.relevant_curves[class][workload]
    }

    /// Returns the part of a workload's SLOs left for queueing on a class, seconds; negative if an idle server
    /// already exceeds the SLO.
    pub fn budget(&self, workload: usize, class: usize) -> f64 {
        self.latency_asked(workload, class) * self.slo_factor - self.time_on_idle_server(workload, class)
    }

    /// Returns the time of a workload's largest request on an idle server beyond its share of the device, seconds: the
    /// latency of the idle storage stack, the delay on the links of its client host and, if they count, its service on one
    /// channel and the proxy.
    pub(crate) fn time_on_idle_server(&self, workload: usize, class: usize) -> f64 {
        let enforced = self.classes[class].enforced;
        self.base_latency(workload, class)
            + self.client_delay(workload)
            + enforced.map_or(0.0, |enforced| enforced.own_time(self.largest_request(workload, class)))
    }

    /// The latency of a workload's requests on the idle storage stack of a class, seconds.
    pub(crate) fn base_latency(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].on_class[class].base_latency
    }

    /// The work of a workload's largest request at the storage of a class, seconds.
    pub(crate) fn largest_request(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].on_class[class].largest_request
    }

    /// The work at network-out that may overtake a request of a workload at the device of a class, seconds.
    pub(crate) fn overtaking(&self, workload: usize, class: usize) -> f64 {
        self.workloads[workload].on_class[class].overtaking
    }

    /// The number of servers of all classes together.
    pub fn server_count(&self) -> usize {
        self.classes.iter().map(|c| c.count).sum()
    }
}

/// The first name that occurs a second time.
fn repeated<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.find(|name| !seen.insert(*name))
}
