//! Messages to a thread that sleeps until the kernel wakes it.
//!
//! A sender wakes the receiver only if it sleeps, because waking takes a system call. The receiver announces its
//! sleep and then looks for messages once more; the sender sends and then looks for an announcement. Of these
//! four steps the sequentially consistent fences put one announcement before the other's look, so that a message
//! is seen or its receiver is woken.

use super::sync::{Arc, AtomicBool, Ordering, Receiver, Sender, TryRecvError, channel, fence};

/// Wakes the thread that receives.
pub(super) trait Wake {
    /// Wakes the receiver, if it sleeps now or is about to.
    fn wake(&self);
}

/// End of a mailbox that sends.
#[derive(Debug)]
pub(super) struct MailSender<T, W: Wake> {
    /// None only while the end is dropped.
    messages: Option<Sender<T>>,
    is_asleep: Arc<AtomicBool>,
    waker: W,
}

/// End of a mailbox that receives.
#[derive(Debug)]
pub(super) struct MailReceiver<T> {
    messages: Receiver<T>,
    is_asleep: Arc<AtomicBool>,
    /// A message that was found when the receiver was about to sleep.
    found: Option<T>,
    are_senders_gone: bool,
}

/// Creates a mailbox.
pub(super) fn mailbox<T, W: Wake>(waker: W) -> (MailSender<T, W>, MailReceiver<T>) {
    let (sender, messages) = channel();
    let is_asleep = Arc::new(AtomicBool::new(false));
    let sender = MailSender { messages: Some(sender), is_asleep: is_asleep.clone(), waker };
    (sender, MailReceiver { messages, is_asleep, found: None, are_senders_gone: false })
}

impl<T, W: Wake + Clone> Clone for MailSender<T, W> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), is_asleep: self.is_asleep.clone(), waker: self.waker.clone() }
    }
}

impl<T, W: Wake> MailSender<T, W> {
    /// Sends a message. Returns false if the receiver is gone.
    pub(super) fn send(&self, message: T) -> bool {
        let is_sent = self.messages.as_ref().is_some_and(|messages| messages.send(message).is_ok());
        self.wake_receiver();
        is_sent
    }

    fn wake_receiver(&self) {
        fence(Ordering::SeqCst);
        // Of several senders one wakes the receiver.
        if self.is_asleep.load(Ordering::Relaxed) && self.is_asleep.swap(false, Ordering::Relaxed) {
            self.waker.wake();
        }
    }
}

impl<T, W: Wake> Drop for MailSender<T, W> {
    /// Wakes the receiver: it may wait for a message that no sender is left to send.
    fn drop(&mut self) {
        self.messages = None;
        self.wake_receiver();
    }
}

impl<T> MailReceiver<T> {
    /// Returns the next message, if there is one.
    pub(super) fn next(&mut self) -> Option<T> {
        if let Some(found) = self.found.take() {
            return Some(found);
        }
        match self.messages.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.are_senders_gone = true;
                None
            }
        }
    }

    /// Returns true if no more messages will come; known once [`Self::next`] has returned none.
    pub(super) fn are_senders_gone(&self) -> bool {
        self.are_senders_gone
    }

    /// Announces that the receiver is about to sleep. Returns false if there is a message, or no sender, so that it
    /// must not.
    pub(super) fn prepare_to_sleep(&mut self) -> bool {
        if self.found.is_some() {
            return false;
        }
        self.is_asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.found = self.next();
        let may_sleep = self.found.is_none() && !self.are_senders_gone;
        if !may_sleep {
            self.wake_up();
        }
        may_sleep
    }

    /// The receiver does not sleep, or no longer.
    pub(super) fn wake_up(&mut self) {
        self.is_asleep.store(false, Ordering::Relaxed);
    }
}
