//! Names for the servers of a placement, such that the fewest bytes have to move.

use pathfinding::matrix::Matrix;
use pathfinding::prelude::kuhn_munkres;

/// Returns for each server of a placement the position of the server of another placement whose name it takes, or `None`
/// for a new one. `kept(new, old)` is the weight of what would stay if the server took the name; the sum is the largest
/// possible, and servers of which nothing would stay take no name.
pub fn names_with_fewest_moves(
    new: usize,
    old: usize,
    kept: impl Fn(usize, usize) -> i64,
) -> Vec<Option<usize>> {
    if new == 0 || old == 0 {
        return vec![None; new];
    }
    // A column for each new server stands for a name of its own.
    let weight = |row: usize, column: usize| if column < old { kept(row, column) } else { 0 };
    let weights = Matrix::from_fn(new, old + new, |(row, column)| weight(row, column));
    let (_, columns) = kuhn_munkres(&weights);
    let stays = |(row, column): (usize, usize)| (weight(row, column) > 0).then_some(column);
    columns.into_iter().enumerate().map(stays).collect()
}
