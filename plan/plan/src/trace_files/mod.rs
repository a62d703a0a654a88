//! Traces in, one trace or a summary out.

mod curves;
mod error;
mod generate;
mod hosts;
mod inspect;
mod output;
mod reader;
mod rewrite;
mod split;

pub use curves::{CurveCorner, StageCurve, TraceCurves, trace_curves};
pub use error::TraceFileError;
pub use generate::{generate_trace, on_off_process, wrong_parameter};
pub use hosts::{ServerPlace, hosts_text};
pub use inspect::{InspectedTrace, inspect_trace};
pub use output::TraceOutput;
pub use rewrite::{TraceWindow, convert_trace, merge_traces, slice_trace};
pub use split::{ClusterFacts, SplitPart, SplitTrace, check_profile, cluster_text, split_trace};
