//! A browser that a test drives by the DevTools protocol, over pipes: it opens pages of a running service, types and reads.

use super::Folder;
use super::servers::Running;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Only a guard against tests that never end.
const TIMEOUT: Duration = Duration::from_secs(60);

const MEASURE: &str = include_str!("measure.js");

/// A browser with one page.
pub(crate) struct Browser {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
    next: u64,
    session: Option<String>,
    _running: Running,
    _profile: Folder,
}

impl Browser {
    /// Starts a browser; `None` where there is none.
    pub(crate) fn start() -> Option<Self> {
        let program = testkit::program("chromium")?;
        let profile = Folder::new();
        // The protocol is on descriptors 3 and 4.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--remote-debugging-pipe", "--no-first-run"])
            .arg(format!("--user-data-dir={}", profile.join("browser").display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let commands = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut browser =
            Self { commands, answers, next: 0, session: None, _running: Running(child), _profile: profile };
        let created = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = browser
            .call("Target.attachToTarget", json!({ "targetId": created["targetId"], "flatten": true }));
        browser.session = Some(attached["sessionId"].as_str().expect("a session").to_owned());
        Some(browser)
    }

    /// Calls a method of the protocol.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.try_call(method, params).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Calls a method of the protocol; an error is the browser's.
    #[expect(clippy::needless_pass_by_value, reason = "callers write json! in place")]
    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        loop {
            let mut bytes = Vec::new();
            self.answers.read_until(0, &mut bytes).expect("the browser answers");
            assert_eq!(bytes.pop(), Some(0), "the browser has ended: {method}");
            let mut answer: Value = serde_json::from_slice(&bytes).expect("JSON");
            // Everything else is an event.
            if answer["id"] == self.next {
                return if answer["error"].is_null() { Ok(answer["result"].take()) } else { Err(answer) };
            }
        }
    }

    /// Returns the value of an expression in the page.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    #[track_caller]
    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.evaluate(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, expression: &str) {
        let begun = Instant::now();
        let params = json!({ "expression": expression, "returnByValue": true });
        // While a page is being replaced, nothing can be evaluated in it, and an evaluation that has begun is an error.
        let is_replaced = |error: &Value| error.to_string().contains("Inspected target navigated");
        loop {
            match self.try_call("Runtime.evaluate", params.clone()) {
                Ok(answer) if answer["result"]["value"] == true => break,
                Err(error) if !is_replaced(&error) => panic!("{what}: {error}"),
                _ => {}
            }
            if begun.elapsed() > TIMEOUT {
                panic!("in vain: {what}\n{}", self.text("document.body.innerText"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Opens an address.
    #[track_caller]
    pub(crate) fn open(&mut self, url: &str) {
        self.evaluate("window.isOld = true");
        self.call("Page.navigate", json!({ "url": url }));
        self.wait(url, "window.isOld === undefined && document.readyState === 'complete'");
    }

    /// Presses a key, such as `Tab`.
    pub(crate) fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = text.into();
            }
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Types text where the focus is.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Sets the width of the screen, pixels, and the theme.
    pub(crate) fn look(&mut self, width: u32, theme: &str) {
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Measures the page as [`super::browser`] measures reports.
    #[track_caller]
    pub(crate) fn measured(&mut self) -> Value {
        let measure = "measure({ contentWindow: window, contentDocument: document })";
        self.evaluate(&format!("(() => {{ {MEASURE}\nreturn {measure}; }})()"))
    }

    /// Writes what is on the screen, the whole page, to a PNG file.
    pub(crate) fn screenshot(&mut self, file: &std::path::Path) {
        let size = self.evaluate("[innerWidth, document.documentElement.scrollHeight]");
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.call("Page.captureScreenshot", params);
        let text = shot["data"].as_str().expect("base64");
        std::fs::write(file, decoded(text)).expect("a folder");
    }
}

/// Decodes base64.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let mut bits = 0_u32;
    let mut count = 0;
    for digit in text.bytes() {
        let Some(value) = DIGITS.iter().position(|known| *known == digit) else { break };
        bits = bits << 6 | u32::try_from(value).expect("below 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).expect("a byte"));
        }
    }
    bytes
}
