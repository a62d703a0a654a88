//! Reference model of the pool: a list of all requests, sorted anew at every call. Tests compare the pool
//! with it.

use super::{Displacement, PoolCounts, PoolPlace, PoolRules};
use crate::RequestKey;
use crate::serve::PoolOrder;

/// A request of [`ListedPool`].
#[derive(Debug, Clone)]
pub(super) struct ListedRequest {
    pub(super) name: usize,
    pub(super) key: (RequestKey, u64),
    pub(super) place: PoolPlace,
    pub(super) since: u64,
    /// Sequence number of its latest change of place among all such changes.
    admission: u64,
}

/// Reference pool.
#[derive(Debug)]
pub(super) struct ListedPool {
    pub(super) rules: PoolRules,
    pub(super) requests: Vec<ListedRequest>,
    arrivals: u64,
    admissions: u64,
    now: u64,
    /// Latest known instant at which no request was waiting or demoted.
    quiet_until: u64,
    /// True while no request is waiting or demoted.
    is_quiet: bool,
}

impl ListedPool {
    pub(super) fn new(rules: PoolRules) -> Self {
        Self {
            rules,
            requests: Vec::new(),
            arrivals: 0,
            admissions: 0,
            now: 0,
            quiet_until: 0,
            is_quiet: true,
        }
    }

    pub(super) fn enter(&mut self, now: u64, name: usize, key: RequestKey) {
        let first = if self.rules.order == PoolOrder::Age { key } else { RequestKey(self.arrivals) };
        let key = (first, self.arrivals);
        self.requests.push(ListedRequest { name, key, place: PoolPlace::Waiting, since: 0, admission: 0 });
        self.arrivals += 1;
        self.settle(now);
    }

    pub(super) fn leave(&mut self, now: u64, name: usize) {
        self.requests.retain(|request| request.name != name);
        self.settle(now);
    }

    pub(super) fn put(&mut self, now: u64, name: usize, place: PoolPlace) {
        self.requests.iter_mut().find(|request| request.name == name).expect("it is there").place = place;
        self.settle(now);
    }

    pub(super) fn place(&self, name: usize) -> Option<PoolPlace> {
        Some(self.requests.iter().find(|request| request.name == name)?.place)
    }

    pub(super) fn counts(&self) -> PoolCounts {
        let at = |place| self.requests.iter().filter(|request| request.place == place).count();
        PoolCounts {
            waiting: at(PoolPlace::Waiting),
            serving: at(PoolPlace::Serving),
            demoted: at(PoolPlace::Demoted),
            blocked: at(PoolPlace::Blocked),
            overdue: at(PoolPlace::Overdue),
            asleep: at(PoolPlace::Asleep),
        }
    }

    pub(super) fn forbid_displacement(&mut self, now: u64) {
        self.rules.displacement = Displacement::Never;
        self.now = self.now.max(now);
        let mut demoted = self.sorted(&[PoolPlace::Demoted]);
        demoted.sort_by_key(|index| self.requests[*index].admission);
        demoted.into_iter().for_each(|index| self.choose(index, true));
        self.settle(now);
    }

    /// Returns the names of the requests in a place.
    pub(super) fn names(&self, place: PoolPlace) -> Vec<usize> {
        let found = self.requests.iter().filter(|request| request.place == place);
        found.map(|request| request.name).collect()
    }

    /// Applies a look that finds the named requests sleeping.
    pub(super) fn look(&mut self, now: u64, asleep: &[usize], workers: usize) {
        self.now = self.now.max(now);
        let mut awake = self.sorted(&[PoolPlace::Asleep]);
        awake.retain(|index| !asleep.contains(&self.requests[*index].name));
        awake.sort_by_key(|index| self.requests[*index].admission);
        awake.into_iter().for_each(|index| self.choose(index, true));
        self.settle(now);
        let serving = self.sorted(&[PoolPlace::Serving]);
        let sleeping = |index: &&usize| asleep.contains(&self.requests[**index].name);
        let awake = serving.len() - serving.iter().filter(sleeping).count();
        let youngest = serving.iter().rfind(sleeping).copied();
        let is_used = awake >= self.limit().min(workers);
        if let Some(youngest) = youngest.filter(|_| !is_used && !self.is_nobody_ready()) {
            self.requests[youngest].place = PoolPlace::Asleep;
            self.requests[youngest].admission = self.admissions;
            self.admissions += 1;
            self.settle(now);
        }
    }

    fn limit(&self) -> usize {
        self.rules.limit.map_or(usize::MAX, |limit| limit.get() as usize)
    }

    fn is_overdue(&self, request: &ListedRequest) -> bool {
        let counted = self.now - request.since.max(self.quiet_until);
        self.rules.patience.is_some_and(|patience| counted >= patience)
    }

    /// Returns the indices of the requests in these places, by key.
    fn sorted(&self, places: &[PoolPlace]) -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..self.requests.len()).filter(|index| places.contains(&self.requests[*index].place)).collect();
        found.sort_by_key(|index| self.requests[*index].key);
        found
    }

    pub(super) fn settle(&mut self, now: u64) {
        use PoolPlace::{Demoted, Overdue, Serving, Waiting};
        self.now = self.now.max(now);
        if self.is_quiet {
            self.quiet_until = self.now;
        }
        for index in self.sorted(&[Demoted]) {
            if self.is_overdue(&self.requests[index]) {
                self.requests[index].place = Overdue;
            }
        }
        // Frees places one by one, until there are enough or no other request is overdue.
        while self.is_somebody_left_out() {
            let serving = self.sorted(&[Serving]).into_iter();
            let overdue = serving.filter(|index| self.is_overdue(&self.requests[*index]));
            let Some(first) = overdue.min_by_key(|index| self.requests[*index].admission) else { break };
            self.requests[first].place = Overdue;
        }
        match self.rules.displacement {
            Displacement::OfYoungest => {
                let mut chosen = self.sorted(&[Serving, Demoted, Waiting]);
                let left_out = chosen.split_off(self.limit().min(chosen.len()));
                chosen.into_iter().for_each(|index| self.choose(index, true));
                // The youngest steps back first.
                left_out.into_iter().rev().for_each(|index| self.choose(index, false));
            }
            Displacement::Never => {
                let free = self.limit().saturating_sub(self.sorted(&[Serving]).len());
                self.sorted(&[Waiting]).into_iter().take(free).for_each(|index| self.choose(index, true));
            }
        }
        self.is_quiet = self.is_nobody_ready();
    }

    fn is_nobody_ready(&self) -> bool {
        self.sorted(&[PoolPlace::Demoted, PoolPlace::Waiting]).is_empty()
    }

    fn is_somebody_left_out(&self) -> bool {
        use PoolPlace::{Demoted, Serving, Waiting};
        let counts = self.counts();
        let contenders = self.sorted(&[Serving, Demoted, Waiting]).len();
        match self.rules.displacement {
            Displacement::OfYoungest => contenders > self.limit(),
            Displacement::Never => counts.waiting > 0 && contenders > self.limit(),
        }
    }

    /// Makes a request serve, or not.
    fn choose(&mut self, index: usize, serves: bool) {
        let request = &mut self.requests[index];
        let place = match request.place {
            _ if serves => PoolPlace::Serving,
            PoolPlace::Waiting => PoolPlace::Waiting,
            _ => PoolPlace::Demoted,
        };
        if place != request.place {
            request.place = place;
            request.since = self.now;
            request.admission = self.admissions;
            self.admissions += 1;
        }
    }
}
