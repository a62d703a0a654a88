//! A network link that sends packets, with HTB shaping.
//!
//! A packet that has begun is sent to its end, and then the next is chosen. HTB takes tokens when it
//! sends: a packet may go while no bucket of its class is in debt, and may then put them into debt. So
//! over any time t at most rate · t + burst and one packet pass. While a class waits for others its
//! buckets fill up to their burst and not beyond; the class loses the excess.
//!
//! The least level goes first. Classes of one level take turns by deficit round robin (Shreedhar and Varghese 1996) with a
//! packet as quantum, as HTB has it. Within a class items are first come, first served, and an item is done when its last
//! packet is.
//!
//! Consecutive packets of an item are one assignment, a run, as long as no other class can be chosen between them. An
//! arrival that may change that ends the run with the packet in transmission. So the cost is per run, whatever the number
//! of its packets, and what is sent is the same as packet by packet.
//!
//! HTB's lending at a class's own tiny rate is not modelled.

use super::{Assignment, Discipline, NO_ITEM, QueueItem, UNTIL_DONE};
use crate::Limit;
use crate::enforce::BEST_EFFORT;
use std::collections::VecDeque;

/// Tokens are counted in billionths of the unit of work, so that a rate per second needs no division by nanosecond.
const PARTS: i128 = 1_000_000_000;

/// A class of traffic on a [`PacketLink`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketClass {
    /// Priority level; level 0 is sent first, [`BEST_EFFORT`] last.
    pub level: u32,
    /// Token buckets that all apply at once, in nanoseconds of the link. Rates and bursts are at least 1.
    pub limits: Vec<Limit>,
}

impl PacketClass {
    /// Returns a class below all levels, without limits.
    pub fn best_effort() -> Self {
        Self { level: BEST_EFFORT, limits: Vec::new() }
    }
}

/// The parameters of a [`PacketLink`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketLinkParameters {
    /// Classes by number.
    pub classes: Vec<PacketClass>,
    /// Transmission time of the largest packet, at least 1 ns.
    pub packet: u64,
}

impl PacketLinkParameters {
    /// Checks that all values are within their ranges.
    ///
    /// # Errors
    /// Describes the first value that is not.
    pub fn check(&self) -> Result<(), String> {
        if self.packet == 0 {
            return Err("a packet takes at least 1 ns".to_owned());
        }
        let mut limits = self.classes.iter().flat_map(|class| &class.limits);
        if limits.any(|limit| limit.rate == 0 || limit.burst == 0) {
            return Err("the rate and the burst of a limit are at least 1".to_owned());
        }
        Ok(())
    }
}

/// A token bucket that may be in debt by one packet.
#[derive(Debug, Clone)]
struct DebtBucket {
    limit: Limit,
    /// Tokens at `filled`, in billionths of the unit of work.
    tokens: i128,
    filled: u64,
}

impl DebtBucket {
    fn full(limit: Limit) -> Self {
        Self { limit, tokens: i128::from(limit.burst) * PARTS, filled: 0 }
    }

    /// Returns the tokens at `now`, when a packet begins and then `count` more have begun, one after another.
    fn tokens_before(&self, now: u64, count: u64, packet: u64) -> i128 {
        let at_now = self.tokens + i128::from(self.limit.rate) * i128::from(now - self.filled);
        let full = i128::from(self.limit.burst) * PARTS;
        (at_now.min(full) + self.change(packet) * i128::from(count)).min(full)
    }

    /// Returns how many packets may begin one after another from `now` on, when the bucket is not in debt.
    fn packets_until_debt(&self, now: u64, packet: u64) -> u64 {
        let change = self.change(packet);
        if change >= 0 {
            return u64::MAX;
        }
        u64::try_from(self.tokens_before(now, 0, packet) / -change + 1).unwrap_or(u64::MAX)
    }

    /// Returns what the tokens gain in the time of a packet that takes its own.
    fn change(&self, packet: u64) -> i128 {
        (i128::from(self.limit.rate) - PARTS) * i128::from(packet)
    }

    /// Takes the tokens of packets that have begun one after another from `begun` on.
    fn charge(&mut self, begun: u64, length: u64, packet: u64) {
        let full_packets = length.saturating_sub(1) / packet;
        let sent = full_packets * packet;
        self.tokens = self.tokens_before(begun, full_packets, packet) - i128::from(length - sent) * PARTS;
        self.filled = begun + sent;
    }

    /// Returns the instant at which the debt is repaid if nothing is taken.
    fn due(&self) -> u64 {
        let debt = (-self.tokens).max(0);
        let rate = i128::from(self.limit.rate);
        self.filled.saturating_add(u64::try_from((debt + rate - 1) / rate).unwrap_or(u64::MAX))
    }
}

/// A class and its waiting items.
#[derive(Debug, Clone)]
struct PacketQueue {
    level: u32,
    buckets: Vec<DebtBucket>,
    /// Items, each with its unsent work.
    items: VecDeque<(u32, u64)>,
    /// Work that the class may still send in its turn.
    deficit: u64,
    /// End of its last turn, counted in turns.
    turn: u64,
}

impl PacketQueue {
    fn due(&self) -> u64 {
        self.buckets.iter().map(DebtBucket::due).max().unwrap_or(0)
    }
}

/// Packets of one item in a row.
#[derive(Debug, Clone, Copy)]
struct Run {
    class: usize,
    begun: u64,
    /// Transmission time of all of them. All but the last are as large as a packet can be.
    length: u64,
}

/// A link with one worker that sends items packet by packet.
#[derive(Debug, Clone)]
pub struct PacketLink {
    classes: Vec<PacketQueue>,
    packet: u64,
    /// Packets in transmission. Their class is charged for them at their end.
    sending: Option<Run>,
    /// Number of turns that have ended.
    turns: u64,
    waiting: usize,
    /// Packets are sent one by one, for comparison.
    #[cfg(test)]
    is_stepwise: bool,
}

impl PacketLink {
    /// Creates an idle link whose buckets are full at instant 0.
    ///
    /// # Panics
    /// When the parameters are out of their ranges.
    pub fn new(parameters: &PacketLinkParameters) -> Self {
        parameters.check().unwrap_or_else(|error| panic!("parameters were checked: {error}"));
        let queue = |class: &PacketClass| PacketQueue {
            level: class.level,
            buckets: class.limits.iter().copied().map(DebtBucket::full).collect(),
            items: VecDeque::new(),
            deficit: parameters.packet,
            turn: 0,
        };
        let classes = parameters.classes.iter().map(queue).collect();
        Self {
            classes,
            packet: parameters.packet,
            sending: None,
            turns: 0,
            waiting: 0,
            #[cfg(test)]
            is_stepwise: false,
        }
    }

    /// Sends the next packet if the link is free.
    fn send(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        if self.sending.is_some() {
            return;
        }
        let Some(class) = self.choose(now) else { return };
        let Some((item, left)) = self.classes[class].items.front().copied() else { return };
        let length = self.run_length(now, class, left);
        self.sending = Some(Run { class, begun: now, length });
        let slice = if length == left { UNTIL_DONE } else { length };
        assignments.push(Assignment { worker: 0, item, slice });
    }

    /// Returns the transmission time of the packets of a class's first item, with so much unsent, that no packet of
    /// another class can interrupt unless an item arrives.
    fn run_length(&self, now: u64, class: usize, left: u64) -> u64 {
        let own = &self.classes[class];
        // The class of a lower level that is in debt may be chosen when that is paid.
        let mut until = u64::MAX;
        for (number, other) in self.classes.iter().enumerate() {
            if number == class || other.items.is_empty() || other.level > own.level {
                continue;
            }
            if other.level == own.level {
                return left.min(self.packet);
            }
            until = until.min(other.due());
        }
        #[cfg(test)]
        if self.is_stepwise {
            return left.min(self.packet);
        }
        let begin_before = (until - now).div_ceil(self.packet);
        let paid = own.buckets.iter().map(|bucket| bucket.packets_until_debt(now, self.packet));
        left.min(paid.fold(begin_before, u64::min).saturating_mul(self.packet))
    }

    /// Ends the run with the packet in transmission if a class that has an item now may be chosen after it.
    fn end_run(&mut self, now: u64, arrived: usize, assignments: &mut Vec<Assignment>) {
        let Some(run) = &mut self.sending else { return };
        let is_behind = arrived == run.class || self.classes[arrived].level > self.classes[run.class].level;
        let elapsed = now - run.begun;
        let length = run.length.min((elapsed / self.packet + 1) * self.packet);
        if is_behind || length == run.length {
            return;
        }
        run.length = length;
        if let Some((item, _)) = self.classes[run.class].items.front() {
            assignments.push(Assignment { worker: 0, item: *item, slice: length - elapsed });
        }
    }

    /// Selects the class of the next packet: the least level, and there the one whose turn it is.
    fn choose(&self, now: u64) -> Option<usize> {
        let classes = self.classes.iter().enumerate();
        let ready = classes.filter(|(_, queue)| !queue.items.is_empty() && queue.due() <= now);
        Some(ready.min_by_key(|(_, queue)| (queue.level, queue.turn))?.0)
    }

    /// Completes the packets in transmission, and their item with its last one.
    fn finish(&mut self) {
        let Some(Run { class, begun, length }) = self.sending.take() else { return };
        let queue = &mut self.classes[class];
        for bucket in &mut queue.buckets {
            bucket.charge(begun, length, self.packet);
        }
        let turns = length.saturating_sub(queue.deficit).div_ceil(self.packet);
        queue.deficit = queue.deficit + turns * self.packet - length;
        if turns > 0 {
            self.turns += turns;
            queue.turn = self.turns;
        }
        let Some((_, left)) = queue.items.front_mut() else { return };
        *left -= length;
        if *left == 0 {
            queue.items.pop_front();
            self.waiting -= 1;
        }
    }
}

impl Discipline for PacketLink {
    fn arrive(&mut self, now: u64, item: QueueItem, assignments: &mut Vec<Assignment>) {
        self.waiting += 1;
        let class = item.class as usize;
        self.classes[class].items.push_back((item.id, item.size));
        self.end_run(now, class, assignments);
        self.send(now, assignments);
    }

    fn depart(&mut self, now: u64, _worker: u32, assignments: &mut Vec<Assignment>) {
        self.finish();
        self.send(now, assignments);
    }

    fn expire(&mut self, now: u64, worker: u32, assignments: &mut Vec<Assignment>) {
        self.finish();
        self.send(now, assignments);
        if self.sending.is_none() {
            assignments.push(Assignment { worker, item: NO_ITEM, slice: UNTIL_DONE });
        }
    }

    fn waiting(&self) -> usize {
        self.waiting - usize::from(self.sending.is_some())
    }

    fn wake_at(&self) -> Option<u64> {
        if self.sending.is_some() {
            return None;
        }
        self.classes.iter().filter(|queue| !queue.items.is_empty()).map(PacketQueue::due).min()
    }

    fn wake(&mut self, now: u64, assignments: &mut Vec<Assignment>) {
        self.send(now, assignments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::test_driver::{Job, jobs, play};
    use proptest::prelude::*;

    fn link(classes: Vec<PacketClass>, packet: u64) -> PacketLink {
        PacketLink::new(&PacketLinkParameters { classes, packet })
    }

    fn class(level: u32, limits: &[(u64, u64)]) -> PacketClass {
        PacketClass {
            level,
            limits: limits.iter().map(|(rate, burst)| Limit { rate: *rate, burst: *burst }).collect(),
        }
    }

    fn job(at: u64, class: u32, size: u64) -> Job {
        Job { at, class, age: at, size }
    }

    /// Returns the item that the link sends in each unit of time, by number; '.' for none.
    fn sent(link: &mut PacketLink, jobs: &[Job]) -> String {
        let history = play(1, jobs, link);
        let units =
            history.iter().map(|unit| unit[0].map_or_else(|| ".".to_owned(), |item| item.to_string()));
        units.collect::<String>().trim_end_matches('.').to_owned()
    }

    #[test]
    fn a_packet_is_sent_to_its_end_and_an_item_is_not() {
        let classes = vec![class(0, &[]), PacketClass::best_effort()];
        assert_eq!(sent(&mut link(classes, 4), &[job(0, 1, 10), job(1, 0, 3)]), "0000111000000");
    }

    #[test]
    fn equals_take_turns_by_packets() {
        let classes = vec![class(0, &[]), class(0, &[])];
        assert_eq!(sent(&mut link(classes, 2), &[job(0, 0, 6), job(0, 1, 6)]), "000011110011");
    }

    proptest! {
        /// Runs send what single packets send, at the same instants.
        #[test]
        fn runs_are_packets_in_a_row(
            jobs in jobs(),
            packet in 1u64..6,
            levels in prop::collection::vec((0u32..3, prop::option::of((1u64..1_000_000_000, 1u64..8))), 3..=3),
        ) {
            let classes = levels.iter().map(|(level, limit)| class(*level, limit.as_slice())).collect();
            let mut runs = link(classes, packet);
            let mut packets = runs.clone();
            packets.is_stepwise = true;
            prop_assert_eq!(sent(&mut runs, &jobs), sent(&mut packets, &jobs));
        }
    }

    #[test]
    fn a_bucket_in_debt_waits_and_lower_levels_go_on() {
        // A tenth of the link: 2 at once, a packet on credit, and the next when that is paid, at 20.
        let tenth = [(100_000_000, 2)];
        let mut limited = link(vec![class(0, &tenth), class(1, &[])], 2);
        let jobs = [job(0, 0, 6), job(0, 1, 9)];
        assert_eq!(sent(&mut limited, &jobs), "0000111111111.......00");
    }
}
