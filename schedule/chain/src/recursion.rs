//! The textbook recursion of one worker, by which tests judge simulations.

/// Requests by arrival and work, from the gaps between arrivals and the work of each, and when each ends if they are served in
/// that order: its work after the later of its arrival and the end before.
pub(crate) fn first_come_first_served(drawn: &[(u64, u64)]) -> (Vec<(u64, u64)>, Vec<u64>) {
    let mut arrival = 0;
    let mut free = 0;
    let mut serve = |(gap, work): &(u64, u64)| {
        arrival += gap;
        free = arrival.max(free) + work;
        ((arrival, *work), free)
    };
    drawn.iter().map(&mut serve).unzip()
}
