//! Whom a request competes with.

use super::sketch::{Passes, Sketch};
use calculus::tail::{CrossTraffic, LawSums, TailGrid, TailMethod, WindowLaws, WorkTails};
use model::{PerStage, ServerMember, Stage, UndefinedLatency};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

/// Dependent groups as one source each, by group and by how many of its members count, which are those of the
/// highest priorities.
pub(super) type Groups = BTreeMap<(usize, usize), Rc<WindowLaws>>;

/// A source of a workload or one that was made.
enum Held<'a> {
    Borrowed(&'a WindowLaws),
    Made(Rc<WindowLaws>),
}

impl Deref for Held<'_> {
    type Target = WindowLaws;
    fn deref(&self) -> &WindowLaws {
        match self {
            Self::Borrowed(source) => source,
            Self::Made(source) => source,
        }
    }
}

/// The independent sources that a level, or a member of it, competes with.
pub(super) struct Field<'a> {
    grid: &'a TailGrid,
    same: Vec<Held<'a>>,
    higher: Vec<Held<'a>>,
    sums: [LawSums; 2],
}

/// How members stand to a tagged one: who is served in turn with it, and who before it.
struct Standing {
    /// (index, whether it counts until the tagged request is done).
    by_group: BTreeMap<usize, Vec<(usize, bool)>>,
    utilisation: PerStage<f64>,
}

impl<'a> Field<'a> {
    /// What member `tagged` competes with, or with `whole_level` a request of any member of its priority,
    /// each counted once more than it has to be.
    pub(super) fn new(
        grid: &'a TailGrid,
        members: &[ServerMember<'a, Sketch>],
        tagged: usize,
        whole_level: bool,
        groups: &mut Groups,
    ) -> Result<Self, UndefinedLatency> {
        let standing = Standing::new(members, tagged, whole_level)?;
        check_load(members, tagged, whole_level, &standing.utilisation)?;
        let mut field = Self {
            grid,
            same: Vec::new(),
            higher: Vec::new(),
            sums: [LawSums::none(grid), LawSums::none(grid)],
        };
        let own_group = (!whole_level).then_some(members[tagged].group);
        for (group, those) in standing.by_group {
            match those[..] {
                _ if own_group == Some(group) => {
                    for (index, until_done) in those {
                        field.push(
                            Held::Made(Rc::new(members[index].sketch.source.at_its_worst(grid))),
                            until_done,
                        );
                    }
                }
                [(index, until_done)] => {
                    field.push(Held::Borrowed(&members[index].sketch.source), until_done);
                }
                _ => {
                    let key = (group, those.len());
                    let make = || {
                        let sources: Vec<&WindowLaws> =
                            those.iter().map(|(i, _)| &members[*i].sketch.source).collect();
                        Rc::new(WindowLaws::dependent(grid, &sources))
                    };
                    let source = groups.entry(key).or_insert_with(make).clone();
                    field.push(Held::Made(source), those.iter().any(|(_, until_done)| *until_done));
                }
            }
        }
        Ok(field)
    }

    fn push(&mut self, source: Held<'a>, until_done: bool) {
        self.sums[usize::from(until_done)].add(&source);
        if until_done { self.higher.push(source) } else { self.same.push(source) }
    }

    /// The tails of their work for a latency, and what can be asked of them.
    pub(super) fn tails(&self, latency: f64, effort: TailMethod) -> WorkTails {
        let sources = [&self.same, &self.higher]
            .map(|side| side.iter().map(Deref::deref).collect::<Vec<&WindowLaws>>());
        let rivals = CrossTraffic {
            grid: self.grid,
            same: (&sources[0], &self.sums[0]),
            higher: (&sources[1], &self.sums[1]),
        };
        WorkTails::new(&rivals, latency, effort)
    }
}

impl Standing {
    fn new(
        members: &[ServerMember<'_, Sketch>],
        tagged: usize,
        whole_level: bool,
    ) -> Result<Self, UndefinedLatency> {
        let own = &members[tagged];
        let mut level = Vec::new();
        let mut those = Vec::new();
        for (index, member) in members.iter().enumerate() {
            match order(member, own).ok_or(UndefinedLatency::NoBound)? {
                Ordering::Greater => {}
                Ordering::Less => those.push((index, true)),
                Ordering::Equal => {
                    level.push(member.sketch);
                    if whole_level || index != tagged {
                        those.push((index, false));
                    }
                }
            }
        }
        let overtaking = can_overtake(&level);
        let mut standing = Self { by_group: BTreeMap::new(), utilisation: PerStage::default() };
        for (index, higher) in those {
            let used = &members[index].sketch.utilisation;
            standing.utilisation = PerStage::from_fn(|stage| standing.utilisation[stage] + used[stage]);
            standing.by_group.entry(members[index].group).or_default().push((index, higher || overtaking));
        }
        Ok(standing)
    }
}

/// How `member` is served with respect to `own`; `None` if that depends on the stage.
fn order(member: &ServerMember<'_, Sketch>, own: &ServerMember<'_, Sketch>) -> Option<Ordering> {
    let orders = Stage::ALL.map(|stage| member.priority[stage].cmp(&own.priority[stage]));
    orders.iter().all(|order| *order == orders[0]).then_some(orders[0])
}

/// Whether requests of a level may overtake each other: those without work at a stage pass it at once.
fn can_overtake(level: &[&Sketch]) -> bool {
    Stage::ALL.iter().any(|stage| {
        let passes = level.iter().map(|sketch| sketch.passes[*stage]);
        let mixed = passes.clone().any(|p| p == Passes::Some);
        mixed || (passes.clone().any(|p| p == Passes::All) && passes.clone().any(|p| p == Passes::None))
    })
}

fn check_load(
    members: &[ServerMember<'_, Sketch>],
    tagged: usize,
    whole_level: bool,
    rivals: &PerStage<f64>,
) -> Result<(), UndefinedLatency> {
    let own = &members[tagged].sketch.utilisation;
    for stage in Stage::ALL {
        let utilisation = rivals[stage] + if whole_level { 0.0 } else { own[stage] };
        if utilisation >= 1.0 {
            return Err(UndefinedLatency::Overload { stage, utilisation });
        }
    }
    Ok(())
}
