//! The service: a listener, and its end by a signal.

use crate::cluster::Cluster;
use crate::limits::UNREAD_MAX;
use crate::routes::routes;
use axum::serve::{Listener, ListenerExt as _};
use rustix::net::sockopt::set_tcp_user_timeout;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Serves a cluster at an address until a signal (SIGTERM, SIGINT). `listening` is called with the address in use.
///
/// # Errors
/// If the address cannot be used, or the runtime cannot be started.
pub fn serve(
    cluster: Arc<Cluster>,
    listen: SocketAddr,
    listening: impl FnOnce(SocketAddr),
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        listening(listener.local_addr()?);
        let app = routes(Arc::clone(&cluster));
        let stopped = termination()?;
        let ends = async move {
            stopped.await;
            cluster.stop();
        };
        axum::serve(with_timeout(listener, UNREAD_MAX), app).with_graceful_shutdown(ends).await
    });
    // Requests that wait for news do not hold up the end.
    runtime.shutdown_background();
    result
}

/// Closes connections whose clients leave what was sent to them unread for this long: the kernel drops them, whatever
/// the connection waits for. A client that reads slowly thus holds the buffers of one connection and no more.
fn with_timeout(listener: TcpListener, unread: Duration) -> impl Listener<Io = TcpStream, Addr = SocketAddr> {
    let timeout = u32::try_from(unread.as_millis()).unwrap_or(u32::MAX);
    listener.tap_io(move |connection| {
        // On a kernel without the option a connection lives as long as its client.
        let _ = set_tcp_user_timeout(&*connection, timeout);
    })
}

/// Completes with the first signal to end.
fn termination() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
