//! Python under `opentelemetry-instrument`.

use super::{HOSTS, bindings};
use std::path::Path;
use std::process::Command;

/// Returns a test program under OpenTelemetry, without export of spans.
pub(super) fn command(programs: &Path, role: &str, program: &str) -> Command {
    let mut command = Command::new(programs.join("opentelemetry-instrument"));
    command.arg(programs.join("python")).args(["-B", program]).current_dir(bindings().join("python"));
    for exporter in ["TRACES", "METRICS", "LOGS"] {
        command.env(format!("OTEL_{exporter}_EXPORTER"), "none");
    }
    command.env("OTEL_PROPAGATORS", "tracecontext,tailwright_baggage");
    command.env("OTEL_PYTHON_CONTEXT", "tailwright_context");
    command.envs([("TAILWRIGHT_ROLE", role), ("TAILWRIGHT_HOSTS", HOSTS)]);
    if role == "edge" {
        command.env("TAILWRIGHT_SLOS", "/soon=50ms,/later=5s");
    }
    command
}
