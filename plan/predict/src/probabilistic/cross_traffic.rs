//! The cross traffic of a member: the streams of other members that may delay its requests.

use super::sketch::{ProbabilisticSketch, RequestsWithWork, StreamLaws};
use calculus::tail::{CrossTraffic, LawSums, TailGrid, TailMethod, WindowLaws, WorkTails};
use model::{PerStage, ServerMember, Stage, UndefinedLatency};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

/// Dependent groups as one stream each, by group and by how many of its members count, which are those of the
/// highest priorities.
pub(super) type DependentGroups = BTreeMap<(usize, usize), Rc<StreamLaws>>;

/// The laws of a workload's stream, or of a stream that stands for several.
enum SharedLaws<'a> {
    Borrowed(&'a StreamLaws),
    Made(Rc<StreamLaws>),
}

impl Deref for SharedLaws<'_> {
    type Target = StreamLaws;
    fn deref(&self) -> &StreamLaws {
        match self {
            Self::Borrowed(laws) => laws,
            Self::Made(laws) => laws,
        }
    }
}

/// The independent streams that a priority level, or a member of it, competes with.
pub(super) struct MemberCrossTraffic<'a> {
    grid: &'a TailGrid,
    /// The streams that count until a request arrives.
    same: Vec<SharedLaws<'a>>,
    /// The streams that count until a request is done.
    higher: Vec<SharedLaws<'a>>,
    /// The sums over the windows of `same` and of `higher`.
    sums: [LawSums; 2],
    /// The sums over the cells of `same`.
    cell_sums: LawSums,
    /// All streams, and whether each counts until the request is done, where each is independent of all others; `None` where
    /// groups are dependent.
    independent: Option<Vec<(&'a ProbabilisticSketch, bool)>>,
}

/// The members that a tagged one competes with: those that are served in turn with it, and those before it.
struct CompetingMembers {
    /// The index of each member and whether it counts until the tagged request is done, by dependent group.
    by_group: BTreeMap<usize, Vec<(usize, bool)>>,
    utilisation: PerStage<f64>,
}

impl<'a> MemberCrossTraffic<'a> {
    /// What the member with the index `tagged` competes with, or with `whole_level` a request of any member of its
    /// priority, each counted once more than it has to be. With `takes_turns` members of a priority count as if they came
    /// before each other.
    ///
    /// # Errors
    /// When priorities differ by stage, or a stage is overloaded.
    pub(super) fn new(
        (grid, takes_turns): (&'a TailGrid, bool),
        members: &[ServerMember<'a, ProbabilisticSketch>],
        (tagged, whole_level): (usize, bool),
        groups: &mut DependentGroups,
    ) -> Result<Self, UndefinedLatency> {
        let competing = CompetingMembers::new(members, (tagged, whole_level), takes_turns)?;
        check_load(members, tagged, whole_level, &competing.utilisation)?;
        let sums = [LawSums::none(grid), LawSums::none(grid)];
        let cell_sums = LawSums::none(grid);
        let same = Vec::new();
        let higher = Vec::new();
        let independent = Some(Vec::new());
        let mut cross_traffic = Self { grid, same, higher, sums, cell_sums, independent };
        let own_group = (!whole_level).then_some(members[tagged].group);
        for (group, competitors) in competing.by_group {
            match (&mut cross_traffic.independent, &competitors[..]) {
                (Some(streams), &[(index, until_done)]) if own_group != Some(group) => {
                    streams.push((members[index].sketch, until_done));
                }
                (independent, _) => *independent = None,
            }
            if own_group == Some(group) {
                for (index, until_done) in competitors {
                    let worst = members[index].sketch.laws.at_its_worst(grid);
                    cross_traffic.push(SharedLaws::Made(Rc::new(worst)), until_done);
                }
            } else if let [(index, until_done)] = competitors[..] {
                cross_traffic.push(SharedLaws::Borrowed(&members[index].sketch.laws), until_done);
            } else {
                let laws = groups.entry((group, competitors.len())).or_insert_with(|| {
                    let streams: Vec<&StreamLaws> =
                        competitors.iter().map(|(index, _)| &members[*index].sketch.laws).collect();
                    Rc::new(StreamLaws::dependent(grid, &streams))
                });
                let until_done = competitors.iter().any(|(_, until_done)| *until_done);
                cross_traffic.push(SharedLaws::Made(laws.clone()), until_done);
            }
        }
        Ok(cross_traffic)
    }

    fn push(&mut self, laws: SharedLaws<'a>, until_done: bool) {
        self.sums[usize::from(until_done)].add(&laws.windows);
        if until_done {
            self.higher.push(laws);
        } else {
            self.cell_sums.add(&laws.cells);
            self.same.push(laws);
        }
    }

    /// All streams with whether each counts until the request is done; `None` where some depend on one another or on the
    /// request.
    pub(super) fn independent(&self) -> Option<&[(&'a ProbabilisticSketch, bool)]> {
        self.independent.as_deref()
    }

    /// The tails of the work of all these streams for a latency.
    pub(super) fn tails(&self, latency: f64, method: TailMethod) -> WorkTails {
        let same: Vec<&WindowLaws> = self.same.iter().map(|laws| &laws.windows).collect();
        let cells: Vec<&WindowLaws> = self.same.iter().map(|laws| &laws.cells).collect();
        let higher: Vec<&WindowLaws> = self.higher.iter().map(|laws| &laws.windows).collect();
        let traffic = CrossTraffic {
            grid: self.grid,
            same: (&same, &self.sums[0]),
            same_in_cells: (&cells, &self.cell_sums),
            higher: (&higher, &self.sums[1]),
        };
        WorkTails::new(&traffic, latency, method)
    }
}

impl CompetingMembers {
    fn new(
        members: &[ServerMember<'_, ProbabilisticSketch>],
        (tagged, whole_level): (usize, bool),
        takes_turns: bool,
    ) -> Result<Self, UndefinedLatency> {
        let mut level = Vec::new();
        let mut competitors = Vec::new();
        for (index, member) in members.iter().enumerate() {
            match service_order(member, &members[tagged]).ok_or(UndefinedLatency::NoBound)? {
                Ordering::Greater => {}
                Ordering::Less => competitors.push((index, true)),
                Ordering::Equal => {
                    level.push(member.sketch);
                    if whole_level || index != tagged {
                        competitors.push((index, false));
                    }
                }
            }
        }
        let may_overtake = takes_turns || can_overtake(&level);
        let mut competing = Self { by_group: BTreeMap::new(), utilisation: PerStage::default() };
        for (index, higher) in competitors {
            let used = &members[index].sketch.utilisation;
            competing.utilisation = PerStage::from_fn(|stage| competing.utilisation[stage] + used[stage]);
            let of_group = competing.by_group.entry(members[index].group).or_default();
            of_group.push((index, higher || may_overtake));
        }
        Ok(competing)
    }
}

/// Whether `member` is served before, with or after `own`; `None` if that depends on the stage.
fn service_order(
    member: &ServerMember<'_, ProbabilisticSketch>,
    own: &ServerMember<'_, ProbabilisticSketch>,
) -> Option<Ordering> {
    let orders = Stage::ALL.map(|stage| member.priority[stage].cmp(&own.priority[stage]));
    orders.iter().all(|order| *order == orders[0]).then_some(orders[0])
}

/// Whether requests of a level may overtake each other: those without work at a stage pass it at once.
fn can_overtake(level: &[&ProbabilisticSketch]) -> bool {
    Stage::ALL.iter().any(|stage| {
        let mut requests = level.iter().map(|sketch| sketch.with_work[*stage]);
        requests.clone().any(|requests| requests == RequestsWithWork::Some)
            || (requests.clone().any(|requests| requests == RequestsWithWork::All)
                && requests.any(|requests| requests == RequestsWithWork::None))
    })
}

/// Whether every stage can carry the competing members and, unless it is one of them, the tagged member.
fn check_load(
    members: &[ServerMember<'_, ProbabilisticSketch>],
    tagged: usize,
    whole_level: bool,
    competing: &PerStage<f64>,
) -> Result<(), UndefinedLatency> {
    let own = &members[tagged].sketch.utilisation;
    for stage in Stage::ALL {
        let utilisation = competing[stage] + if whole_level { 0.0 } else { own[stage] };
        if utilisation >= 1.0 {
            return Err(UndefinedLatency::Overload { stage, utilisation });
        }
    }
    Ok(())
}
