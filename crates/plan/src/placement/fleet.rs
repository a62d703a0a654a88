//! Servers that workloads join and leave one at a time.

use super::Refusal;
use super::slot::{Change, Slot};
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
            let change = Change { joins: workload, leave: &[] };
            if self.slots[number].try_change(self.instance, self.method, change) {
                return Ok(number);
            }
        }
        self.open(workload)
    }

    /// Takes over a server with its limits as they are, where they hold; otherwise as [`Fleet::settle`].
    pub fn adopt(&mut self, server: Server) -> (Option<usize>, Vec<usize>) {
        let class = server.class;
        let (number, displaced) = self.settle(class, &server.members);
        if let Some(number) = number.filter(|_| displaced.is_empty() && server.verify(self.instance).is_ok())
        {
            self.slots[number].state = Standing::Fitted(server);
        }
        (number, displaced)
    }

    /// Puts workloads together on a new server of a class, with new limits; if they do not all fit, those
    /// that do in the order given. Gives the server's number (`None` when nobody stays) and who found no
    /// place on it.
    pub fn settle(&mut self, class: usize, wanted: &[usize]) -> (Option<usize>, Vec<usize>) {
        if wanted.is_empty() || self.taken[class] == self.instance.classes[class].count {
            return (None, wanted.to_vec());
        }
        let (slot, displaced) = self.settled(class, wanted);
        let number = slot.map(|slot| {
            self.taken[class] += 1;
            self.slots.push(slot);
            self.slots.len() - 1
        });
        (number, displaced)
    }

    /// A server for as many of these as fit together, all of them if possible.
    fn settled(&self, class: usize, wanted: &[usize]) -> (Option<Slot>, Vec<usize>) {
        if let Ok(slot) = Slot::of(self.instance, self.method, class, wanted.to_vec()) {
            return (Some(slot), Vec::new());
        }
        let (mut slot, mut displaced) = (None::<Slot>, Vec::new());
        for &workload in wanted {
            let change = Change { joins: workload, leave: &[] };
            let stays = match &mut slot {
                Some(slot) => slot.try_change(self.instance, self.method, change),
                None => {
                    slot = Slot::open(self.instance, self.method, class, workload).ok();
                    slot.is_some()
                }
            };
            if !stays {
                displaced.push(workload);
            }
        }
        (slot, displaced)
    }

    /// Removes a workload and re-optimises the server it leaves. Gives the server's number, `None` when
    /// it had no place.
    pub fn depart(&mut self, workload: usize) -> Option<usize> {
        let number = self.slots.iter().position(|slot| slot.members.contains(&workload))?;
        let slot = &mut self.slots[number];
        if slot.members == [workload] {
            slot.members.clear();
            self.taken[slot.class] -= 1;
        } else {
            *slot = slot.without(self.instance, self.method, workload);
        }
        Some(number)
    }

    /// Opens a server of the first class that has one left and suits the workload.
    fn open(&mut self, workload: usize) -> Result<usize, Refusal> {
        let (mut unsuited, mut exhausted) = (None, false);
        for class in 0..self.instance.classes.len() {
            match Slot::open(self.instance, self.method, class, workload) {
                Err(blocked) => unsuited = unsuited.or(Some(blocked)),
                Ok(_) if self.taken[class] == self.instance.classes[class].count => exhausted = true,
                Ok(slot) => {
                    self.taken[class] += 1;
                    return Ok(self.put(slot));
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
        self.slots[number].is_hopeless(self.instance, Change { joins: workload, leave: &[] })
    }

    /// The rates that the method would give the workload on an empty server.
    fn rates_alone(&mut self, workload: usize, class: usize) -> PerStage<f64> {
        let alone =
            || self.method.fit(self.instance, class, vec![workload]).map(|server| server.reserved_rate());
        // A workload that does not fit alone is passed by everywhere.
        *self.alone[class][workload]
            .get_or_insert_with(|| alone().unwrap_or(PerStage::from_fn(|_| f64::INFINITY)))
    }

    /// How many servers have a workload.
    pub fn servers_in_use(&self) -> usize {
        self.taken.iter().sum()
    }

    /// The servers in use with their final limits, by number.
    pub fn into_servers(self) -> Vec<Server> {
        self.into_numbered_servers().into_iter().map(|(_, server)| server).collect()
    }

    /// As [`Fleet::into_servers`], with the numbers.
    pub fn into_numbered_servers(self) -> Vec<(usize, Server)> {
        let finish = |slot: Slot| match slot.state {
            Standing::Fitted(server) => server,
            Standing::Assessed(_) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::{Class, OnClass, Workload};
    use calculus::{ArrivalCurve, Vertex};
    use model::Slo;
    use units::Seconds;

    /// Workloads that burst `burst` seconds at every stage and promise `slo` seconds.
    fn instance(specs: &[(f64, f64)], servers: usize) -> Instance {
        let curve = |burst: f64| {
            let vertices =
                vec![Vertex { duration: 0.0, work: burst }, Vertex { duration: 10.0, work: 1.5 * burst }];
            ArrivalCurve::new(vertices, 0.0).unwrap()
        };
        let workload = |(index, &(burst, slo)): (usize, &(f64, f64))| Workload {
            name: format!("w{index}"),
            slo: Slo::new("99.9".parse().unwrap(), Seconds(slo)).unwrap(),
            on: vec![OnClass {
                curves: PerStage::from_fn(|_| curve(burst)),
                mean_rate: PerStage::from_fn(|_| 0.0),
            }],
        };
        let classes = vec![Class { name: "ssd".into(), count: servers, base_latency: 0.0 }];
        Instance::new(classes, specs.iter().enumerate().map(workload).collect(), 0.999, 0.999).unwrap()
    }

    #[test]
    fn adopted_servers_keep_limits_that_hold() {
        let instance = instance(&[(0.01, 0.2), (0.02, 0.4), (0.01, 0.4)], 3);
        for method in [Method::Exact, Method::Relaxed, Method::Knee] {
            let server = method.fit(&instance, 0, vec![0, 1]).unwrap();
            let mut fleet = Fleet::new(&instance, method);
            assert_eq!(fleet.adopt(server.clone()), (Some(0), vec![]));
            assert_eq!(fleet.clone().into_numbered_servers(), [(0, server)]);
            // An arrival changes the server as it would any other.
            assert_eq!(fleet.arrive(2), Ok(0));
            let servers = fleet.into_servers();
            assert_eq!(servers[0].members, [0, 1, 2]);
            assert_eq!(servers[0].verify(&instance), Ok(()));
        }
    }

    #[test]
    fn limits_that_do_not_hold_are_chosen_anew() {
        let instance = instance(&[(0.01, 0.2), (0.02, 0.4)], 3);
        let mut broken = Method::Exact.fit(&instance, 0, vec![0, 1]).unwrap();
        broken.limits[0][Stage::Storage].burst = 1.0;
        let mut fleet = Fleet::new(&instance, Method::Exact);
        assert_eq!(fleet.adopt(broken), (Some(0), vec![]));
        assert_eq!(fleet.into_servers()[0].verify(&instance), Ok(()));
    }

    #[test]
    fn who_no_longer_fits_is_displaced_and_finds_another_place() {
        // Each burst takes 0.3 s of 1 s over three stages: three fit, four do not.
        let instance = instance(&[(0.1, 1.0); 4], 2);
        let mut fleet = Fleet::new(&instance, Method::Exact);
        let (number, displaced) = fleet.settle(0, &[3, 1, 0, 2]);
        assert_eq!((number, displaced.as_slice()), (Some(0), &[2][..]));
        assert_eq!(fleet.arrive(2), Ok(1));
        let places: Vec<Vec<usize>> = fleet.into_servers().into_iter().map(|s| s.members).collect();
        assert_eq!(places, [vec![3, 1, 0], vec![2]]);
    }

    #[test]
    fn without_a_server_left_everybody_is_displaced() {
        let instance = instance(&[(0.1, 1.0); 2], 1);
        let mut fleet = Fleet::new(&instance, Method::Exact);
        assert_eq!(fleet.settle(0, &[]), (None, vec![]));
        assert_eq!(fleet.settle(0, &[0]), (Some(0), vec![]));
        assert_eq!(fleet.settle(0, &[1]), (None, vec![1]));
    }
}
