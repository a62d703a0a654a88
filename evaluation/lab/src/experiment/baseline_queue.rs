//! Disciplines of other systems as the proxy's queue, before as many workers as requests may be outstanding.

use discipline::serve::{AnyDiscipline, Assignment, BuiltDiscipline, Discipline, DisciplineSpec, QueueItem};
use enforce::storage::{BaselineQueue, BaselineRequest};
use std::collections::VecDeque;

/// A discipline of the simulator, run by the proxy. Its classes are the positions of workloads in the policy; unknown
/// clients are one class more.
#[derive(Debug, Clone)]
pub(super) struct BaselineDiscipline {
    pub(super) kind: DisciplineSpec,
    /// Maximum number of outstanding requests.
    pub(super) outstanding: u32,
    /// Number of workloads that have a class.
    pub(super) workloads: u32,
}

impl BaselineDiscipline {
    /// Returns an empty queue of the discipline.
    ///
    /// # Errors
    /// When a parameter is out of range, or the discipline shares a worker without slices.
    pub(super) fn queue(&self) -> Result<DisciplineQueue, String> {
        self.kind.check()?;
        let BuiltDiscipline::Workers(discipline) = self.kind.build(self.outstanding, 0) else {
            return Err("a proxy serves requests whole: no sharing without slices".to_owned());
        };
        Ok(DisciplineQueue {
            from: self.clone(),
            discipline,
            begun: Vec::new(),
            ready: VecDeque::new(),
            outstanding: 0,
        })
    }
}

/// The queue of a [`BaselineDiscipline`].
#[derive(Debug)]
pub(super) struct DisciplineQueue {
    from: BaselineDiscipline,
    discipline: AnyDiscipline,
    /// Assignments of the last call to the discipline; empty between two calls.
    begun: Vec<Assignment>,
    /// Requests that have a worker and are not yet dispatched.
    ready: VecDeque<(u32, u32)>,
    outstanding: u32,
}

impl DisciplineQueue {
    fn collect_begun(&mut self) {
        for run in self.begun.drain(..) {
            self.outstanding += 1;
            self.ready.push_back((run.item, run.worker));
        }
    }
}

impl BaselineQueue for DisciplineQueue {
    fn emptied(&self) -> Box<dyn BaselineQueue> {
        Box::new(self.from.queue().expect("this queue was made from it"))
    }

    fn arrive(&mut self, now: u64, request: BaselineRequest) {
        let unknown = self.from.workloads;
        let class = request.workload.map_or(unknown, |workload| workload.min(unknown));
        let item = QueueItem { id: request.id, class, age: now, size: request.cost, access: None };
        self.discipline.arrive(now, item, &mut self.begun);
        self.collect_begun();
    }

    fn next(&mut self) -> Option<(u32, u32)> {
        self.ready.pop_front()
    }

    fn done(&mut self, now: u64, worker: u32) {
        self.outstanding -= 1;
        self.discipline.depart(now, worker, &mut self.begun);
        self.collect_begun();
    }

    fn wake_at(&self) -> Option<u64> {
        self.discipline.wake_at()
    }

    fn wake(&mut self, now: u64) {
        self.discipline.wake(now, &mut self.begun);
        self.collect_begun();
    }

    fn waiting(&self) -> usize {
        self.discipline.waiting() + self.ready.len()
    }

    fn outstanding(&self) -> u32 {
        self.outstanding
    }
}
