//! Servers that workloads join and leave one at a time.

use super::Refusal;
use super::slot::Slot;
use crate::instance::Instance;
use crate::limits::{Method, Standing};
use crate::server::Server;
use model::{PerStage, Stage};

/// The fleet of an [`Instance`]: first-fit arrivals, departures, limits of a server chosen anew for
/// everybody on it whenever it changes.
#[derive(Debug, Clone)]
pub struct Fleet<'a> {
    instance: &'a Instance,
    method: Method,
    skip_full: bool,
    /// Vacated slots keep their number and have no members.
    slots: Vec<Slot>,
    /// Servers taken from each class.
    taken: Vec<usize>,
    /// By class: rates that each workload would be given alone, where that was asked.
    alone: Vec<Vec<Option<PerStage<f64>>>>,
}

impl<'a> Fleet<'a> {
    /// No server in use yet.
    pub fn new(instance: &'a Instance, method: Method) -> Self {
        Self {
            instance,
            method,
            skip_full: false,
            slots: Vec::new(),
            taken: vec![0; instance.classes.len()],
            alone: vec![vec![None; instance.workloads.len()]; instance.classes.len()],
        }
    }

    /// A fleet in which these servers are in use.
    pub(super) fn of_slots(instance: &'a Instance, method: Method, slots: Vec<Slot>) -> Self {
        let mut fleet = Self::new(instance, method);
        slots.iter().for_each(|slot| fleet.taken[slot.class] += 1);
        fleet.slots = slots;
        fleet
    }

    /// Fast-first-fit: skips servers whose rates in force leave no room for the workload's own.
    pub fn skipping_full(mut self, skip: bool) -> Self {
        self.skip_full = skip;
        self
    }

    /// Places a workload on the first server where everybody's SLO holds, opening one if needed. Gives
    /// the server's number.
    pub fn arrive(&mut self, workload: usize) -> Result<usize, Refusal> {
        for number in 0..self.slots.len() {
            if self.slots[number].members.is_empty() || self.is_full_for(number, workload) {
                continue;
            }
            if self.join(number, workload) {
                return Ok(number);
            }
        }
        self.open(workload)
    }

    /// Takes over a server with its limits as they are, where they hold; otherwise as [`Fleet::settle`].
    pub fn adopt(&mut self, server: Server) -> (Option<usize>, Vec<usize>) {
        if server.verify(self.instance).is_err() || server.members.is_empty() || !self.has_left(server.class)
        {
            return self.settle(server.class, &server.members);
        }
        let slot =
            Slot { class: server.class, members: server.members.clone(), state: Standing::Fitted(server) };
        (Some(self.append(slot)), Vec::new())
    }

    /// Puts workloads together on a new server of a class, with new limits; if they do not all fit, those
    /// that do in the order given. Gives the server's number (`None` when nobody stays) and who found no
    /// place on it.
    pub fn settle(&mut self, class: usize, wanted: &[usize]) -> (Option<usize>, Vec<usize>) {
        if !self.has_left(class) {
            return (None, wanted.to_vec());
        }
        let (members, state, displaced) = self.refitted(class, wanted);
        (state.map(|state| self.append(Slot { class, members, state })), displaced)
    }

    fn has_left(&self, class: usize) -> bool {
        self.taken[class] < self.instance.classes[class].count
    }

    fn append(&mut self, slot: Slot) -> usize {
        self.taken[slot.class] += 1;
        self.slots.push(slot);
        self.slots.len() - 1
    }

    /// New limits for as many of these as fit together, all of them if possible.
    fn refitted(&self, class: usize, wanted: &[usize]) -> (Vec<usize>, Option<Standing>, Vec<usize>) {
        if wanted.is_empty() {
            return (Vec::new(), None, Vec::new());
        }
        if let Ok(state) = self.method.admit(self.instance, class, wanted) {
            return (wanted.to_vec(), Some(state), Vec::new());
        }
        let (mut members, mut last, mut displaced) = (Vec::new(), None, Vec::new());
        for &workload in wanted {
            members.push(workload);
            match self.method.admit(self.instance, class, &members) {
                Ok(state) => last = Some(state),
                Err(_) => displaced.extend(members.pop()),
            }
        }
        (members, last, displaced)
    }

    /// Removes a workload and re-optimises the server it leaves. Gives the server's number, `None` when
    /// it had no place.
    pub fn depart(&mut self, workload: usize) -> Option<usize> {
        let number = self.slots.iter().position(|slot| slot.members.contains(&workload))?;
        let mut members = std::mem::take(&mut self.slots[number].members);
        members.retain(|&m| m != workload);
        let class = self.slots[number].class;
        if members.is_empty() {
            self.taken[class] -= 1;
        } else {
            let standing = self.method.admit(self.instance, class, &members);
            self.slots[number].state = standing.expect("whoever stays fits with less company");
        }
        self.slots[number].members = members;
        Some(number)
    }

    /// Tries to add a workload to a server in use.
    fn join(&mut self, number: usize, workload: usize) -> bool {
        let joined = self.slots[number].with(self.instance, self.method, workload);
        joined.map(|slot| self.slots[number] = slot).is_some()
    }

    /// Opens a server of the first class that has one left and suits the workload.
    fn open(&mut self, workload: usize) -> Result<usize, Refusal> {
        let (mut unsuited, mut exhausted) = (None, false);
        for class in 0..self.instance.classes.len() {
            match self.method.admit(self.instance, class, &[workload]) {
                Err(blocked) => unsuited = unsuited.or(Some(blocked)),
                Ok(_) if self.taken[class] == self.instance.classes[class].count => exhausted = true,
                Ok(state) => {
                    self.taken[class] += 1;
                    return Ok(self.put(Slot { class, members: vec![workload], state }));
                }
            }
        }
        Err(Refusal { workload, alone: unsuited.filter(|_| !exhausted) })
    }

    /// Whether a look at the server's standing is enough to pass it by.
    fn is_full_for(&mut self, number: usize, workload: usize) -> bool {
        let class = self.slots[number].class;
        if self.skip_full {
            let wanted = self.rates_alone(workload, class);
            let Standing::Fitted(server) = &self.slots[number].state else {
                unreachable!("fast-first-fit is a rule for methods that keep limits in force");
            };
            let reserved = server.reserved_rate();
            return Stage::ALL.into_iter().any(|s| reserved[s] + wanted[s] > self.instance.max_rate);
        }
        let slot = &self.slots[number];
        slot.is_hopeless(slot.cost(self.instance, workload))
    }

    /// The rates that the method would give the workload on an empty server.
    fn rates_alone(&mut self, workload: usize, class: usize) -> PerStage<f64> {
        let alone =
            || self.method.fit(self.instance, class, vec![workload]).map(|server| server.reserved_rate());
        // A workload that does not fit alone is passed by everywhere.
        *self.alone[class][workload]
            .get_or_insert_with(|| alone().unwrap_or(PerStage::from_fn(|_| f64::INFINITY)))
    }

    /// The servers in use with their final limits, by number.
    pub fn into_servers(self) -> Vec<Server> {
        self.into_numbered_servers().into_iter().map(|(_, server)| server).collect()
    }

    /// As [`Fleet::into_servers`], with the numbers.
    pub fn into_numbered_servers(self) -> Vec<(usize, Server)> {
        let finish = |slot: Slot| match slot.state {
            Standing::Fitted(server) => server,
            Standing::Priced { .. } => {
                let fitted = self.method.fit(self.instance, slot.class, slot.members);
                fitted.expect("admitted workloads have limits")
            }
        };
        let used = self.slots.into_iter().enumerate().filter(|(_, slot)| !slot.members.is_empty());
        used.map(|(number, slot)| (number, finish(slot))).collect()
    }

    /// Reuses the first vacated number of the same class, or appends.
    fn put(&mut self, slot: Slot) -> usize {
        let vacated = self.slots.iter().position(|s| s.members.is_empty() && s.class == slot.class);
        let number = vacated.unwrap_or(self.slots.len());
        match vacated {
            Some(number) => self.slots[number] = slot,
            None => self.slots.push(slot),
        }
        number
    }
}
