//! Probability that independent streams together demand more than a queue has served.
//!
//! Streams come as plain tables: for every window of a grid the law of the work that arrives in it, and the
//! logarithm of its moment generating function on a grid of exponents θ. The question is
//! `P(∃ u ≥ 0: S(u) + H(u + d) ≥ spare·u + room)`: S is the work of the streams that compete in the same
//! class within a window of length u, H that of the classes above in a window that goes on for another d.
//!
//! 1. *Cells.* Work grows with the window, so for all u between two grid points the event implies the one
//!    with the left side at the upper end and the right side at the lower end. The probability is at most the
//!    sum over cells; the partition into cells that makes the sum least is a shortest path ([`WorkTails`]).
//!    There is no geometric series, no common θ, and cells beyond which the work cannot suffice cost nothing.
//!    From one grid point v to the next, w, there is a second event: with ρ the sum of the mean rates of S's streams and
//!    Y_i = sup_{v ≤ u ≤ w} (S_i(u) − ρ_i·(u − v)), S(u) is at most Σ Y_i + ρ·(u − v), and spare ≥ ρ, so the event at
//!    any u of the cell implies Σ Y_i + H(w + d) ≥ spare·v + room. The Y_i are independent as the S_i are, and their laws
//!    are exact. The first event compares the work of a window with the service of a shorter one, and fails where ρ is
//!    close to the spare rate; the second one does not.
//! 2. *One cell* takes the smaller of two bounds. Chernoff: `min_θ exp(Σ Λ_i(θ) − θ·y)`, where adding a
//!    stream is adding its table. Convolution: the few streams that matter most are convolved exactly on a
//!    lattice (rounded up) and the others enter by Chernoff at the room that is left; this is what makes
//!    bounds tight when single bursts fill the room, where Chernoff alone is off by an order of magnitude.
//! 3. *Dependent streams* count as if they were comonotone (all at their q-quantiles together) in Chernoff's
//!    bound. Among all joint laws with these marginals that is the largest sum in convex order, hence the
//!    largest moment generating function (Dhaene et al.), so it is what Hölder's inequality with optimal
//!    weights can at best approach: sharp, and without a search.
//!
//! [`Crossings`] bounds the same probability by passages through a level, for few windows and without Chernoff's bound.
//!
//! Not covered: where laws come from, and what a latency has to do with the event.

mod atom;
mod chernoff;
mod convolve;
mod crossings;
mod grid;
mod sums;
mod tails;
mod window_laws;

pub use atom::LawAtom;
pub use crossings::{Crossings, LimitedLaw};
pub use grid::TailGrid;
pub use sums::LawSums;
pub use tails::{CrossTraffic, TailMethod, WorkTails};
pub use window_laws::WindowLaws;

#[cfg(test)]
mod tests;
