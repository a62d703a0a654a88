//! The tag of the request that a task works on, available anywhere in the task. Threads switch between
//! requests at every await, so the tag is set at the beginning of each poll and the former one restored
//! at its end.

use gat::RequestTag;
use pin_project_lite::pin_project;
use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

thread_local! {
    static CURRENT: Cell<Option<RequestTag>> = const { Cell::new(None) };
}

/// Returns the tag of the current request; `None` outside requests, and in tasks that did not inherit it.
pub fn current_tag() -> Option<RequestTag> {
    CURRENT.try_with(Cell::get).ok().flatten()
}

/// Returns a future that has this tag while it is polled. For tasks spawned on behalf of a request.
pub fn with_tag<F: Future>(tag: RequestTag, future: F) -> TaggedFuture<F> {
    TaggedFuture { tag, future }
}

pin_project! {
    /// A future with a tag, created by [`with_tag`].
    #[derive(Debug)]
    #[must_use = "nothing happens before it is polled"]
    pub struct TaggedFuture<F> {
        tag: RequestTag,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for TaggedFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let own = self.project();
        in_tag(*own.tag, || own.future.poll(context))
    }
}

/// Restores the former tag when a poll ends, also by a panic.
struct FormerTag(Option<RequestTag>);

impl Drop for FormerTag {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.0));
    }
}

/// Runs a function with the tag as the current one.
pub(crate) fn in_tag<T>(tag: RequestTag, run: impl FnOnce() -> T) -> T {
    let former = CURRENT.try_with(|current| current.replace(Some(tag))).ok().flatten();
    let _former = FormerTag(former);
    run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker;
    use std::panic::catch_unwind;
    use std::pin::pin;

    #[test]
    fn each_poll_has_the_tag_of_its_own_request() {
        let tags = [1, 2].map(RequestTag::starting_at);
        let ask_twice = || async {
            let first = current_tag();
            let mut is_later = false;
            std::future::poll_fn(|_| {
                let poll = if is_later { Poll::Ready(()) } else { Poll::Pending };
                is_later = true;
                poll
            })
            .await;
            (first, current_tag())
        };
        let mut one = pin!(with_tag(tags[0], ask_twice()));
        let mut other = pin!(with_tag(tags[1], ask_twice()));
        let waker = noop_waker();
        let context = &mut Context::from_waker(&waker);
        assert!(one.as_mut().poll(context).is_pending() && other.as_mut().poll(context).is_pending());
        assert_eq!(current_tag(), None, "between polls there is none");
        assert_eq!(one.as_mut().poll(context), Poll::Ready((Some(tags[0]), Some(tags[0]))));
        assert_eq!(other.as_mut().poll(context), Poll::Ready((Some(tags[1]), Some(tags[1]))));
    }

    #[test]
    fn inner_tags_end_with_their_poll_also_by_a_panic() {
        let [outer, inner] = [1, 2].map(RequestTag::starting_at);
        let seen = in_tag(outer, || {
            assert!(catch_unwind(|| in_tag(inner, || panic!("a handler that fails"))).is_err());
            current_tag()
        });
        assert_eq!((seen, current_tag()), (Some(outer), None));
    }
}
