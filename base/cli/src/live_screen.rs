//! A live page on the terminal, and restoration of the terminal afterwards.
//!
//! The page uses the terminal's alternate screen, so that earlier output comes back; terminal settings
//! are not changed. The screen is left when the page is closed, before Ctrl-Z stops the program, and on a
//! panic. A separate thread writes, because a terminal may block output indefinitely (Ctrl-S).

use std::io::Write as _;
use std::panic;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, JoinHandle};

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";

/// Shows the cursor and switches back to the main screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Screen that the terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScreenState {
    /// Main screen; the next page switches to the alternate screen.
    Away,
    /// Alternate screen, with a page.
    Shown,
    /// Main screen for good; further pages are dropped.
    Closed,
}

/// A process has one terminal, hence a static.
static SCREEN: Mutex<ScreenState> = Mutex::new(ScreenState::Away);

/// A page, shown from the first call of [`LiveScreen::show`] until the value is dropped.
#[derive(Debug)]
pub struct LiveScreen {
    pages: Option<SyncSender<String>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveScreen {
    /// Starts the writer thread. If that fails, nothing is shown.
    pub fn begin() -> Self {
        leave_on_panic();
        set(ScreenState::Away);
        let (pages, taken) = sync_channel::<String>(1);
        let draw = move || taken.iter().for_each(|page| draw(&page));
        let thread = thread::Builder::new().name("screen".to_owned()).spawn(draw).ok();
        Self { pages: Some(pages), thread }
    }

    /// Replaces the page by these lines. Skipped while the terminal has not accepted the previous page.
    pub fn show(&self, lines: &[String]) {
        let page = format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"));
        if let Some(pages) = &self.pages {
            match pages.try_send(page) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            }
        }
    }
}

impl Drop for LiveScreen {
    fn drop(&mut self) {
        self.pages = None;
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, its own message was printed.
            let _ = thread.join();
        }
        close();
    }
}

/// Leaves the alternate screen for good.
pub fn close() {
    set(ScreenState::Closed);
}

/// Leaves the alternate screen while `stopped` runs; the next page returns to it.
pub(crate) fn away_during(stopped: impl FnOnce()) {
    let before = set(ScreenState::Closed);
    stopped();
    if before != ScreenState::Closed {
        set(ScreenState::Away);
    }
}

/// Changes to a state on the main screen; returns the previous state.
fn set(next: ScreenState) -> ScreenState {
    let mut state = SCREEN.lock().unwrap_or_else(PoisonError::into_inner);
    if *state == ScreenState::Shown {
        write(LEAVE);
    }
    std::mem::replace(&mut *state, next)
}

fn draw(page: &str) {
    let mut state = SCREEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !machine::terminal::is_foreground(std::io::stderr()) {
        return;
    }
    match *state {
        ScreenState::Closed => return,
        ScreenState::Away => write(ENTER),
        ScreenState::Shown => {}
    }
    *state = ScreenState::Shown;
    write(page);
}

/// Errors are ignored: without a terminal there is nowhere to report them.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Makes panic messages appear on the main screen.
fn leave_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // The panicking thread may itself hold the lock.
            if let Ok(mut state) = SCREEN.try_lock() {
                if *state == ScreenState::Shown {
                    write(LEAVE);
                }
                *state = ScreenState::Closed;
            }
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::stderr;

    /// Set where a test runs itself again.
    const INNER: &str = "TAILWRIGHT_TEST_PANIC";

    /// Run by the test below in a process of its own, on a terminal of its own.
    #[test]
    fn inner_panic() {
        if std::env::var_os(INNER).is_none() {
            return;
        }
        assert!(machine::terminal::size(stderr()).is_some(), "a terminal");
        let screen = LiveScreen::begin();
        screen.show(&["a page".to_owned()]);
        testkit::wait_until(std::time::Duration::from_secs(60), "the page is shown", || {
            *SCREEN.lock().expect("nobody panicked") == ScreenState::Shown
        });
        panic!("on purpose");
    }

    #[test]
    fn a_panic_leaves_the_screen_first() {
        let program = std::env::current_exe().expect("the test has a file");
        let name = "live_screen::tests::inner_panic";
        let mut terminal = testkit::Terminal::open(80, 24);
        let mut inner = terminal
            .command(&program)
            .args([name, "--exact", "--nocapture"])
            .env(INNER, "1")
            .spawn()
            .expect("the test runs");
        let seen = terminal.read_all();
        assert!(!inner.wait().expect("it ends").success(), "{seen}");
        let entered = seen.find(ENTER).expect("the second screen");
        let left = seen[entered..].find(LEAVE).expect("and back");
        let said = seen[entered..].find("on purpose").expect("the message");
        assert!(left < said, "{seen}");
        assert!(seen[entered..].contains("a page") && !seen[entered + left + 1..].contains(ENTER), "{seen}");
    }
}
