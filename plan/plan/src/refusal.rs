//! Refused workloads: why each has no place, in a sentence that text, pages, documents and policies share.

use crate::cluster::stored;
use model::{Slo, Stage};
use operation::text::{amount, percent, time};
use placement::admission::{AdmissionRefusal, Breach, BreachCause};
use placement::{ExcludedServers, FitRefusal, IdleTerms, SuggestedChange};
use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteRate, Bytes, Percentile, plural};

/// A workload without a place.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusedWorkload {
    /// Index into the workloads of the problem.
    #[serde(skip)]
    pub index: usize,
    /// The workload that is not admitted.
    pub workload: String,
    #[serde(skip)]
    pub slo: Slo,
    /// Why, and what would admit it.
    pub reason: String,
    /// Changes each of which was tried and admits the workload, the cheapest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

/// A change that admits a workload. Its server is the one that it joins; null for an empty one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum Remedy {
    /// Other inputs of a class in the cluster file.
    Inputs {
        class: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        best_effort_request_bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        packet_bytes: Option<u64>,
        server: Option<String>,
    },
    /// A longer latency in its SLO, seconds.
    Slo {
        slo_s: f64,
        /// Factor on the latency of each of its SLOs, if it has several; `slo_s` is then that of the first.
        #[serde(skip_serializing_if = "Option::is_none")]
        factor: Option<f64>,
        server: Option<String>,
    },
    /// Its load multiplied by this factor.
    Load { factor: f64, server: Option<String> },
    /// One rule of the cluster file less on where it may go: `on`, `apart` or `together`.
    Rule { rule: String, server: Option<String> },
    /// Fewer bytes.
    Size { size_bytes: u64, server: Option<String> },
    /// Faster links of its client host, bytes per second in each direction.
    HostNetwork {
        host: String,
        /// Their capacity.
        network_bytes_per_s: f64,
    },
    /// So many more servers of a class.
    Servers {
        class: String,
        count: usize,
        /// Their price together, if servers have prices.
        #[serde(skip_serializing_if = "Option::is_none")]
        price: Option<f64>,
    },
}

impl Remedy {
    /// Returns the change with the names of servers.
    pub(crate) fn new(change: &SuggestedChange, name: &dyn Fn(usize) -> String) -> Self {
        match change {
            SuggestedChange::Inputs { inputs, class, server } => Self::Inputs {
                class: class.clone(),
                best_effort_request_bytes: inputs.best_effort_request,
                packet_bytes: inputs.packet,
                server: server.map(name),
            },
            SuggestedChange::Latency { slo, factor, server } => {
                Self::Slo { slo_s: *slo, factor: *factor, server: server.map(name) }
            }
            SuggestedChange::Load { factor, server } => {
                Self::Load { factor: *factor, server: server.map(name) }
            }
            SuggestedChange::Rule { kind, server } => {
                Self::Rule { rule: kind.name().to_owned(), server: server.map(name) }
            }
            SuggestedChange::Size { bytes, server } => {
                Self::Size { size_bytes: *bytes, server: server.map(name) }
            }
            SuggestedChange::MoreServers { class, count, price } => {
                Self::Servers { class: class.clone(), count: *count, price: *price }
            }
        }
    }

    /// Says the change, for an SLO of this percentile.
    fn words(&self, percentile: Percentile) -> String {
        let at = |server: &Option<String>| match server {
            None => "on an empty server".to_owned(),
            Some(server) => format!("on {server}"),
        };
        match self {
            Self::Inputs { class, best_effort_request_bytes, packet_bytes, server } => {
                let request = best_effort_request_bytes
                    .map(|size| format!("best_effort_request = \"{}\"", Bytes(size)));
                let packet = packet_bytes.map(|size| format!("packet = \"{size}B\""));
                let inputs: Vec<String> = request.into_iter().chain(packet).collect();
                format!("{} of class '{class}' ({})", inputs.join(" and "), at(server))
            }
            Self::Slo { factor: Some(factor), server, .. } => {
                format!("SLOs {} times as long ({})", amount(*factor), at(server))
            }
            Self::Slo { slo_s, server, .. } => {
                format!("an SLO of {percentile} < {} ({})", time(*slo_s), at(server))
            }
            Self::Load { factor, server } => format!("{} of its load ({})", percent(*factor), at(server)),
            Self::Rule { rule, server } => format!("no `{}` ({})", rule, at(server)),
            Self::Size { size_bytes, server } => {
                format!("a size of {} ({})", stored(*size_bytes), at(server))
            }
            Self::HostNetwork { host, network_bytes_per_s } => {
                format!("links of {} at host '{host}'", rate(*network_bytes_per_s))
            }
            Self::Servers { class, count, price } => {
                let price = price.map_or_else(String::new, |price| format!(" for {}", amount(price)));
                more_servers(class, *count) + &price
            }
        }
    }
}

fn rate(bytes_per_s: f64) -> String {
    ByteRate::from_bytes_per_sec(bytes_per_s)
        .map_or_else(|| format!("{bytes_per_s:e}B/s"), |rate| rate.to_string())
}

/// Says how many more servers of a class there should be.
pub(crate) fn more_servers(class: &str, count: usize) -> String {
    match count {
        1 => format!("one more server of class '{class}'"),
        count => format!("{count} more servers of class '{class}'"),
    }
}

/// Answer of a planner that has no place for a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Refusal<'a> {
    /// No rate limits keep all SLOs.
    Limits {
        /// Why it does not fit on an empty server; `None` when it would, but no server is left.
        alone: Option<FitRefusal>,
        /// Percentile of its SLO.
        percentile: Percentile,
        /// Changes that would admit it.
        changes: &'a [SuggestedChange],
        /// The servers that rules exclude, by rule; empty if none are.
        excluded: &'a [String],
    },
    /// The links of its client host cannot serve it beside the workloads that come before it.
    ClientHost {
        /// The name of the host.
        host: &'a str,
        /// True if they cannot serve it without the others, either.
        alone: bool,
        /// Why no limits serve it there.
        why: FitRefusal,
        /// Capacity that would be enough, bytes per second, if one was found.
        sufficient: Option<f64>,
    },
    /// A predicted latency is above an SLO.
    Prediction(&'a AdmissionRefusal),
}

/// Says why a workload has no place on `count` servers and what would give it one; `name` names a server.
pub(crate) fn describe_refusal(
    refusal: &Refusal<'_>,
    count: usize,
    name: &dyn Fn(usize) -> String,
) -> String {
    match refusal {
        Refusal::Limits { alone: None, percentile, changes, excluded } if !excluded.is_empty() => {
            let servers = plural(count, "server");
            format!("of {servers}, {}{}", excluded.join("; "), advice(changes, *percentile, name))
        }
        Refusal::Limits { alone: None, percentile, changes, .. } => {
            let full = match count {
                1 => "the only one is in use and has no room for it".to_owned(),
                count => format!("all {count} are in use and none has room for it"),
            };
            format!("it would fit on an empty server, but {full}{}", advice(changes, *percentile, name))
        }
        Refusal::Limits { alone: Some(blocked), percentile, changes, excluded } => {
            let where_else = match excluded {
                [] => String::new(),
                rules => format!("; of {}, {}", plural(count, "server"), rules.join("; ")),
            };
            let advice = advice(changes, *percentile, name);
            format!("even alone on a server, {}{where_else}{advice}", blocking(blocked))
        }
        Refusal::ClientHost { host, alone, why, sufficient } => {
            let enough = sufficient.map_or_else(String::new, |network| {
                format!("; links of {} would be enough there", rate(network))
            });
            let beside = if *alone { "" } else { " beside the workloads that come before it" };
            format!(
                "the links of its host '{host}' cannot serve it{beside}: {}{enough}",
                blocking_on_links(why, host)
            )
        }
        Refusal::Prediction(AdmissionRefusal::Alone(breach)) => {
            format!("even alone on a server, {}", describe_breach(breach))
        }
        Refusal::Prediction(refusal) => match refusal.closest() {
            None => refusal.to_string(),
            Some((_, breach)) if count == 1 => describe_breach(breach),
            Some((server, breach)) => format!("closest on {}: {}", name(server), describe_breach(breach)),
        },
    }
}

/// Says for each rule how many servers it keeps a workload from; empty if no rule keeps it from any.
pub(crate) fn excluded_words(excluded: &ExcludedServers, workload: &dyn Fn(usize) -> String) -> Vec<String> {
    const NAMED_MAX: usize = 3;
    let verb = |count: usize, one: &str, several: &str| {
        format!("{count} {}", if count == 1 { one } else { several })
    };
    let name = |other: &usize| format!("'{}'", workload(*other));
    let mut words = Vec::new();
    if excluded.elsewhere > 0 {
        words.push(verb(excluded.elsewhere, "is none that it may be on", "are none that it may be on"));
    }
    if excluded.apart > 0 {
        let mut names: Vec<String> = excluded.apart_from.iter().take(NAMED_MAX).map(name).collect();
        let more = excluded.apart_from.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        let have = verb(
            excluded.apart,
            "has or shares its failure domain with",
            "have or share their failure domain with",
        );
        words.push(format!("{have} {}, from which it is apart", names.join(", ")));
    }
    if let Some(other) = &excluded.together_with {
        let lack = verb(excluded.together, "does not have", "do not have");
        words.push(format!("{lack} {}, with which it is together", name(other)));
    }
    if excluded.bytes > 0 {
        let have = verb(excluded.bytes, "has too few bytes left", "have too few bytes left");
        words.push(format!("{have} (at most {})", stored(excluded.bytes_left)));
    }
    if !words.is_empty() && excluded.others() > 0 {
        words.push(verb(excluded.others(), "has no room for its SLO", "have no room for its SLO"));
    }
    words
}

fn blocking(blocked: &FitRefusal) -> String {
    match blocked {
        FitRefusal::Capacity { stage, ratio } => {
            format!("its SLO takes a rate of {} of what {stage} can do", percent(*ratio))
        }
        FitRefusal::Latency { slo, ratio, stage } => format!(
            "its bound would be {}, above its SLO of {}; most of it is {stage}",
            time(slo * ratio),
            time(*slo)
        ),
        FitRefusal::NoLimits => "no limits satisfy the linear program".to_owned(),
        FitRefusal::BaseLatency { slo, terms } => {
            let IdleTerms { storage, links, own, begun } = *terms;
            let device = begun[Stage::Storage];
            let parts = [
                ("requests begun at the device", device),
                ("packets and bursts begun on the links", begun[Stage::NetworkIn] + begun[Stage::NetworkOut]),
                ("the links of its host", links),
                ("the idle storage", storage),
                ("its own service and the proxy", own),
            ];
            let counted = parts.iter().filter(|(_, seconds)| *seconds > 0.0);
            let parts: Vec<String> =
                counted.map(|(what, seconds)| format!("{what} {}", time(*seconds))).collect();
            format!(
                "an idle server and the work that it may have begun take up to {} ({}), which leaves nothing of its SLO \
                 of {}",
                time(terms.total()),
                parts.join(", "),
                time(*slo)
            )
        }
    }
}

/// Says why the links of a host cannot serve a workload, whose latency is then what its SLO leaves for them.
fn blocking_on_links(blocked: &FitRefusal, host: &str) -> String {
    let link = |stage: Stage| match stage {
        Stage::NetworkOut => format!("the link into '{host}'"),
        Stage::NetworkIn | Stage::Storage => format!("the link out of '{host}'"),
    };
    match blocked {
        FitRefusal::Capacity { stage, ratio } => {
            format!("its SLO takes a rate of {} of what {} can do", percent(*ratio), link(*stage))
        }
        FitRefusal::Latency { slo, ratio, stage } if ratio.is_finite() => format!(
            "its requests would take up to {} there, and its SLO leaves {} for that; most of it is {}",
            time(slo * ratio),
            time(*slo),
            link(*stage)
        ),
        FitRefusal::Latency { stage, .. } => {
            format!("others keep {} from it for longer than its limit takes", link(*stage))
        }
        FitRefusal::NoLimits => "no limits satisfy the linear program".to_owned(),
        FitRefusal::BaseLatency { slo, terms } => format!(
            "packets and bursts that they may have begun take up to {}, and its SLO leaves {} for that",
            time(terms.total()),
            time(*slo)
        ),
    }
}

fn describe_breach(breach: &Breach) -> String {
    let name = &breach.workload;
    let who = if breach.newcomer { name.clone() } else { format!("{name} (already admitted)") };
    let mut text = match breach.cause {
        BreachCause::Latency { predicted, allowed } => format!(
            "{who} would have {}, {} above its {}",
            time(predicted),
            percent(predicted / allowed - 1.0),
            breach.slo
        ),
        BreachCause::Undefined(undefined) => format!("{who} would have no guarantee: {undefined}"),
    };
    match breach.others {
        0 => {}
        1 => text.push_str("; another one misses its SLO, too"),
        others => text.push_str(&format!("; {others} others miss their SLOs, too")),
    }
    text
}

/// Says what would admit a workload; empty if that is not known.
fn advice(changes: &[SuggestedChange], percentile: Percentile, name: &dyn Fn(usize) -> String) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let ways: Vec<String> =
        changes.iter().map(|change| Remedy::new(change, name).words(percentile)).collect();
    format!("; it would be admitted with {}", ways.join(", or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::PerStage;

    #[test]
    fn every_reason_has_its_numbers() {
        for (blocked, text) in [
            (
                FitRefusal::Capacity { stage: Stage::Storage, ratio: 1.25 },
                "its SLO takes a rate of 125.0% of what storage can do",
            ),
            (
                FitRefusal::Latency { slo: 0.1, ratio: 1.5, stage: Stage::NetworkOut },
                "its bound would be 150ms, above its SLO of 100ms; most of it is network-out",
            ),
            (
                FitRefusal::BaseLatency {
                    slo: 0.001,
                    terms: IdleTerms {
                        storage: 0.0005,
                        links: 0.0,
                        own: 0.0,
                        begun: PerStage::from_fn(
                            |stage| if stage == Stage::Storage { 0.001 } else { 0.00025 },
                        ),
                    },
                },
                "an idle server and the work that it may have begun take up to 2ms (requests begun at the device 1ms, packets \
                 and bursts begun on the links 500us, the idle storage 500us), which leaves nothing of its SLO of 1ms",
            ),
        ] {
            assert_eq!(blocking(&blocked), text);
        }
    }
}
