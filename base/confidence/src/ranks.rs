//! Ranks of values. Equal values share the mean of their ranks.

/// Returns the rank of each value minus the mean of all ranks, so that the results add up to zero.
pub(crate) fn centred_ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let middle = 0.5 * (values.len() as f64 - 1.0);
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let value = values[order[first]];
        let equal = order[first..].iter().take_while(|index| values[**index] == value).count();
        let shared = first as f64 + 0.5 * (equal as f64 - 1.0) - middle;
        order[first..first + equal].iter().for_each(|index| ranks[*index] = shared);
        first += equal;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(centred_ranks(&[5.0, 1.0, 5.0, 9.0]), [0.0, -1.5, 0.0, 1.5]);
        assert_eq!(centred_ranks(&[2.0, 2.0]), [0.0, 0.0]);
    }
}
