//! The mailbox under random interleavings of threads: no message is lost, and no receiver sleeps beside one or
//! when its senders are gone.

use super::mailbox::{Wake, mailbox};
use super::sync::Arc;
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

/// Interleavings of one test.
const INTERLEAVINGS: usize = 5000;
/// Messages of each sender.
const MESSAGES: u32 = 3;

/// A descriptor that becomes readable, as the kernel has it.
#[derive(Debug, Clone, Default)]
struct Descriptor(Arc<(Mutex<bool>, Condvar)>);

impl Wake for Descriptor {
    fn wake(&self) {
        let (is_readable, condition) = &*self.0;
        *is_readable.lock().unwrap() = true;
        condition.notify_one();
    }
}

impl Descriptor {
    /// Sleeps until the descriptor is readable, and makes it unreadable.
    fn wait(&self) {
        let (is_readable, condition) = &*self.0;
        let mut is_readable = is_readable.lock().unwrap();
        while !std::mem::take(&mut *is_readable) {
            is_readable = condition.wait(is_readable).unwrap();
        }
    }
}

/// Plays senders against one receiver, which sleeps without a timeout: a lost wake-up is a deadlock.
fn play(senders: u32) {
    let descriptor = Descriptor::default();
    let (sender, mut receiver) = mailbox(descriptor.clone());
    let threads: Vec<_> = (0..senders)
        .map(|number| {
            let sender = sender.clone();
            thread::spawn(move || (0..MESSAGES).for_each(|message| assert!(sender.send((number, message)))))
        })
        .collect();
    drop(sender);
    let mut next = vec![0; senders as usize];
    while !receiver.are_senders_gone() {
        while let Some((number, message)) = receiver.next() {
            assert_eq!(next[number as usize], message, "messages of a sender stay in order");
            next[number as usize] += 1;
        }
        if receiver.prepare_to_sleep() {
            descriptor.wait();
            receiver.wake_up();
        }
    }
    assert_eq!(next, vec![MESSAGES; senders as usize], "no message is lost");
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(!receiver.prepare_to_sleep(), "a mailbox without senders is not waited for");
}

#[test]
fn no_message_is_lost_and_no_receiver_sleeps_beside_one() {
    shuttle::check_random(|| play(1), INTERLEAVINGS);
    shuttle::check_random(|| play(3), INTERLEAVINGS);
}
