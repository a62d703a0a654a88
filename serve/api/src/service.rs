//! The service: a listener, and its end by a signal.

use crate::cluster::Cluster;
use crate::routes::routes;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;

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
        axum::serve(listener, app).with_graceful_shutdown(ends).await
    });
    // Requests that wait for news do not hold up the end.
    runtime.shutdown_background();
    result
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
