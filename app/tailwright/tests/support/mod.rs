//! What tests of the program share: running it, small clusters, slow judges.
#![allow(dead_code, reason = "each test program uses its part")]

pub(crate) mod authority;
pub(crate) mod bench;
pub(crate) mod browser;
pub(crate) mod chromium;
pub(crate) mod cluster;
pub(crate) mod judge;
pub(crate) mod observer;
pub(crate) mod openapi;
pub(crate) mod replay;
pub(crate) mod schema;
pub(crate) mod scraped;
pub(crate) mod servers;
pub(crate) mod service;
pub(crate) mod transcript;

use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::Terminal;

/// A folder that is removed with the value.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tailwright-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether servers can be observed here; otherwise a line says why not.
    pub(crate) fn may_observe(&self) -> bool {
        let outcome = self.run(&["observe", "--port", "1", "--duration", "10ms"]);
        if outcome.code == 3 {
            testkit::skip(outcome.stderr.lines().next().unwrap_or("observing is refused"));
        }
        outcome.code != 3
    }

    /// A folder in it for journals that nobody else may change.
    pub(crate) fn state(&self) -> String {
        let path = self.join("state");
        std::fs::create_dir_all(&path).expect("it is ours");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("it is ours");
        path.display().to_string()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.join(name), text).expect("temporary files can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs the program here, with a cache of its own, and as on a wide terminal, so that sentences are lines. What `--json`
    /// prints is judged by its schema.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Outcome {
        let output = Command::new(env!("CARGO_BIN_EXE_tailwright"))
            .args(args)
            .current_dir(&self.0)
            .env("XDG_CACHE_HOME", self.join("cache"))
            .env("COLUMNS", "300")
            .output()
            .expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        let stdout = text(output.stdout);
        if args.contains(&"--json") && !stdout.is_empty() {
            schema::check(&stdout);
        }
        Outcome {
            code: output.status.code().expect("the program is not killed"),
            stdout,
            stderr: text(output.stderr),
        }
    }
}

impl Folder {
    /// Runs the program here on a terminal of 100 columns, without colours and without progress, with a cache of its own.
    #[track_caller]
    pub(crate) fn run_on_terminal(&self, args: &[&str]) -> TerminalOutcome {
        let mut terminal = Terminal::open(100, 40);
        let mut command = terminal.command(Path::new(env!("CARGO_BIN_EXE_tailwright")));
        command.args(args).current_dir(&self.0).env("XDG_CACHE_HOME", self.join("cache"));
        command.env_remove("COLUMNS").env("NO_COLOR", "1").env("TERM", "dumb");
        let mut child = command.spawn().expect("the program starts");
        drop(command);
        let shown = terminal.read_all().replace('\r', "");
        let status = child.wait().expect("the program ends");
        TerminalOutcome { code: status.code().expect("the program is not killed"), shown }
    }
}

/// How a run on a terminal ended.
#[derive(Debug)]
pub(crate) struct TerminalOutcome {
    pub(crate) code: i32,
    /// Standard output and standard error, as the terminal got them.
    pub(crate) shown: String,
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}
