//! A future response: the request waits for its turn, then for the inner service to be ready, and then
//! for its answer, whose body takes over the permit.

use crate::gate_rules::GateRules;
use crate::gated_body::{GatedBody, RequestInside};
use crate::overload::{is_grpc, refusal_response};
use crate::tag_headers;
use gat::{RequestTag, TagCodec};
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use schedule::{AsyncPermit, EntryFuture, EntryRefusal};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tower_service::Service;

pin_project! {
    /// The future response of a [`GateService`](crate::GateService). Dropping it abandons the request in
    /// any stage.
    #[must_use = "nothing happens before it is polled"]
    pub struct GatedResponse<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        stage: ResponseStage<S, Request<B>, S::Future>,
        tag: RequestTag,
        rules: Arc<GateRules>,
    }
}

pin_project! {
    #[project = ResponseStageProjection]
    enum ResponseStage<S, Q, F> {
        Entering { entry: EntryFuture, held: Option<(S, Q)> },
        Preparing { service: S, held: Option<(Q, RequestInside)> },
        // The future is dropped before the permit.
        Working { #[pin] future: F, inside: Option<RequestInside> },
    }
}

/// End of a stage.
enum StageEnd<N, E> {
    Next(N),
    Over(E),
}

/// Panic message of futures polled after completion.
const POLLED_TO_ITS_END: &str = "nobody polls it after its end";

impl<S, B> GatedResponse<S, B>
where
    S: Service<Request<B>>,
{
    pub(crate) fn new(
        entry: EntryFuture,
        service: S,
        request: Request<B>,
        tag: RequestTag,
        rules: Arc<GateRules>,
    ) -> Self {
        Self { stage: ResponseStage::Entering { entry, held: Some((service, request)) }, tag, rules }
    }
}

impl<S, B, R> Future for GatedResponse<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body,
{
    type Output = Result<Response<GatedBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut own = self.project();
        loop {
            let end = match own.stage.as_mut().project() {
                ResponseStageProjection::Entering { entry, held } => {
                    let entered = ready!(Pin::new(entry).poll(context));
                    let (service, request) = held.take().expect(POLLED_TO_ITS_END);
                    after_entry(entered, service, request, *own.tag, own.rules)
                }
                ResponseStageProjection::Preparing { service, held } => {
                    match ready!(service.poll_ready(context)) {
                        Err(error) => StageEnd::Over(Err(error)),
                        Ok(()) => {
                            let (request, mut inside) = held.take().expect(POLLED_TO_ITS_END);
                            let future = inside.run(|| service.call(request));
                            StageEnd::Next(ResponseStage::Working { future, inside: Some(inside) })
                        }
                    }
                }
                ResponseStageProjection::Working { future, inside } => {
                    let running = inside.as_mut().expect(POLLED_TO_ITS_END);
                    let result = ready!(running.run(|| future.poll(context)));
                    let inside = inside.take().expect(POLLED_TO_ITS_END);
                    StageEnd::Over(result.map(|response| outgoing(response, inside, &own.rules.codec)))
                }
            };
            match end {
                StageEnd::Next(stage) => own.stage.set(stage),
                StageEnd::Over(result) => return Poll::Ready(result),
            }
        }
    }
}

/// Returns the next stage after the admission or refusal of a request.
#[expect(clippy::type_complexity, reason = "a stage of the future above, or what it ends with")]
fn after_entry<S, B, R>(
    entered: Result<AsyncPermit, EntryRefusal>,
    service: S,
    mut request: Request<B>,
    tag: RequestTag,
    rules: &GateRules,
) -> StageEnd<ResponseStage<S, Request<B>, S::Future>, Result<Response<GatedBody<R>>, S::Error>>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    match entered {
        Err(refusal) => StageEnd::Over(Ok(refusal_response(refusal, is_grpc(request.headers())))),
        Ok(permit) => {
            if rules.lends_permit() {
                request.extensions_mut().insert(permit.handle());
            }
            let held = Some((request, RequestInside { permit, tag }));
            StageEnd::Next(ResponseStage::Preparing { service, held })
        }
    }
}

/// Prepares the outgoing response: without tags, and with the permit until its body has ended.
fn outgoing<R: Body>(
    response: Response<R>,
    inside: RequestInside,
    codec: &TagCodec,
) -> Response<GatedBody<R>> {
    let mut response = response.map(|body| GatedBody::new(body, inside));
    tag_headers::strip(codec, response.headers_mut());
    response
}
