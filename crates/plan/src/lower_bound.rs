//! How few servers any placement could use.
//!
//! In a linear [`LatencyModel`] every server satisfies homogeneous inequalities, so their sum over M
//! servers is the same inequality for all workloads together with M times the budget, and the least such
//! M bounds the number of servers. Its multipliers price each workload: on any server the prices of its
//! members add up to at most 1. With several classes, each workload counts with its lowest price.

use crate::chain::{LatencyModel, Outcome, Precision, Prices, minimise};
use crate::instance::Instance;
use crate::limits::{Method, chain_of};
use crate::server::levels;
use model::Stage;

/// No placement of all workloads that fit on some empty server uses fewer servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// The bound before rounding up.
    pub fractional: f64,
    /// The bound.
    pub servers: usize,
}

/// Precision of the prices; any prices give a valid bound, better ones a tighter one.
const PRECISION: f64 = 1e-6;

/// A bound for placements whose limits `method` chooses.
pub fn lower_bound(instance: &Instance, method: Method) -> LowerBound {
    let fits_alone = |w: usize, class: usize| method.admit(instance, class, &[w]).is_ok();
    let fractional: f64 = match method {
        Method::Exact | Method::Knee | Method::Average(_) => {
            prices_of_all(instance, LatencyModel::Outer, fits_alone).iter().sum()
        }
        Method::Relaxed => prices_of_all(instance, LatencyModel::Relaxed, fits_alone).iter().sum(),
        Method::EffectiveEven | Method::EffectiveBest => reserved_rates(instance, method),
    };
    // A bound computed a hair above a whole number must not round up to the next.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let servers = (fractional * (1.0 - 1e-9)).ceil() as usize;
    LowerBound { fractional, servers }
}

/// How much of a server each workload takes, by the prices of the relaxed model; 0 where its own SLO leaves
/// it no limits.
pub(crate) fn sizes(instance: &Instance) -> Vec<f64> {
    let sustainable = |w: usize, class: usize| {
        let of_stage =
            |(_, curve): (Stage, &calculus::ArrivalCurve)| curve.sustained_rate() <= instance.max_rate;
        instance.budget(w, class) > 0.0 && instance.relevant(w, class).iter().all(of_stage)
    };
    prices_of_all(instance, LatencyModel::Relaxed, sustainable)
}

/// Each workload's lowest price over the classes that it may use; 0 where there is none.
fn prices_of_all(
    instance: &Instance,
    model: LatencyModel,
    may_use: impl Fn(usize, usize) -> bool,
) -> Vec<f64> {
    let mut lowest: Vec<Option<f64>> = vec![None; instance.workloads.len()];
    for class in 0..instance.classes.len() {
        let members: Vec<usize> = (0..instance.workloads.len()).filter(|&w| may_use(w, class)).collect();
        let Some(prices) = class_prices(instance, class, &members, model) else { continue };
        for w in members {
            let price = prices.cost(instance.budget(w, class), instance.relevant(w, class));
            lowest[w] = Some(lowest[w].map_or(price, |l| l.min(price)));
        }
    }
    lowest.into_iter().map(|price| price.unwrap_or(0.0)).collect()
}

/// Prices at the least number of servers of one class that could carry the members.
fn class_prices(instance: &Instance, class: usize, members: &[usize], model: LatencyModel) -> Option<Prices> {
    if members.is_empty() {
        return None;
    }
    let chain = chain_of(instance, class, &levels(instance, class, members), model);
    match minimise(&chain, Precision::Within(PRECISION)) {
        Outcome::Solved { prices, .. } => Some(prices),
        Outcome::Overloaded(_) => None,
    }
}

/// Servers by reserved rate alone, for methods whose limits let no burst pass.
fn reserved_rates(instance: &Instance, method: Method) -> f64 {
    let mut lowest: Vec<Option<[f64; 3]>> = vec![None; instance.workloads.len()];
    // The best split falls back to the even one, which may reserve less at a stage.
    let splits = [method, Method::EffectiveEven];
    for (class, split) in (0..instance.classes.len()).flat_map(|class| splits.map(|split| (class, split))) {
        for (w, lowest) in lowest.iter_mut().enumerate() {
            let Ok(server) = split.fit(instance, class, vec![w]) else { continue };
            let rates = server.reserved_rate().into_array();
            *lowest = Some(lowest.map_or(rates, |l| std::array::from_fn(|s| l[s].min(rates[s]))));
        }
    }
    let total = |stage: usize| lowest.iter().flatten().map(|rates| rates[stage]).sum::<f64>();
    Stage::ALL.map(|stage| total(stage as usize) / instance.max_rate).into_iter().fold(0.0, f64::max)
}
