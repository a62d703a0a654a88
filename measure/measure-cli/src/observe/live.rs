//! What `tailwright observe` shows while it observes, and where scrapers read it.

use crate::observe::live_page::{LiveFrame, line, page};
use clap::ValueEnum;
use cli::interrupt;
use cli::live_screen::LiveScreen;
use cli::terminal::{Talk, talk};
use measure::observation::{LiveView, ServerWatcher};
use std::io::stderr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// When a running observation is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiveArg {
    /// As a page, if the standard error is a terminal in whose foreground the program is.
    Auto,
    /// As a page or, without a terminal, as a line each second.
    Always,
    /// Neither a page nor lines.
    Never,
}

/// How a running observation is shown.
#[derive(Debug)]
enum LiveForm {
    Page(LiveScreen),
    Lines,
    Nothing,
}

/// Shows a running observation on the standard error.
#[derive(Debug)]
pub(crate) struct LiveTerminal {
    form: LiveForm,
    subject: String,
    share: Option<String>,
    /// Said when nothing is missed any more and no page is shown.
    beginning: String,
    ends_with_server: bool,
    /// CPU time of this process when it was last looked at, in nanoseconds.
    process_cpu_ns: Option<u64>,
    /// CPU time of the thread that joins events when it began, and when it had ended, in nanoseconds.
    joining: (u64, u64),
}

impl LiveArg {
    /// Whether there is a page to show.
    pub(crate) fn has_page(self) -> bool {
        self != Self::Never && machine::terminal::is_foreground(stderr())
    }

    /// A flag that the first Ctrl-C, SIGTERM or SIGHUP sets; the second one ends the program. With a page, the terminal is
    /// as it was before the program ends or stops.
    pub(crate) fn stop(self) -> Arc<AtomicBool> {
        if self.has_page() { interrupt::stop_with_screen() } else { interrupt::stop_on_termination() }
    }
}

impl LiveTerminal {
    /// Shows what is told of `subject`, of which a `share` is observed; `beginning` is said where no page is shown.
    pub(crate) fn new(
        live: LiveArg,
        (subject, share): (String, Option<String>),
        beginning: String,
        ends_with_server: bool,
    ) -> Self {
        let form = match live {
            _ if live.has_page() => LiveForm::Page(LiveScreen::begin()),
            LiveArg::Always => LiveForm::Lines,
            LiveArg::Auto | LiveArg::Never => LiveForm::Nothing,
        };
        Self { form, subject, share, beginning, ends_with_server, process_cpu_ns: None, joining: (0, 0) }
    }

    /// CPU time of the thread that joined events, in nanoseconds; when the observation has ended.
    pub(crate) fn joining_ns(&self) -> u64 {
        let (began, ended) = self.joining;
        ended.saturating_sub(began)
    }
}

impl ServerWatcher for LiveTerminal {
    fn attached(&mut self) {
        talk(Talk::Plain, &self.beginning);
        self.joining.0 = machine::cpu_time::of_thread();
    }

    fn wants_refresh(&self) -> bool {
        !matches!(self.form, LiveForm::Nothing)
    }

    fn refresh(&mut self, view: &LiveView<'_>) {
        let before = self.process_cpu_ns.replace(view.process_cpu_ns);
        let cpu_share = before.map(|before| view.process_cpu_ns.saturating_sub(before) as f64 / 1e9);
        match &self.form {
            LiveForm::Page(screen) => {
                let size =
                    machine::terminal::size(stderr()).unwrap_or(machine::terminal::TerminalSize::USUAL);
                let frame = LiveFrame { subject: self.subject.clone(), share: self.share.clone(), cpu_share };
                screen.show(&page(&frame, view, size));
            }
            LiveForm::Lines => talk(Talk::Plain, line(view)),
            LiveForm::Nothing => {}
        }
    }

    fn ended(&mut self) {
        self.joining.1 = machine::cpu_time::of_thread();
        self.form = LiveForm::Nothing;
    }

    fn ends_with_server(&self) -> bool {
        self.ends_with_server
    }
}
