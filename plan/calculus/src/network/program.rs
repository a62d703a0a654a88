//! The worst trajectory of a tandem as a linear program.
//!
//! Going back from the end t_n of the last bit at the last server, t_{i−1} begins the backlogged period of
//! server i (of the flow and all that may be served before it) that contains t_i. Variables are the lengths
//! `τ_i = t_i − t_{i−1} ≥ 0`, the work `s_j^i ≥ 0` of flow j that server i does in its period, and the time u
//! from t_0 to the arrival of the last bit of flow w. With f the first and l the last server of j,
//!
//! - *service*: `Σ_j s_j^i ≥ R·(τ_i − T)` for each line ⟨R, T⟩ of server i's strict service curve;
//! - *arrivals*: `Σ_{f≤i'≤i} s_j^{i'} ≤ r·(t_i − t_{f−1}) + b` for each line ⟨r, b⟩ of j, f ≤ i ≤ l: whatever a
//!   server does for j in its period came to j's first server since t_{f−1}, when that was empty, because
//!   servers i and i + 1 hand over at t_i, when i + 1 is empty. The same from any later server of j's on, with
//!   the curve that j has there: this is how priorities among the others and FIFO levels are told;
//! - *the last bit*: `Σ_i s_w^i ≤ r·u + b` for each line of w: all of it came by u.
//!
//! Maximise `Σ τ_i − u`. Of windows at the source those from t_{f−1} are all that is needed: a concave curve that is 0 or more at 0
//! is subadditive, so filling them from there breaks no other. Any trajectory of the network is feasible,
//! hence a bound; without the later curves a solution extends to a trajectory of blind multiplexing.
//!
//! The thesis (§3.2.3) states the same program for the inverse service curve at a given amount y. Its text
//! leaves out what ties a server to the next one (`R'_k^q = R_k^{q+1}`, here in the sums), and reads "a workload
//! of higher priority than k" where the workload under analysis must be meant.
//!
//! The simplex method satisfies constraints within about 10⁻⁸ of the largest burst, to which everything is
//! scaled; the result is raised by a multiple of that.

use super::hops::propagate;
use super::tandem::{CrossFlow, Tandem, hop_terms, tandem_of};
use super::{FeedForwardNetwork, FlowBound};
use crate::{ArrivalCurve, ServiceCurve};
use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable, constraint, microlp,
    variable,
};

/// Error allowed to the simplex method, relative to the result and to the time scale.
const TOLERANCE: f64 = 1e-7;

/// The bounds of all flows by one linear program each.
pub fn linear_program(network: &FeedForwardNetwork) -> Vec<FlowBound> {
    let hops = propagate(network);
    let mut bounds = Vec::with_capacity(network.flows.len());
    for flow in 0..network.flows.len() {
        let tandem = tandem_of(network, &hops, flow);
        let delay = tandem.map_or(f64::INFINITY, |tandem| longest_delay(&tandem));
        let hops = hop_terms(network, flow, &ServiceCurve::none(), &hops);
        bounds.push(FlowBound { hops, delay });
    }
    bounds
}

/// The lines of a flow's curves and the variables for its work at each server of its stretch.
struct FlowVariables {
    /// The lines of the curve at each server of the stretch, as (rate, burst).
    limits: Vec<Vec<(f64, f64)>>,
    /// The position of the stretch's first server on the path.
    first: usize,
    /// The work s that each server of the stretch does in its period.
    served: Vec<Variable>,
}

/// The linear program of a tandem before its constraints.
struct TandemProgram {
    variables: ProblemVariables,
    /// The lengths τ of the servers' periods.
    lengths: Vec<Variable>,
    /// The flow under analysis first, then the cross flows.
    flows: Vec<FlowVariables>,
    /// The time u from the first period's beginning to the arrival of the last bit.
    last_bit: Variable,
}

/// The longest delay of the flow on its tandem, seconds.
fn longest_delay(tandem: &Tandem) -> f64 {
    if is_overloaded(tandem) {
        return f64::INFINITY;
    }
    let cross_bursts = tandem.cross.iter().map(|cross| largest_burst(&cross.arrivals[0]));
    let bursts = cross_bursts.fold(largest_burst(&tandem.arrivals[0]), f64::max);
    let scale = if bursts > 0.0 { bursts } else { 1.0 };
    let program = TandemProgram::new(tandem, scale);
    let delay = match program.solve(tandem, scale) {
        Ok(delay) => delay,
        Err(_) => return f64::INFINITY,
    };
    (delay * (1.0 + TOLERANCE) + TOLERANCE) * scale
}

/// The largest burst of the lines of a curve.
fn largest_burst(curve: &ArrivalCurve) -> f64 {
    curve.limits().iter().map(|limit| limit.1).fold(0.0, f64::max)
}

/// Returns true if a server cannot sustain the flow and the traffic served before it.
fn is_overloaded(tandem: &Tandem) -> bool {
    let own = tandem.arrivals[0].sustained_rate();
    tandem.servers.iter().enumerate().any(|(i, server)| {
        let here = |c: &&CrossFlow| (c.stretch.0..=c.stretch.1).contains(&i);
        let cross: f64 = tandem.cross.iter().filter(here).map(|c| c.arrivals[0].sustained_rate()).sum();
        server.is_none() || cross + own > server.rate() || cross >= server.rate()
    })
}

impl TandemProgram {
    /// The variables, with work and time in units of `scale` seconds (capacities are work per second, so rates stay).
    fn new(tandem: &Tandem, scale: f64) -> Self {
        let mut variables = ProblemVariables::new();
        let n = tandem.servers.len();
        let lengths = variables.add_vector(variable().min(0.0), n);
        let last_bit = variables.add(variable().min(0.0));
        let own = (&tandem.arrivals, (0, n - 1));
        let cross = tandem.cross.iter().map(|cross| (&cross.arrivals, cross.stretch));
        let mut flows = Vec::with_capacity(1 + tandem.cross.len());
        for (arrivals, (first, last)) in std::iter::once(own).chain(cross) {
            let mut limits = Vec::with_capacity(arrivals.len());
            for curve in arrivals {
                limits.push(curve.limits().iter().map(|&(rate, burst)| (rate, burst / scale)).collect());
            }
            let served = variables.add_vector(variable().min(0.0), last - first + 1);
            flows.push(FlowVariables { limits, first, served });
        }
        Self { variables, lengths, flows, last_bit }
    }

    /// The longest delay in units of `scale` seconds.
    fn solve(self, tandem: &Tandem, scale: f64) -> Result<f64, ResolutionError> {
        let Self { variables, lengths, flows, last_bit } = self;
        let objective = lengths.iter().sum::<Expression>() - last_bit;
        let mut model = variables.maximise(objective).using(microlp);
        for (i, server) in tandem.servers.iter().enumerate() {
            let served_here =
                flows.iter().filter_map(|flow| flow.served.get(i.checked_sub(flow.first)?).copied());
            let done: Expression = served_here.sum();
            for (rate, latency) in server.lines() {
                model
                    .add_constraint(constraint!(done.clone() - rate * lengths[i] >= -rate * latency / scale));
            }
        }
        for (w, from) in flows.iter().flat_map(|w| (0..w.served.len()).map(move |from| (w, from))) {
            for upto in from + 1..=w.served.len() {
                let done: Expression = w.served[from..upto].iter().sum();
                let time: Expression = lengths[w.first + from..w.first + upto].iter().sum();
                for &(rate, burst) in &w.limits[from] {
                    model.add_constraint(constraint!(done.clone() - rate * time.clone() <= burst));
                }
            }
        }
        for &(rate, burst) in &flows[0].limits[0] {
            let done: Expression = flows[0].served.iter().sum();
            model.add_constraint(constraint!(done - rate * last_bit <= burst));
        }
        let solution = model.solve()?;
        let total: f64 = lengths.iter().map(|&v| solution.value(v)).sum();
        Ok((total - solution.value(last_bit)).max(0.0))
    }
}
