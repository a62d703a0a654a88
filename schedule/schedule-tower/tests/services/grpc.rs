//! gRPC calls by tonic: the tag passes from client to service, and a request not admitted in time gets a
//! status.

use super::server::{assert_empties, gate, run, start_ns, until};
use bytes::{Buf, BufMut};
use gat::RequestTag;
use http::uri::PathAndQuery;
use http::{Request, Response};
use schedule_tower::{GateLayer, TagClientLayer, TagClientService, with_tag};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tower_layer::Layer;
use tower_service::Service;

/// Messages are numbers of eight bytes.
#[derive(Debug, Clone, Copy, Default)]
struct NumberCodec;

impl Codec for NumberCodec {
    type Encode = u64;
    type Decode = u64;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for NumberCodec {
    type Item = u64;
    type Error = Status;

    fn encode(&mut self, number: u64, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_u64(number);
        Ok(())
    }
}

impl Decoder for NumberCodec {
    type Item = u64;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<u64>, Status> {
        Ok((buffer.remaining() >= 8).then(|| buffer.get_u64()))
    }
}

type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// Answers with the start of the request; a call with 1 waits until released.
#[derive(Debug, Clone)]
struct StartOf(Arc<Semaphore>);

impl NamedService for StartOf {
    const NAME: &'static str = "test.StartOf";
}

impl UnaryService<u64> for StartOf {
    type Response = u64;
    type Future = Answer<tonic::Response<u64>, Status>;

    fn call(&mut self, request: tonic::Request<u64>) -> Self::Future {
        let go_on = Arc::clone(&self.0);
        Box::pin(async move {
            if *request.get_ref() == 1 {
                go_on.acquire().await.expect("it stays open").forget();
            }
            let tag = request.extensions().get::<RequestTag>();
            tag.map(|tag| tonic::Response::new(tag.start_ns)).ok_or_else(|| Status::internal("no tag"))
        })
    }
}

impl Service<Request<Body>> for StartOf {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer<Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(tonic::server::Grpc::new(NumberCodec).unary(service, request).await) })
    }
}

async fn call(channel: TagClientService<Channel>, start: u64, number: u64) -> Result<u64, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    let calls = async {
        client.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let path = PathAndQuery::from_static("/test.StartOf/Get");
        client.unary(tonic::Request::new(number), path, NumberCodec).await
    };
    let tag = RequestTag::starting_at(start_ns(start));
    with_tag(tag, calls).await.map(tonic::Response::into_inner)
}

#[test]
fn calls_of_grpc_carry_tags_and_are_refused_by_status() {
    run(async {
        let gate = gate(1, None);
        let go_on = Arc::new(Semaphore::new(0));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has an address");
        let layer = GateLayer::new(gate.clone()).wait_at_most(Duration::from_millis(20));
        let server = Server::builder().layer(layer).add_service(StartOf(Arc::clone(&go_on)));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        let channel = endpoint.connect().await.expect("the service listens");
        let channel = TagClientLayer::new("store".parse().unwrap()).to_host("store").layer(channel);
        assert_eq!(call(channel.clone(), 7, 0).await.expect("an answer"), start_ns(7));
        let held = tokio::spawn(call(channel.clone(), 8, 1));
        until(&gate, 1, 0);
        let refused = call(channel, 9, 0).await.expect_err("the place is taken");
        assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "not admitted in time"));
        go_on.add_permits(1);
        assert_eq!(held.await.expect("it does not fail").expect("an answer"), start_ns(8));
        assert_empties(&gate);
    });
}
