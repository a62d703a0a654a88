//! Deadlines instead of ages: against the paper's definition, and in cases that reduce to ages or to plain
//! EDF.

use super::super::test_driver::{jobs, play, play_with};
use super::super::{DisciplineSpec, LimitedSharingParameters, PoolEntrance, PoolOrder};
use super::{ALLOWED, Orf, build, limited, other};
use proptest::prelude::*;

proptest! {
    #[test]
    fn deadlines_in_the_place_of_ages_agree_with_the_same_words(
        (workers, other) in (1u32..4).prop_flat_map(|workers| (Just(workers), other(workers))),
        jobs in jobs(),
        parameters in limited(),
        allowed in prop::array::uniform3(0u64..100),
    ) {
        let sharing = LimitedSharingParameters { order: PoolOrder::Age, ..parameters };
        let kind = DisciplineSpec::LimitedDeadline { sharing, allowed: allowed.to_vec() };
        let mut judge = Orf::new(workers, sharing).by_deadline(allowed);
        let got = play_with(workers, &jobs, &other, &mut build(&kind, workers));
        prop_assert_eq!(got, play_with(workers, &jobs, &other, &mut judge));
    }

    /// If all classes have one SLO, the order of deadlines is the order of age, to the last unit of
    /// service.
    #[test]
    fn with_one_slo_deadlines_are_ages(
        workers in 1u32..4, jobs in jobs(), parameters in limited(), allowed in 0u64..1_000_000,
    ) {
        let sharing = LimitedSharingParameters { order: PoolOrder::Age, ..parameters };
        let by_deadline = DisciplineSpec::LimitedDeadline { sharing, allowed: vec![allowed; 3] };
        let by_age = DisciplineSpec::Limited(sharing);
        let got = play(workers, &jobs, &mut build(&by_deadline, workers));
        prop_assert_eq!(got, play(workers, &jobs, &mut build(&by_age, workers)));
    }

    /// With as many in service as there are workers, and without preemption, it is plain earliest deadline first.
    #[test]
    fn a_limit_of_the_workers_is_earliest_deadline_first(workers in 1u32..4, jobs in jobs()) {
        let at_once = LimitedSharingParameters {
            entrance: PoolEntrance::Wait, ..LimitedSharingParameters::oldest_first(1, u64::MAX / 2)
        };
        let allowed = ALLOWED.to_vec();
        let limited = DisciplineSpec::LimitedDeadline { sharing: at_once, allowed: allowed.clone() };
        let got = play(workers, &jobs, &mut build(&limited, workers));
        prop_assert_eq!(got, play(workers, &jobs, &mut build(&DisciplineSpec::Deadline { allowed }, workers)));
    }
}
