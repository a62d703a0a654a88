//! How observations are judged.

use clap::Args;
use cli::quantities::confidence;
use measure::verification::JudgementSettings;
use std::path::PathBuf;
use units::Nanos;

/// How observations are judged.
#[derive(Debug, Clone, Args)]
pub(crate) struct JudgementArgs {
    /// An SLO, such as 'mail=99.9% < 50ms' or 'mail=99% of reads < 5ms'. All that are given for a workload replace its SLOs
    /// in the policy.
    #[arg(long, value_name = "NAME=SLO")]
    slo: Vec<String>,
    /// Device profile of the storage, by which limits there are judged; one per profile that the policy names, or one
    /// for all.
    #[arg(long, value_name = "PROFILE.json")]
    storage: Vec<PathBuf>,
    /// Where servers and clients are: they are compared with what the bounds of the policy assume.
    #[arg(long, value_name = "HOSTS.toml")]
    hosts: Option<PathBuf>,
    /// Accept servers that are used in another way than the policy's bounds assume: the answer then says first that bounds do
    /// not apply.
    #[arg(long)]
    without_bounds: bool,
    /// How sure each verdict is to be, from 0.5 to below 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence)]
    confidence: f64,
    /// Take the percentiles of SLOs also in windows of this length.
    #[arg(long, value_name = "TIME", default_value = "3min", value_parser = window)]
    window: Nanos,
}

fn window(text: &str) -> Result<Nanos, String> {
    let expected = || format!("expected a time above zero, such as 3min, found '{text}'");
    text.parse().ok().filter(|length| *length > Nanos::ZERO).ok_or_else(expected)
}

impl JudgementArgs {
    /// Whether device profiles are given.
    pub(crate) fn has_storage(&self) -> bool {
        !self.storage.is_empty()
    }

    /// The settings that these flags ask for.
    pub(crate) fn settings(&self) -> JudgementSettings {
        JudgementSettings {
            slos: self.slo.clone(),
            storage: self.storage.clone(),
            hosts: self.hosts.clone(),
            without_bounds: self.without_bounds,
            confidence: self.confidence,
            window: self.window,
        }
    }
}
