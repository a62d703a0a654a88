//! The window before the entrance, against a slow and obvious reference.

use gat::{EntryDecision, EntryWindow};
use proptest::prelude::*;

/// Lists instead of ordered sets, searched from end to end.
struct SlowWindow {
    inside_max: usize,
    queued_max: usize,
    inside: Vec<u64>,
    queued: Vec<u64>,
}

impl SlowWindow {
    fn arrive(&mut self, start: u64) -> EntryDecision {
        if self.inside.contains(&start) || self.queued.contains(&start) {
            return EntryDecision::Refused;
        }
        if self.queued.is_empty() && self.inside.len() < self.inside_max {
            self.inside.push(start);
            EntryDecision::Admitted
        } else if self.queued.len() == self.queued_max {
            EntryDecision::Refused
        } else {
            self.queued.push(start);
            EntryDecision::Queued
        }
    }

    fn leave(&mut self, start: u64) -> Vec<u64> {
        let was_inside = self.inside.contains(&start);
        self.inside.retain(|other| *other != start);
        self.queued.retain(|other| *other != start);
        if was_inside { self.fill() } else { Vec::new() }
    }

    fn fill(&mut self) -> Vec<u64> {
        let mut admitted = Vec::new();
        while self.inside.len() < self.inside_max && !self.queued.is_empty() {
            self.queued.sort_unstable();
            admitted.push(self.queued.remove(0));
            self.inside.extend(admitted.last());
        }
        admitted
    }
}

proptest! {
    #[test]
    fn agrees_with_the_slow_one(inside_max in 1usize..5, queued_max in 0usize..6,
                                steps in proptest::collection::vec((0u8..7, 0u64..12), 0..120)) {
        let mut window = EntryWindow::new(inside_max, queued_max);
        let mut slow = SlowWindow { inside_max, queued_max, inside: Vec::new(), queued: Vec::new() };
        for (action, start) in steps {
            match action {
                0..=2 => prop_assert_eq!(window.arrive(start), slow.arrive(start)),
                3..=5 => {
                    let admitted: Vec<u64> = window.leave(start).into_iter().collect();
                    prop_assert_eq!(admitted, slow.leave(start));
                }
                _ => {
                    slow.inside_max = usize::try_from(start).unwrap().max(1);
                    prop_assert_eq!(window.set_inside_max(slow.inside_max), slow.fill());
                }
            }
            prop_assert_eq!((window.inside(), window.queued()), (slow.inside.len(), slow.queued.len()));
        }
    }
}

#[test]
fn the_paper_has_200_inside_and_a_queue_without_end() {
    let mut window = EntryWindow::default();
    let decisions: Vec<EntryDecision> = (0..1000).map(|start| window.arrive(start)).collect();
    assert_eq!(decisions.iter().filter(|decision| **decision == EntryDecision::Admitted).count(), 200);
    assert!(decisions[200..].iter().all(|decision| *decision == EntryDecision::Queued));
    // Queued requests enter in order when any request leaves; a cancelled one does not.
    assert_eq!(window.leave(250), None);
    let admitted: Vec<u64> = (0..100).rev().filter_map(|start| window.leave(start)).collect();
    assert!(admitted.is_sorted() && admitted[..2] == [200, 201] && !admitted.contains(&250));
    assert_eq!((window.inside(), window.queued()), (200, 699));
}
