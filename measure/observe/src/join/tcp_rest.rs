//! Requests that are answered before all of them is read: what was read of one until then, and what is its rest.

use super::tcp_round::ReadRequest;
use crate::request::RequestQuality;

/// What was read of requests in parts.
#[derive(Debug, Default)]
pub(super) struct PartlyRead {
    /// What was read since the last PSH, with a part of the segment that is read next.
    partly: Option<ReadRequest>,
    /// Whether what is read up to the next PSH is the rest of a request that is answered.
    is_rest: bool,
    /// This rest, if the last read had its end.
    rest: Option<ReadRequest>,
    /// Whether the server owes no answer to what nobody has seen.
    is_known: bool,
}

impl PartlyRead {
    /// The server owes nothing from before.
    pub(super) fn know(&mut self) {
        self.is_known = true;
    }

    /// A new read begins.
    pub(super) fn begin_read(&mut self) {
        (self.partly, self.rest) = (None, None);
    }

    /// The read that has begun has ended within a segment.
    pub(super) fn end_read(&mut self, partly: Option<ReadRequest>) {
        self.partly = partly;
    }

    /// What is read next is no rest of something before, as far as known.
    pub(super) fn forget(&mut self) {
        (self.partly, self.is_rest, self.rest) = (None, false, None);
    }

    /// The server may owe answers to what was not seen.
    pub(super) fn doubt(&mut self) {
        *self = Self::default();
    }

    /// Whether what is read next follows all of what was read before.
    pub(super) fn is_none(&self) -> bool {
        self.partly.is_none() && !self.is_rest
    }

    /// How many of the requests that will be read are rests.
    pub(super) fn rests(&self) -> usize {
        usize::from(self.is_rest)
    }

    /// A request was read up to PSH: gives it back, unless it is a rest.
    pub(super) fn end_request(&mut self, read: ReadRequest) -> Option<ReadRequest> {
        if std::mem::take(&mut self.is_rest) {
            self.rest = Some(read);
            return None;
        }
        Some(read)
    }

    /// A thread answers before a request was read up to PSH, of which `unfinished` has whole segments: the request, and
    /// whether a segment has to be divided. It is not, where the server may owe an answer to something before. Whether the
    /// answer to a rest is one to a further request is a guess.
    pub(super) fn cut_short(
        &mut self,
        writer: u32,
        unfinished: Option<ReadRequest>,
    ) -> Option<(ReadRequest, bool)> {
        let is_known = self.is_known;
        let partly = self.partly.take_if(|read| is_known && read.reader == writer);
        let is_guess = self.is_rest || self.rest.is_some();
        let begun = partly.or(unfinished);
        let rest = self.rest.take().filter(|_| begun.is_none());
        self.is_rest |= is_known && begun.is_some();
        let read = begun.or(rest)?;
        let quality = read.quality.with_those_that_hold(&[(is_guess, RequestQuality::GUESSED)]);
        Some((ReadRequest { quality, ..read }, partly.is_some()))
    }
}
