//! What would admit a refused workload: for each kind of change, the smallest that is enough on its own.

use crate::instance::Instance;
use crate::limits::Method;
use crate::placement::{Placement, Refusal};

/// One change that on its own would admit the workload.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// One more server of this class.
    OneMoreServer {
        /// Class name.
        class: String,
    },
    /// A looser SLO.
    Latency {
        /// The least latency that can be promised, seconds (rounded up to three digits).
        slo: f64,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
    /// Less work per request or fewer requests: the workload scaled by this factor (below 1).
    Load {
        /// Largest factor that fits, rounded down to three digits.
        factor: f64,
        /// The server it would join, by its number in the placement; `None` for an empty one.
        server: Option<usize>,
    },
}

/// Looser SLOs are considered up to this factor.
const LOOSEST: f64 = 100.0;
/// Smaller loads are considered down to this factor.
const LIGHTEST: f64 = 0.001;
/// Looser SLOs are tried in this many geometric steps: a looser SLO may rank behind another workload, so
/// what fits does not grow steadily with it, and bisection alone could miss the first that fits.
const STEPS: i32 = 32;
/// Bisections after that: enough for three digits.
const BISECTIONS: usize = 10;
/// Servers considered, the emptiest first; a change that suits none of them suits hardly any other.
const SERVERS: usize = 32;

/// Changes that would admit the workload. Empty when nothing simple does.
pub fn advise(instance: &Instance, method: Method, placement: &Placement, refusal: &Refusal) -> Vec<Change> {
    let advisor = Advisor::new(instance, method, placement, refusal.workload);
    let mut changes = Vec::new();
    if refusal.alone.is_none() {
        let suits = |class: &usize| method.admit(instance, *class, &[refusal.workload]).is_ok();
        if let Some(class) = (0..instance.classes.len()).find(suits) {
            changes.push(Change::OneMoreServer { class: instance.classes[class].name.clone() });
        }
    }
    changes.extend(advisor.latency());
    changes.extend(advisor.load());
    changes
}

/// A place that could take the workload.
#[derive(Debug, Clone)]
struct Place {
    /// Number in the placement; `None` for an empty server.
    server: Option<usize>,
    class: usize,
    members: Vec<usize>,
}

/// Works on an instance of its own, of the workloads that matter: it is varied many times.
struct Advisor {
    instance: Instance,
    method: Method,
    workload: usize,
    places: Vec<Place>,
}

impl Advisor {
    fn new(instance: &Instance, method: Method, placement: &Placement, workload: usize) -> Self {
        let used = |class: usize| placement.servers.iter().filter(|s| s.class == class).count();
        let classes =
            (0..instance.classes.len()).filter(|&class| used(class) < instance.classes[class].count);
        let mut places: Vec<Place> =
            classes.map(|class| Place { server: None, class, members: vec![workload] }).collect();
        let mut by_rate: Vec<(f64, usize)> = placement
            .servers
            .iter()
            .enumerate()
            .map(|(number, server)| {
                let mean = |&w: &usize| {
                    let rates = instance.workloads[w].on[server.class].mean_rate;
                    rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max)
                };
                (server.members.iter().map(mean).sum(), number)
            })
            .collect();
        by_rate.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, number) in by_rate.into_iter().take(SERVERS) {
            let server = &placement.servers[number];
            let mut members = server.members.clone();
            members.push(workload);
            places.push(Place { server: Some(number), class: server.class, members });
        }
        let mut involved: Vec<usize> =
            places.iter().flat_map(|place| place.members.iter().copied()).collect();
        involved.push(workload);
        involved.sort_unstable();
        involved.dedup();
        let renumbered = |w: usize| involved.binary_search(&w).expect("every member is involved");
        for member in places.iter_mut().flat_map(|place| &mut place.members) {
            *member = renumbered(*member);
        }
        Self { instance: instance.subset(&involved), method, workload: renumbered(workload), places }
    }

    /// The first place that takes the workload as `instance` describes it.
    fn place(&self, instance: &Instance) -> Option<&Place> {
        self.places.iter().find(|place| self.method.admit(instance, place.class, &place.members).is_ok())
    }

    /// The least latency that some place can promise.
    fn latency(&self) -> Option<Change> {
        let asked = self.instance.workloads[self.workload].slo.latency.0;
        let with = |slo: f64| self.instance.with_slo(self.workload, slo);
        let step = LOOSEST.powf(1.0 / f64::from(STEPS));
        let mut high =
            (1..=STEPS).map(|i| asked * step.powi(i)).find(|&slo| self.place(&with(slo)).is_some())?;
        let mut low = high / step;
        for _ in 0..BISECTIONS {
            let middle = (low * high).sqrt();
            if self.place(&with(middle)).is_some() { high = middle } else { low = middle }
        }
        // Rounding up may cross another workload's SLO and change the order: ask once more.
        let slo = [round(high, f64::ceil), high].into_iter().find(|&slo| self.place(&with(slo)).is_some())?;
        Some(Change::Latency { slo, server: self.place(&with(slo))?.server })
    }

    /// The largest share of the load that some place takes.
    fn load(&self) -> Option<Change> {
        let with = |factor: f64| self.instance.with_load(self.workload, factor);
        let (mut low, mut high) = (LIGHTEST, 1.0);
        self.place(&with(low))?;
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if self.place(&with(middle)).is_some() { low = middle } else { high = middle }
        }
        let factor =
            [round(low, f64::floor), low].into_iter().find(|&factor| self.place(&with(factor)).is_some())?;
        Some(Change::Load { factor, server: self.place(&with(factor))?.server })
    }
}

/// Rounds to three significant digits.
fn round(value: f64, direction: fn(f64) -> f64) -> f64 {
    let scale = 10f64.powf(2.0 - value.log10().floor());
    direction(value * scale) / scale
}
