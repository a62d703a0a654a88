//! A server that was measured by its network protocol.

use super::text::{self, TableDocument};
use cli::terminal::{self, TerminalObserver};
use measure::server_profiling::{
    MeasuredServer, ServerProfilingSettings, measure_server, write_server_profile,
};
use model::OperationError;
use operation::document::document;
use profile::ProfileProgress;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use workload::device::OperationCost;

#[derive(Serialize, JsonSchema)]
pub(crate) struct ServerDocument<'run> {
    /// The address of the server, and the export of NBD.
    server: String,
    /// The time of lookups of keys that are not there; null where the protocol has no keys, or after an interruption.
    operation: Option<LookupFields>,
    #[serde(flatten)]
    table: TableDocument<'run>,
}

#[derive(Serialize, JsonSchema)]
struct LookupFields {
    /// Lookup of one key, in seconds.
    request_s: f64,
    /// Each further key of a lookup, in seconds.
    key_s: f64,
}

/// True if the argument names a server, not a path: it begins with a scheme.
pub(crate) fn is_server(target: &str) -> bool {
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    })
}

/// Measures a server, prints what was measured and writes its profile.
pub(crate) fn run(
    settings: &ServerProfilingSettings,
    is_json: bool,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(ProfileProgress),
) -> Result<(), OperationError> {
    let measured = measure_server(settings, stop, progress, &TerminalObserver)?;
    let written = write_server_profile(settings, &measured, &TerminalObserver);
    if is_json {
        terminal::print(&json(&measured));
    } else {
        terminal::print_text(&text::text(&measured.measurement));
        if let Some(OperationCost { request, key }) = measured.operation {
            let line = format!("\na lookup of a missing key takes {request}, each further key {key}\n");
            terminal::print_text(&line);
        }
    }
    written
}

fn json(measured: &MeasuredServer) -> String {
    let MeasuredServer { server, plan, measurement, operation, .. } = measured;
    let operation = operation.map(|OperationCost { request, key }| LookupFields {
        request_s: request.as_secs(),
        key_s: key.as_secs(),
    });
    let table = TableDocument::new(plan, measurement, measured.warnings());
    document(&ServerDocument { server: server.clone(), operation, table })
}
