//! The service: a listener, and its end by a signal.

use crate::cluster::Cluster;
use crate::limits::{AGENT_LOOK, CERTIFICATE_LOOK, UNREAD_MAX};
use crate::operations::routes;
use crate::tls::{CertificateNews, Tls};
use crate::tls_stream::TlsListener;
use crate::uploads::forget_uploads;
use crate::viewer::FORWARDED_PROTO;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::middleware::map_request;
use axum::serve::{Listener, ListenerExt as _};
use rustix::net::sockopt::set_tcp_user_timeout;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpListener, TcpStream};

/// News of the service for its operator.
#[derive(Debug)]
pub enum ServiceNews {
    /// It accepts connections at this address.
    Listening(SocketAddr),
    Certificate(CertificateNews),
}

/// Settings of the service.
#[derive(Debug)]
pub struct ServiceSettings {
    pub listen: SocketAddr,
    /// Identity of the service; without one it speaks HTTP without TLS.
    pub tls: Option<Tls>,
    /// Time without a report after which an agent is silent.
    pub silence_max: Duration,
}

/// Serves a cluster until a signal (SIGTERM, SIGINT).
///
/// # Errors
/// If the address cannot be used, or the runtime cannot be started.
pub fn serve(
    cluster: Arc<Cluster>,
    settings: ServiceSettings,
    tell: impl Fn(ServiceNews) + Send + Sync + 'static,
) -> std::io::Result<()> {
    let ServiceSettings { listen, tls, silence_max } = settings;
    forget_uploads(cluster.folder());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        tell(ServiceNews::Listening(listener.local_addr()?));
        let app = routes(Arc::clone(&cluster));
        let stopped = termination()?;
        tokio::spawn(watch_agents(Arc::clone(&cluster), silence_max));
        let watched = Arc::clone(&cluster);
        let ends = async move {
            stopped.await;
            cluster.stop();
        };
        let listener = with_timeout(listener, UNREAD_MAX);
        let Some(tls) = tls.map(Arc::new) else {
            watched.note_certificate(None);
            return axum::serve(listener, app).with_graceful_shutdown(ends).await;
        };
        tokio::spawn(keep_certificate(watched, Arc::clone(&tls), tell));
        let app = app.layer(map_request(mark_secure));
        axum::serve(TlsListener::new(listener, tls), app).with_graceful_shutdown(ends).await
    });
    // Requests that wait for news do not hold up the end.
    runtime.shutdown_background();
    result
}

/// Marks a request as proxies with TLS do.
async fn mark_secure(mut request: Request) -> Request {
    request.headers_mut().insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
    request
}

/// Looks at the files of the certificate from time to time, for as long as the service runs.
async fn keep_certificate(cluster: Arc<Cluster>, tls: Arc<Tls>, tell: impl Fn(ServiceNews)) {
    let mut looks = tokio::time::interval(CERTIFICATE_LOOK);
    loop {
        looks.tick().await;
        let looked = Arc::clone(&tls);
        let told = Arc::clone(&cluster);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let news = tokio::task::spawn_blocking(move || {
            let news = looked.look(now);
            told.note_certificate(Some((looked.end(), looked.complaint(now))));
            news
        });
        let news = news.await.unwrap_or_default();
        news.into_iter().for_each(|news| tell(ServiceNews::Certificate(news)));
    }
}

/// Looks from time to time for agents that do not report, for as long as the service runs.
async fn watch_agents(cluster: Arc<Cluster>, silence_max: Duration) {
    let mut looks = tokio::time::interval(AGENT_LOOK.min(silence_max / 4).max(Duration::from_millis(10)));
    loop {
        looks.tick().await;
        let watched = Arc::clone(&cluster);
        let _ = tokio::task::spawn_blocking(move || watched.note_silence(silence_max)).await;
    }
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
