//! Where something begins in a long list that is asked about its end.

use std::collections::VecDeque;

/// How many entries are looked at from the end before the rest is searched.
const LOOKED_AT: usize = 16;

/// The place of the first entry that does not belong to `before`, which holds for all entries up to some place. As
/// `partition_point`, but quick if that place is near the end.
pub(super) fn first_from<T>(list: &VecDeque<T>, before: impl Fn(&T) -> bool) -> usize {
    let near = list.iter().rev().take(LOOKED_AT).take_while(|entry| !before(entry)).count();
    if near < LOOKED_AT { list.len() - near } else { list.partition_point(before) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_where_a_whole_search_finds_it() {
        for length in 0..60 {
            let list: VecDeque<usize> = (0..length).collect();
            for place in 0..=length {
                assert_eq!(
                    first_from(&list, |entry| *entry < place),
                    list.partition_point(|entry| *entry < place)
                );
            }
        }
    }
}
