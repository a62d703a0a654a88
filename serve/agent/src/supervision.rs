//! The decision when to start the proxy before a server: a state machine with the clock as argument.
//!
//! A proxy that answers is adopted, however it was started: it outlives the agent, because traffic flows through it. A
//! process that lives and does not answer is left alone, because it may be starting, draining or stopped, and a second
//! one would only find its addresses taken. Only where there is neither, one is started. After an end the next start
//! waits, each time twice as long, until a proxy has run well. Nothing here ends a proxy.
//!
//! The clock is expected not to step. If it does, a wait is never longer than [`PAUSE_MAX`] from the next look.

use std::time::Duration;

/// Wait before the start that follows the end of a proxy that ran well.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// Longest wait before a start.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time of answering after which earlier ends are forgotten.
const RUNS_WELL: Duration = Duration::from_secs(10);
/// Time without an answer after which a living process is a warning.
const ANSWER_MAX: Duration = Duration::from_secs(20);
/// Interval between looks at a proxy that runs.
const LOOK: Duration = Duration::from_millis(500);
/// Interval between looks at a process that does not answer yet.
const LOOK_AT_START: Duration = Duration::from_millis(50);

/// The proxy before a server, as its host shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxySight {
    /// It answers at its control socket.
    Answers,
    /// It does not answer, and a process that an agent started for this server lives.
    Silent,
    /// Neither; with the reason for the end of the latest process, where that is known.
    Absent(Option<String>),
}

/// A change that the log is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProxyNews {
    /// It answers, and this agent did not start it.
    Adopted,
    /// It answers after its start.
    Started,
    /// It was started by this agent, and answers after a time in which it did not.
    AnswersAgain,
    /// It has ended; the next start comes after this time.
    Ended { reason: String, pause: Duration },
    /// It lives and has not answered for so long that an operator should look.
    Unanswering,
}

/// The next thing to do for a proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyStep {
    /// True to start a process now. The next look tells how that went.
    pub starts: bool,
    pub news: Option<ProxyNews>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the first look.
    Unknown,
    /// A process was started or found that does not answer.
    Silent {
        since: Duration,
        has_answered: bool,
    },
    Answers {
        since: Duration,
    },
    /// No process; the next start is at `until`.
    Waits {
        until: Duration,
    },
}

/// The supervision of the proxy before one server.
#[derive(Debug, Clone)]
pub struct SupervisedProxy {
    server: String,
    phase: Phase,
    /// True if the living process was started by this agent.
    is_own: bool,
    /// Number of ends since a proxy last ran well.
    ends: u32,
    warning: Option<String>,
}

impl SupervisedProxy {
    pub fn new(server: &str) -> Self {
        Self { server: server.to_owned(), phase: Phase::Unknown, is_own: false, ends: 0, warning: None }
    }

    /// Returns the sentence that operators are to read, until the proxy has run well again.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns the time from `now` after which to look again.
    pub fn look_after(&self, now: Duration) -> Duration {
        match self.phase {
            Phase::Unknown => Duration::ZERO,
            Phase::Silent { since, .. } if now.saturating_sub(since) < ANSWER_MAX => LOOK_AT_START,
            Phase::Silent { .. } | Phase::Answers { .. } => LOOK,
            Phase::Waits { until } => until.saturating_sub(now).min(LOOK),
        }
    }

    /// Decides by what is seen at `now`.
    pub fn look(&mut self, now: Duration, sight: &ProxySight) -> ProxyStep {
        match sight {
            ProxySight::Answers => self.answers(now),
            ProxySight::Silent => self.is_silent(now),
            ProxySight::Absent(reason) => self.is_absent(now, reason.as_deref()),
        }
    }

    fn answers(&mut self, now: Duration) -> ProxyStep {
        let Phase::Answers { since } = self.phase else {
            // Another process may have been faster than the one that this agent was about to start.
            let was_started = self.is_own && matches!(self.phase, Phase::Silent { has_answered: false, .. });
            self.is_own = self.is_own && matches!(self.phase, Phase::Silent { .. });
            self.phase = Phase::Answers { since: now };
            let news = match (was_started, self.is_own) {
                (true, _) => ProxyNews::Started,
                (false, true) => ProxyNews::AnswersAgain,
                (false, false) => ProxyNews::Adopted,
            };
            return ProxyStep { starts: false, news: Some(news) };
        };
        // A clock that went back begins anew.
        let since = since.min(now);
        self.phase = Phase::Answers { since };
        if now - since >= RUNS_WELL {
            self.ends = 0;
            self.warning = None;
        }
        ProxyStep::default()
    }

    fn is_silent(&mut self, now: Duration) -> ProxyStep {
        let Phase::Silent { since, has_answered } = self.phase else {
            let has_answered = matches!(self.phase, Phase::Answers { .. });
            self.is_own = self.is_own && has_answered;
            self.phase = Phase::Silent { since: now, has_answered };
            return ProxyStep::default();
        };
        let since = since.min(now);
        self.phase = Phase::Silent { since, has_answered };
        let warning = format!(
            "the proxy before {} runs and does not answer; it is left alone, and no other is started",
            self.server
        );
        if now - since < ANSWER_MAX || self.warning.as_ref() == Some(&warning) {
            return ProxyStep::default();
        }
        self.warning = Some(warning);
        ProxyStep { starts: false, news: Some(ProxyNews::Unanswering) }
    }

    fn is_absent(&mut self, now: Duration, reason: Option<&str>) -> ProxyStep {
        match self.phase {
            Phase::Unknown => self.start(now),
            Phase::Silent { has_answered: false, .. } => self.ended(now, "cannot be started", reason),
            Phase::Silent { .. } | Phase::Answers { .. } => {
                self.ended(now, "has ended and is started again", reason)
            }
            Phase::Waits { until } => {
                let until = until.min(now + PAUSE_MAX);
                self.phase = Phase::Waits { until };
                if now < until { ProxyStep::default() } else { self.start(now) }
            }
        }
    }

    fn start(&mut self, now: Duration) -> ProxyStep {
        self.is_own = true;
        self.phase = Phase::Silent { since: now, has_answered: false };
        ProxyStep { starts: true, news: None }
    }

    fn ended(&mut self, now: Duration, what: &str, reason: Option<&str>) -> ProxyStep {
        let pause = PAUSE_MIN.saturating_mul(1 << self.ends.min(16)).min(PAUSE_MAX);
        self.ends = self.ends.saturating_add(1);
        self.is_own = false;
        self.phase = Phase::Waits { until: now + pause };
        let reason = reason.unwrap_or("its process is gone").to_owned();
        self.warning = Some(format!("the proxy before {} {what}: {reason}", self.server));
        ProxyStep { starts: false, news: Some(ProxyNews::Ended { reason, pause }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn absent(reason: &str) -> ProxySight {
        ProxySight::Absent(Some(reason.to_owned()))
    }

    #[test]
    fn one_that_answers_is_adopted_and_never_doubled() {
        let mut proxy = SupervisedProxy::new("cache-1");
        let found = proxy.look(S, &ProxySight::Answers);
        assert_eq!(found, ProxyStep { starts: false, news: Some(ProxyNews::Adopted) });
        assert_eq!(proxy.look(2 * S, &ProxySight::Answers), ProxyStep::default());
        // It stops to answer, such as by SIGSTOP, and lives.
        for second in 3..60 {
            assert!(!proxy.look(second * S, &ProxySight::Silent).starts);
        }
        assert!(proxy.warning().expect("one").contains("left alone"));
        proxy.look(60 * S, &ProxySight::Answers);
        proxy.look(71 * S, &ProxySight::Answers);
        assert_eq!(proxy.warning(), None);
    }

    #[test]
    fn starts_wait_longer_and_longer_until_one_ran_well() {
        let mut proxy = SupervisedProxy::new("cache-1");
        assert!(proxy.look(S, &ProxySight::Absent(None)).starts);
        let mut now = S;
        let mut pauses = Vec::new();
        for _ in 0..11 {
            let Some(ProxyNews::Ended { pause, .. }) = proxy.look(now, &absent("port taken")).news else {
                panic!("it has ended")
            };
            pauses.push(pause.as_millis());
            assert!(!proxy.look(now + pause / 2, &absent("port taken")).starts);
            now += pause;
            assert!(proxy.look(now, &absent("port taken")).starts);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]);
        let warning = "the proxy before cache-1 cannot be started: port taken";
        assert_eq!(proxy.warning(), Some(warning));
        assert_eq!(proxy.look(now, &ProxySight::Answers).news, Some(ProxyNews::Started));
        proxy.look(now + 9 * S, &ProxySight::Answers);
        assert_eq!(proxy.warning(), Some(warning), "nine seconds are not yet well");
        proxy.look(now + 10 * S, &ProxySight::Answers);
        assert_eq!(proxy.warning(), None);
        let ended = proxy.look(now + 11 * S, &absent("signal: 9"));
        assert!(matches!(ended.news, Some(ProxyNews::Ended { pause: PAUSE_MIN, .. })), "{ended:?}");
        assert!(proxy.warning().expect("one").contains("has ended and is started again: signal: 9"));
    }

    #[test]
    fn a_clock_that_goes_back_delays_no_start_by_more_than_the_longest_pause() {
        let mut proxy = SupervisedProxy::new("cache-1");
        proxy.look(1000 * S, &ProxySight::Absent(None));
        proxy.look(1000 * S, &absent("x"));
        assert!(!proxy.look(S, &ProxySight::Absent(None)).starts);
        assert!(proxy.look(S + PAUSE_MAX, &ProxySight::Absent(None)).starts);
    }
}
