//! The body of a response; its request counts at the gate until the body ends.

use crate::task_tag::in_tag;
use gat::RequestTag;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use schedule::AsyncPermit;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Keeps a request at the gate while its response is made.
#[derive(Debug)]
pub(crate) struct RequestInside {
    pub(crate) permit: AsyncPermit,
    pub(crate) tag: RequestTag,
}

impl RequestInside {
    /// Runs a part of the request's work.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let tag = self.tag;
        self.permit.measure(|| in_tag(tag, work))
    }
}

pin_project! {
    /// A body whose request leaves the gate when the body has ended, failed, or is dropped.
    #[derive(Debug)]
    pub struct GatedBody<B> {
        // Dropped before the permit.
        #[pin]
        body: Option<B>,
        inside: Option<RequestInside>,
    }
}

impl<B> GatedBody<B> {
    /// Returns the body of an answer without a permit.
    pub(crate) fn empty() -> Self {
        Self { body: None, inside: None }
    }
}

impl<B: Body> GatedBody<B> {
    pub(crate) fn new(body: B, inside: RequestInside) -> Self {
        let inside = (!body.is_end_stream()).then_some(inside);
        Self { body: Some(body), inside }
    }
}

impl<B: Body> Body for GatedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut own = self.project();
        let Some(mut body) = own.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let polled = match own.inside {
            Some(inside) => inside.run(|| body.as_mut().poll_frame(context)),
            None => body.as_mut().poll_frame(context),
        };
        let has_failed_or_ended = matches!(polled, Poll::Ready(None | Some(Err(_))));
        if has_failed_or_ended || (polled.is_ready() && body.is_end_stream()) {
            *own.inside = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
