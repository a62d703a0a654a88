//! Upper-left convex hulls of integer points, the only geometry that burst curves need.
//!
//! A chain has strictly increasing x, strictly increasing y and strictly decreasing slopes, all positive:
//! exactly the points that maximise y − r·x for some r ≥ 0. It is unique for a set of points, so that
//! equal sets give equal bits. Products are 128-bit: nothing rounds, nothing overflows.

/// A point of a hull. Usually x is a duration in ns and y is work in thousandths of a base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HullPoint {
    pub(super) x: u64,
    pub(super) y: u64,
}

/// Returns true if `b` lies strictly above the line through `a` and `c`. Requires `a` to be at most `b` and
/// `c` in both coordinates.
#[inline]
fn strictly_above(a: HullPoint, b: HullPoint, c: HullPoint) -> bool {
    product(b.y - a.y, c.x - a.x) > product(c.y - a.y, b.x - a.x)
}

#[inline]
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// Extends the chain `points[base..end]` by `p`, which must not be left of it, and returns the new end.
/// There must be room for one more.
#[inline(always)]
pub(super) fn extend(points: &mut [HullPoint], base: usize, mut end: usize, p: HullPoint) -> usize {
    if end > base {
        let last = points[end - 1];
        if p.y <= last.y {
            return end;
        }
        if p.x == last.x {
            end -= 1;
        }
    }
    while end >= base + 2 && !strictly_above(points[end - 2], points[end - 1], p) {
        end -= 1;
    }
    points[end] = p;
    end + 1
}

/// Joins the chains `points[base..middle]` and `points[middle..]` in place; the second must not begin left
/// of the end of the first.
pub(super) fn join(points: &mut Vec<HullPoint>, base: usize, middle: usize) {
    let mut end = middle;
    for next in middle..points.len() {
        let p = points[next];
        end = extend(points, base, end, p);
    }
    points.truncate(end);
}

/// The hull of these points, which may come in any order.
pub(super) fn hull_of(mut points: Vec<HullPoint>) -> Vec<HullPoint> {
    // The stable sort recognises the ascending runs that callers concatenate.
    points.sort_by_key(|p| p.x);
    join(&mut points, 0, 0);
    points
}

/// Returns true if `points` is a non-empty chain that begins at x = 0.
pub(super) fn is_chain_from_zero(points: &[HullPoint]) -> bool {
    let rises = |p: &[HullPoint]| p[0].x < p[1].x && p[0].y < p[1].y;
    points.first().is_some_and(|p| p.x == 0)
        && points.windows(2).all(rises)
        && points.windows(3).all(|p| strictly_above(p[0], p[1], p[2]))
}

/// Passes every vertex of the Minkowski sum of two chains to `visit`, in order of x: the edges of both in order of
/// slope. Chains are given by accessor and length.
#[inline]
pub(super) fn minkowski(
    (left, left_len): (impl Fn(usize) -> HullPoint, usize),
    (right, right_len): (impl Fn(usize) -> HullPoint, usize),
    mut visit: impl FnMut(HullPoint),
) {
    let mut i = 0;
    let mut j = 0;
    let mut l = left(0);
    let mut r = right(0);
    visit(HullPoint { x: l.x + r.x, y: l.y + r.y });
    while i + 1 < left_len && j + 1 < right_len {
        let next_l = left(i + 1);
        let next_r = right(j + 1);
        let rise_l = product(next_l.y - l.y, next_r.x - r.x);
        let rise_r = product(next_r.y - r.y, next_l.x - l.x);
        // Equal slopes advance both: the point between would be collinear.
        if rise_l >= rise_r {
            (i, l) = (i + 1, next_l);
        }
        if rise_r >= rise_l {
            (j, r) = (j + 1, next_r);
        }
        visit(HullPoint { x: l.x + r.x, y: l.y + r.y });
    }
    for i in i + 1..left_len {
        let l = left(i);
        visit(HullPoint { x: l.x + r.x, y: l.y + r.y });
    }
    l = left(left_len - 1);
    for j in j + 1..right_len {
        let r = right(j);
        visit(HullPoint { x: l.x + r.x, y: l.y + r.y });
    }
}

/// The number of steps along a chain beyond which a binary search pays.
const NEAR: usize = 8;

/// Returns true if `p` lies on or below the chain. `hint` is the segment at which the search begins, and is
/// set to the one at which it ended; queries in order of x may share a hint. A query costs at most the
/// logarithm of the chain's length.
#[inline]
pub(super) fn covers(chain: &[HullPoint], hint: &mut usize, p: HullPoint) -> bool {
    let mut steps = 0;
    while *hint + 1 < chain.len() && chain[*hint + 1].x <= p.x {
        *hint += 1;
        steps += 1;
        if steps == NEAR {
            *hint += chain[*hint + 1..].partition_point(|q| q.x <= p.x);
            break;
        }
    }
    let Some(&left) = chain.get(*hint) else { return false };
    p.y <= left.y || chain.get(*hint + 1).is_some_and(|&right| under_segment(left, p, right))
}

/// Returns true if `p`, above `left` and between the two, lies on or below the segment `left`–`right`.
fn under_segment(left: HullPoint, p: HullPoint, right: HullPoint) -> bool {
    p.y <= right.y && !strictly_above(left, p, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(x: u64, y: u64) -> HullPoint {
        HullPoint { x, y }
    }

    #[test]
    fn hull_drops_dominated_and_collinear_points() {
        let points = vec![p(2, 3), p(0, 1), p(1, 2), p(0, 0), p(4, 4), p(6, 5), p(7, 5), p(5, 1)];
        assert_eq!(hull_of(points), [p(0, 1), p(2, 3), p(6, 5)]);
    }

    #[test]
    fn equal_x_keeps_the_higher_whatever_the_order() {
        assert_eq!(hull_of(vec![p(0, 2), p(0, 5), p(0, 3)]), [p(0, 5)]);
    }

    #[test]
    fn coverage_at_the_corners() {
        let chain = [p(0, 1), p(2, 3), p(6, 5)];
        for (point, covered) in [
            (p(0, 1), true),
            (p(0, 2), false),
            (p(4, 4), true),
            (p(3, 4), false),
            (p(9, 5), true),
            (p(9, 6), false),
        ] {
            assert_eq!(covers(&chain, &mut 0, point), covered, "{point:?}");
        }
        assert!(!covers(&[], &mut 0, p(0, 0)));
    }

    #[test]
    fn extreme_coordinates_do_not_overflow() {
        let top = u64::MAX;
        assert_eq!(hull_of(vec![p(0, 0), p(top / 2, top), p(top, top)]), [p(0, 0), p(top / 2, top)]);
    }
}
