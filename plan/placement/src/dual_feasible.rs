//! Dual feasible functions: lower bounds on the number of servers, if no server holds items of more than 1
//! together.
//!
//! A function f from sizes to values is *dual feasible* when sizes of at most 1 in all have values of at most 1 in all. The
//! values of all items then bound the number of servers as their sizes do, and more tightly where items do not fill
//! servers: three items of 0.6 need three servers, although their sizes add up to 1.8. The functions are those of
//! Fekete and Schepers, for thresholds e up to 1/2 and whole k:
//!
//! - U(e): a size above 1 − e counts 1, one below e nothing, others themselves;
//! - u(k): a size x counts ⌊(k + 1) x⌋ ÷ k, and itself where (k + 1) x is whole;
//! - φ(e): a size above 1/2 counts 1 − ⌊(1 − x) ÷ e⌋ ÷ ⌊1 ÷ e⌋, one from e on 1 ÷ ⌊1 ÷ e⌋, others nothing.
//!
//! u(k) is also applied to the values of U(e), which is dual feasible again. Sizes are rounded down to
//! multiples of a fixed fraction of a server, so that integrality is decided exactly. Takes n steps for each
//! of a bounded number of thresholds.

/// The largest k of the functions u(k).
const STEPS_MAX: u32 = 20;
/// The most thresholds that are tried. Any of them gives a bound.
const THRESHOLDS_MAX: usize = 500;
/// The parts of a server that sizes are counted in.
const WHOLE: u64 = 1 << 40;
/// Relative decrease of sizes and sums, which covers the rounding of sums of sizes.
const ROUNDING: f64 = 1e-9;

/// An item on a class of servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PricedSize {
    /// Price of a server of the class.
    pub(crate) price: f64,
    /// Share of a server of the class that the item takes.
    pub(crate) size: f64,
}

/// The least price of servers that hold all items, each of which is on one of these classes; sizes and prices are not
/// negative. The values of a server's items, times its price, add up to at most its price, so each item adds at least the
/// least such product over its classes.
pub(crate) fn price_at_least(items: &[Vec<PricedSize>]) -> f64 {
    let classes = |item: &Vec<PricedSize>| -> Vec<(f64, u64)> {
        item.iter().map(|class| (class.price, parts(class.size))).collect()
    };
    let items: Vec<Vec<(f64, u64)>> = items.iter().filter(|item| !item.is_empty()).map(classes).collect();
    let sizes: Vec<u64> = items.iter().flatten().map(|(_, size)| *size).collect();
    let sum = |value: &dyn Fn(u64) -> f64| -> f64 {
        let least = |item: &Vec<(f64, u64)>| {
            item.iter().map(|(price, size)| price * value(*size)).fold(f64::INFINITY, f64::min)
        };
        items.iter().map(least).sum()
    };
    let mut most = 0.0_f64;
    for threshold in thresholds(&sizes) {
        most = most.max(sum(&|size| share(without_small(size, threshold))));
        for k in 1..=STEPS_MAX {
            most = most.max(sum(&|size| in_steps(without_small(size, threshold), k)));
        }
        if threshold > 0 {
            most = most.max(sum(&|size| by_smallest(size, threshold)));
        }
    }
    most
}

/// The fewest servers, none of which holds items of more than 1 together; sizes are not negative.
pub(crate) fn servers_at_least(sizes: &[f64]) -> usize {
    let sizes: Vec<u64> = sizes.iter().map(|size| parts(*size)).collect();
    let mut most = 0.0_f64;
    for threshold in thresholds(&sizes) {
        let values: Vec<u64> = sizes.iter().map(|&size| without_small(size, threshold)).collect();
        most = most.max(values.iter().map(|&value| share(value)).sum());
        for k in 1..=STEPS_MAX {
            most = most.max(values.iter().map(|&value| in_steps(value, k)).sum());
        }
        if threshold > 0 {
            most = most.max(sizes.iter().map(|&size| by_smallest(size, threshold)).sum());
        }
    }
    // A sum that is rounded a hair above a whole number must not round up to the next; it is small and not negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let servers = (most * (1.0 - ROUNDING)).ceil() as usize;
    servers
}

/// The thresholds that are tried, parts of a server: where functions change, and 0.
fn thresholds(sizes: &[u64]) -> Vec<u64> {
    let mut all: Vec<u64> =
        sizes.iter().flat_map(|&size| [size, WHOLE - size]).filter(|e| *e > 0 && *e <= WHOLE / 2).collect();
    all.push(0);
    all.sort_unstable();
    all.dedup();
    let step = all.len().div_ceil(THRESHOLDS_MAX);
    all.into_iter().step_by(step).collect()
}

/// A size in parts of a server, rounded down.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^40")]
fn parts(size: f64) -> u64 {
    ((size * (1.0 - ROUNDING)).clamp(0.0, 1.0) * WHOLE as f64) as u64
}

fn share(size: u64) -> f64 {
    size as f64 / WHOLE as f64
}

/// U(e) of a size.
fn without_small(size: u64, threshold: u64) -> u64 {
    if size > WHOLE - threshold {
        WHOLE
    } else if size < threshold {
        0
    } else {
        size
    }
}

/// u(k) of a size.
fn in_steps(size: u64, k: u32) -> f64 {
    let scaled = u64::from(k + 1) * size;
    if scaled.is_multiple_of(WHOLE) { share(size) } else { (scaled / WHOLE) as f64 / f64::from(k) }
}

/// φ(e) of a size.
fn by_smallest(size: u64, threshold: u64) -> f64 {
    let most = (WHOLE / threshold) as f64;
    if size > WHOLE / 2 {
        1.0 - ((WHOLE - size) / threshold) as f64 / most
    } else if size >= threshold {
        1.0 / most
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fewest servers, by trying everything.
    fn fewest(sizes: &[f64], servers: &mut Vec<f64>, best: usize) -> usize {
        let Some((&size, rest)) = sizes.split_first() else { return servers.len().min(best) };
        if servers.len() >= best {
            return best;
        }
        let mut best = best;
        for server in 0..servers.len() {
            if servers[server] + size <= 1.0 + 1e-12 {
                servers[server] += size;
                best = best.min(fewest(rest, servers, best));
                servers[server] -= size;
            }
        }
        servers.push(size);
        best = best.min(fewest(rest, servers, best));
        servers.pop();
        best
    }

    fn sizes() -> impl Strategy<Value = Vec<f64>> {
        // Also sizes that fill servers exactly.
        let size = prop_oneof![
            0.01..1.0f64,
            1e-13..1e-6f64,
            (1u32..=12, 1u32..=12).prop_map(|(a, b)| f64::from(a.min(b)) / f64::from(a.max(b)))
        ];
        prop::collection::vec(size, 1..9)
    }

    proptest! {
        #[test]
        fn no_packing_needs_fewer(sizes in sizes()) {
            let least = servers_at_least(&sizes);
            let fewest = fewest(&sizes, &mut Vec::new(), sizes.len() + 1);
            prop_assert!(least <= fewest, "{least} above {fewest}: {sizes:?}");
            let sum: f64 = sizes.iter().sum();
            prop_assert!(least as f64 >= sum * (1.0 - 3e-9));
        }
    }

    #[test]
    fn items_that_do_not_fill_servers_count_more() {
        assert_eq!(servers_at_least(&[0.6; 3]), 3);
        assert_eq!(servers_at_least(&[0.35; 6]), 3);
        assert_eq!(servers_at_least(&[0.6, 0.6, 0.45, 0.45, 0.45]), 4);
        assert_eq!(servers_at_least(&[0.5; 4]), 2);
        assert_eq!(servers_at_least(&[0.2; 15]), 3);
        assert_eq!(servers_at_least(&[]), 0);
    }

    /// Many items that are next to nothing, beside some that fill servers: nothing counts twice.
    #[test]
    fn what_is_next_to_nothing_counts_as_nothing() {
        for (size, large, tiny, count, servers) in [
            (0.6, 3, 4e-10, 10, 3),
            (0.6, 1, 4e-10, 3, 1),
            (0.55, 100, 4e-11, 4000, 100),
            (1.0, 2, 1e-12, 5, 2),
        ] {
            let sizes = [vec![size; large], vec![tiny; count]].concat();
            assert!(servers_at_least(&sizes) <= servers, "{large} of {size}, {count} of {tiny}");
        }
        let many: Vec<f64> = (1..20_000).map(|n| 1.0 / f64::from(n)).collect();
        assert!(servers_at_least(&many) >= 10);
    }

    /// Frequencies with which the bound and the plain sum are the optimum, for items of 0.1 to 1 server.
    #[test]
    fn it_is_mostly_the_optimum_for_a_few_large_items() {
        use rand::rngs::StdRng;
        use rand::{RngExt as _, SeedableRng as _};
        let mut random = StdRng::seed_from_u64(1);
        let mut exact = 0;
        let mut by_sum = 0;
        for _ in 0..300 {
            let sizes: Vec<f64> = (0..8).map(|_| random.random_range(0.1..1.0)).collect();
            let fewest = fewest(&sizes, &mut Vec::new(), 9);
            exact += usize::from(servers_at_least(&sizes) == fewest);
            by_sum += usize::from(sizes.iter().sum::<f64>().ceil() == fewest as f64);
        }
        assert!(exact > 270 && by_sum < 200, "{exact} and {by_sum} of 300");
    }
}
