//! Service curves: the least work that a flow is served within a duration while it is backlogged.
//!
//! A curve is nothing for a while, then an optional jump, then convex and piecewise linear: rate-latency
//! curves, their convolutions and leftovers under strict priority and blind multiplexing have no jump; the
//! FIFO family has one. Rounding goes inward here (less service), so that delays from a curve go outward.
//!
//! Not covered: curves with several jumps. Where an exact result would have them (convolution), a curve below
//! it is given, and said.

use crate::{ArrivalCurve, CurveVertex};

/// A service curve that is convex but for one jump: 0 up to and at `delay`, then `jump` and pieces of rising rate.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceCurve {
    delay: f64,
    jump: f64,
    pieces: Vec<Piece>,
    /// The rate after all pieces, which is above their rates.
    rate: f64,
}

/// A segment of a service curve.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    length: f64,
    rate: f64,
}

/// Returns a bound on the rounding error of a few operations on terms of this magnitude.
fn slack(magnitude: f64) -> f64 {
    16.0 * f64::EPSILON * magnitude
}

impl ServiceCurve {
    /// The rate-latency curve `rate·(t − latency)⁺`; both are finite and not negative. A rate of 0 serves nothing.
    pub fn rate_latency(rate: f64, latency: f64) -> Self {
        assert!(
            rate.is_finite() && rate >= 0.0 && latency.is_finite() && latency >= 0.0,
            "finite, not negative"
        );
        if rate == 0.0 { Self::none() } else { Self { delay: latency, jump: 0.0, pieces: Vec::new(), rate } }
    }

    /// The largest of several rate-latency curves `(rate, latency)`, at least one.
    pub fn largest(curves: &[(f64, f64)]) -> Self {
        assert!(!curves.is_empty(), "at least one curve");
        let mut times: Vec<f64> = curves.iter().map(|c| c.1).collect();
        for a in curves {
            // Abscissas at which two of the lines cross; NaN for a line and itself.
            times.extend(curves.iter().map(|b| (a.0 * a.1 - b.0 * b.1) / (a.0 - b.0)));
        }
        times.retain(|t| t.is_finite() && *t >= 0.0);
        times.sort_unstable_by(f64::total_cmp);
        times.dedup();
        let largest_at = |t: f64| curves.iter().map(|&(r, l)| r * (t - l)).fold(0.0, f64::max);
        let points: Vec<(f64, f64)> = times.into_iter().map(|t| (t, largest_at(t))).collect();
        Self::through_points(&points, curves.iter().map(|c| c.0).fold(0.0, f64::max))
    }

    /// The curve of no service at all.
    pub fn none() -> Self {
        Self { delay: f64::INFINITY, jump: 0.0, pieces: Vec::new(), rate: 0.0 }
    }

    /// The convex curve through these points, which is 0 until the segment of the first positive one.
    fn through_points(points: &[(f64, f64)], rate: f64) -> Self {
        let start = points.iter().rposition(|p| p.1 <= 0.0).unwrap_or(0);
        let pieces = points[start..]
            .windows(2)
            .map(|p| Piece { length: p[1].0 - p[0].0, rate: (p[1].1 - p[0].1) / (p[1].0 - p[0].0) });
        Self { delay: points[start].0, jump: 0.0, pieces: pieces.collect(), rate }.simplified()
    }

    /// Removes pieces that have no length, or that continue the delay or the final rate.
    fn simplified(mut self) -> Self {
        self.pieces.retain(|piece| piece.length > 0.0);
        while self.pieces.last().is_some_and(|piece| piece.rate >= self.rate) {
            self.pieces.pop();
        }
        if self.jump == 0.0 {
            let idle = self.pieces.iter().take_while(|piece| piece.rate <= 0.0).count();
            self.delay += self.pieces.drain(..idle).map(|piece| piece.length).sum::<f64>();
        }
        self
    }

    /// Returns the long-run rate; 0 without service.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the longest time without any service, seconds.
    pub fn latency(&self) -> f64 {
        self.delay
    }

    /// Returns true if the curve never serves anything.
    pub fn is_none(&self) -> bool {
        self.delay.is_infinite()
    }

    /// The work that is served at once after the latency; 0 for convex curves.
    pub fn jump(&self) -> f64 {
        self.jump
    }

    /// The corners after the jump as (time, work), by time.
    fn corners(&self) -> impl Iterator<Item = (f64, f64)> {
        let mut at = (self.delay, self.jump);
        std::iter::once(at).chain(self.pieces.iter().map(move |piece| {
            at = (at.0 + piece.length, at.1 + piece.length * piece.rate);
            at
        }))
    }

    /// The lines of which a convex curve is the largest beside 0, as (rate, latency).
    pub fn lines(&self) -> Vec<(f64, f64)> {
        let rates = self.pieces.iter().map(|piece| piece.rate).chain([self.rate]);
        let corners = self.corners().zip(rates).filter(|(_, rate)| *rate > 0.0);
        corners.map(|((time, work), rate)| (rate, time - work / rate)).collect()
    }

    /// The least work that is served within a duration, β(t).
    pub fn work_within(&self, duration: f64) -> f64 {
        if duration <= self.delay {
            return 0.0;
        }
        let mut rest = duration - self.delay;
        let mut work = self.jump;
        for piece in &self.pieces {
            work += piece.rate * rest.min(piece.length);
            rest = (rest - piece.length).max(0.0);
        }
        work + self.rate * rest
    }

    /// The time after which more than `work` is served for sure (`beyond`), or at least `work`; infinite if never.
    fn time_for(&self, work: f64, beyond: bool) -> f64 {
        if self.is_none() {
            return f64::INFINITY;
        }
        if work <= 0.0 && !beyond {
            return 0.0;
        }
        let mut rest = work - self.jump;
        if rest < 0.0 || (rest == 0.0 && !beyond) {
            return self.delay;
        }
        let mut time = self.delay;
        for piece in &self.pieces {
            let gain = piece.length * piece.rate;
            if rest < gain || (rest == gain && !beyond) {
                return time + rest / piece.rate;
            }
            (time, rest) = (time + piece.length, rest - gain);
        }
        time + rest / self.rate
    }

    /// Leftover service beside traffic of curve α that is served first (strict priority) or may be (blind
    /// multiplexing): `[β − α]⁺`. Needs a strict service curve without jump (Le Boudec and Thiran, §6.2).
    pub(crate) fn minus(&self, arrivals: &ArrivalCurve) -> Self {
        assert!(self.jump == 0.0, "leftover service is taken from a convex curve");
        self.leftover_after(arrivals, 0.0)
    }

    /// Leftover service beside traffic of curve α in the same FIFO queue: `[β(t) − α(t − θ)]⁺` for t > θ ≥ 0
    /// (Le Boudec and Thiran, Proposition 6.2.1). Any θ holds. Needs a curve without jump. Where the
    /// difference falls before it rises, the least value later is taken.
    pub(crate) fn minus_fifo(&self, arrivals: &ArrivalCurve, theta: f64) -> Self {
        assert!(self.jump == 0.0 && theta >= 0.0, "FIFO leftovers are taken from a convex curve");
        if theta.is_infinite() { Self::none() } else { self.leftover_after(arrivals, theta) }
    }

    /// The leftover `[β(t) − α(t − θ)]⁺` after θ.
    fn leftover_after(&self, arrivals: &ArrivalCurve, theta: f64) -> Self {
        let rate = self.rate - arrivals.sustained_rate();
        let rate = rate - slack(self.rate + arrivals.sustained_rate());
        if self.is_none() || rate <= 0.0 {
            return Self::none();
        }
        let mut times: Vec<f64> = self.corners().map(|c| c.0).filter(|&t| t > theta).collect();
        times.extend(arrivals.vertices().iter().map(|v| v.duration + theta));
        times.sort_unstable_by(f64::total_cmp);
        times.dedup();
        let mut points = Vec::with_capacity(times.len() + 1);
        for t in times {
            let served = self.work_within(t);
            let taken = arrivals.work_within(t - theta);
            points.push((t, served - taken - slack(served + taken)));
        }
        // Far enough to be positive and rising at the final rate.
        let end = points[points.len() - 1];
        points.push((end.0 + 1.0 + (-end.1).max(0.0) / rate, end.1 + rate + (-end.1).max(0.0)));
        Self::from_difference(&points, rate)
    }

    /// The positive and non-decreasing part of a convex function through these points.
    fn from_difference(points: &[(f64, f64)], rate: f64) -> Self {
        let least = (0..points.len()).min_by(|&a, &b| points[a].1.total_cmp(&points[b].1)).unwrap_or(0);
        let jump = points[least].1.max(0.0);
        let mut from = least;
        let mut start = points[0].0;
        let mut kept = vec![(points[0].0, jump)];
        if points[least].1 <= 0.0 {
            from = points.iter().rposition(|p| p.1 <= 0.0).expect("the least one");
            let a = points[from];
            let b = points[from + 1];
            let share = -a.1 / (b.1 - a.1);
            start = (a.0 + share * (b.0 - a.0)) * (1.0 + 8.0 * f64::EPSILON);
            kept = vec![(start, 0.0)];
        } else if from > 0 {
            kept.push(points[from]);
        }
        kept.extend(points[from + 1..].iter().filter(|p| p.0 > start));
        let pieces = kept.windows(2).map(|p| Piece {
            length: p[1].0 - p[0].0,
            rate: ((p[1].1 - p[0].1) / (p[1].0 - p[0].0)).max(0.0),
        });
        Self { delay: start, jump, pieces: pieces.collect(), rate }.simplified()
    }

    /// The convolution β₁ ⊗ β₂, the service of one system after another: pieces in order of rate. Exact without jumps; with
    /// jumps the smaller one stands for both, which is below the exact curve.
    pub fn convolve(&self, other: &Self) -> Self {
        if self.is_none() || other.is_none() {
            return Self::none();
        }
        let rate = self.rate.min(other.rate);
        let mut pieces: Vec<Piece> = self.pieces.iter().chain(&other.pieces).copied().collect();
        pieces.retain(|piece| piece.rate < rate);
        pieces.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let delay = crate::round_up(self.delay + other.delay);
        Self { delay, jump: self.jump.min(other.jump), pieces, rate }.simplified()
    }
}

/// The horizontal deviation h(α, β), the longest horizontal distance from α to β, which bounds the delay of first-come-first-served
/// traffic (Le Boudec and Thiran, Theorem 1.4.2). Rounded up; infinite on overload.
pub(crate) fn horizontal_deviation(arrivals: &ArrivalCurve, service: &ServiceCurve) -> f64 {
    if service.is_none() || arrivals.sustained_rate() > service.rate {
        return f64::INFINITY;
    }
    let vertices = arrivals.vertices();
    let mut durations: Vec<f64> = vertices.iter().map(|v| v.duration).collect();
    durations.extend(service.corners().filter_map(|(_, work)| first_reaching(arrivals, work)));
    let end = vertices[vertices.len() - 1];
    let mut longest = 0.0f64;
    for u in durations {
        let grows = u < end.duration || arrivals.sustained_rate() > 0.0;
        let work = arrivals.work_within(u);
        let time = service.time_for(work, grows);
        // Without traffic nothing waits.
        let distance = if work == 0.0 && !grows { 0.0 } else { time - u + slack(time + u) };
        longest = longest.max(distance);
    }
    longest
}

/// The duration at which the curve reaches `work`, when it does so above duration 0.
fn first_reaching(arrivals: &ArrivalCurve, work: f64) -> Option<f64> {
    let vertices = arrivals.vertices();
    let next = vertices.partition_point(|v| v.work < work);
    if next == 0 {
        return None;
    }
    let a = vertices[next - 1];
    let slope = match vertices.get(next) {
        Some(b) => (b.work - a.work) / (b.duration - a.duration),
        None => arrivals.sustained_rate(),
    };
    (slope > 0.0).then(|| a.duration + (work - a.work) / slope)
}

/// The arrival curve α ⊘ β of what leaves (Le Boudec and Thiran, Theorem 1.4.3). A jump of β is not used, which gives a
/// curve above the exact one. `None` on overload.
pub(crate) fn output_curve(arrivals: &ArrivalCurve, service: &ServiceCurve) -> Option<ArrivalCurve> {
    if service.is_none() || arrivals.sustained_rate() > service.rate {
        return None;
    }
    let late = arrivals.delayed(service.delay);
    let vertices = late.vertices();
    let slope = |i: usize| match vertices.get(i + 1) {
        Some(b) => (b.work - vertices[i].work) / (b.duration - vertices[i].duration),
        None => late.sustained_rate(),
    };
    // Both curves are followed while the arrivals are steeper than the service; the segments of the service that were
    // passed on the way then come back as slopes of the output.
    let mut at = 0;
    let mut lead = 0.0;
    let mut height = vertices[0].work;
    let mut behind: Vec<Piece> = Vec::new();
    for piece in service.pieces.iter().copied().chain([Piece { length: f64::INFINITY, rate: service.rate }]) {
        let mut rest = piece.length;
        while rest > 0.0 && slope(at) > piece.rate {
            let next =
                vertices.get(at + 1).map_or(f64::INFINITY, |b| b.duration - vertices[at].duration - lead);
            let step = next.min(rest);
            height += (slope(at) - piece.rate) * step;
            behind.push(Piece { length: step, rate: piece.rate });
            rest -= step;
            (at, lead) = if step == next { (at + 1, 0.0) } else { (at, lead + step) };
        }
    }
    let ahead = (at..vertices.len() - 1).map(|i| {
        let skipped = if i == at { lead } else { 0.0 };
        Piece { length: vertices[i + 1].duration - vertices[i].duration - skipped, rate: slope(i) }
    });
    behind.extend(ahead);
    behind.retain(|piece| piece.length > 0.0 && piece.rate > late.sustained_rate());
    behind.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    Some(from_pieces(height, &behind, late.sustained_rate()))
}

/// The arrival curve that begins with a burst of `start` and goes on with these pieces, rounded up.
fn from_pieces(start: f64, pieces: &[Piece], rate: f64) -> ArrivalCurve {
    let mut vertices = vec![CurveVertex { duration: 0.0, work: start + slack(start) }];
    for piece in pieces {
        let last = vertices[vertices.len() - 1];
        let work = last.work + piece.length * piece.rate;
        vertices.push(CurveVertex { duration: last.duration + piece.length, work: work + slack(work) });
    }
    ArrivalCurve::from_parts(vertices, rate)
}

#[cfg(test)]
mod tests;
