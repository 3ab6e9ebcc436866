//! A small `WebDriver` client: starts `chromedriver`, opens a window, and sends it commands.
//!
//! `WebDriver` is JSON over HTTP. The tests need ten of its commands, so a client of its own is
//! shorter than a crate. One connection is kept to the driver.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long anything may take that the page does.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A script that returns how many bytes were sent to show the page: the page itself, its files and
/// the answers to its calls, with their heads.
pub(crate) const SENT: &str = "return performance.getEntriesByType('navigation') \
    .concat(performance.getEntriesByType('resource')) \
    .reduce((sum, it) => sum + it.transferSize, 0)";

/// Pictures of the documentation, which tests write with `UPDATE=1`.
const DOCUMENTED: [(&str, &str); 10] = [
    ("moment-1366-light", "page.png"),
    ("deadlock-1366-light", "page-deadlock.png"),
    ("threads-1366", "page-threads.png"),
    ("live-1366-light", "page-live.png"),
    ("live-last-known-1366", "page-live-away.png"),
    ("live-circle-1366", "page-live-circle.png"),
    ("lecture-here-1024", "page-present.png"),
    ("atlas-1366", "page-atlas.png"),
    ("violation-1366", "page-violation.png"),
    ("compare-1366", "page-compare.png"),
];

/// A running driver.
struct Driver {
    process: Child,
    port: u16,
    /// Where the driver and the browser put their files. Neither removes all of them.
    files: PathBuf,
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.files);
    }
}

/// A window of a browser.
pub(crate) struct Browser {
    driver: Driver,
    session: String,
}

/// The size of a window.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Look {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Look {
    pub(crate) const DESK: Self = Self { width: 1366, height: 768 };
    pub(crate) const BEAMER: Self = Self { width: 1024, height: 768 };
    pub(crate) const PHONE: Self = Self { width: 390, height: 844 };
}

/// The colours that the system of the reader asks for.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Theme {
    Light,
    Dark,
    /// The reader has chosen all colours, and the page may use no others.
    Forced,
}

impl Theme {
    /// All of them. The light theme is the last one, so that a window keeps it.
    pub(crate) const ALL: [Self; 3] = [Self::Forced, Self::Dark, Self::Light];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
            Self::Forced => "forced",
        }
    }
}

fn start() -> Driver {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let name = format!("doorway-browser-{}-{number}", std::process::id());
    let files = std::env::temp_dir().join(name);
    std::fs::create_dir(&files).expect("a directory for the browser can be made");
    let mut process = Command::new("chromedriver")
        .arg("--port=0")
        .env("TMPDIR", &files)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("chromedriver starts; `apt-get install chromium-driver` installs it");
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let port = lines.find_map(|line| {
        let line = line.expect("the driver writes text");
        let (_, port) = line.split_once("successfully on port ")?;
        port.trim_end_matches('.').parse().ok()
    });
    // The driver must not block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    Driver { process, port: port.expect("the driver names its port"), files }
}

impl Driver {
    fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(Duration::from_mins(1))).map_err(|e| e.to_string())?;
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).map_err(|e| e.to_string())?;
        // The driver keeps the connection open, so the length of the answer counts.
        let mut reader = BufReader::new(stream);
        let (mut length, mut line) = (0usize, String::new());
        loop {
            line.clear();
            reader.read_line(&mut line).map_err(|error| error.to_string())?;
            let (name, value) = line.trim().split_once(':').unwrap_or(("", ""));
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).map_err(|error| error.to_string())?;
        let mut value: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let value = value["value"].take();
        match value.get("error") {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }
}

impl Browser {
    /// Open a window.
    pub(crate) fn open(look: Look) -> Self {
        let driver = start();
        let window = format!("--window-size={},{}", look.width, look.height);
        let mut arguments =
            vec!["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        arguments.extend(["--hide-scrollbars", "--force-color-profile=srgb", window.as_str()]);
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            // A group has an authority of its own, which a browser does not know.
            "acceptInsecureCerts": true,
            "goog:chromeOptions": { "args": arguments },
            "goog:loggingPrefs": { "browser": "ALL" },
        } } });
        let opened = driver.send("POST", "/session", &wanted).expect("a window opens");
        let session = opened["sessionId"].as_str().expect("the session has a name").to_owned();
        let browser = Self { driver, session };
        browser.look(look);
        browser
    }

    fn call(&self, path: &str, body: &Value) -> Result<Value, String> {
        self.driver.send("POST", &format!("/session/{}/{path}", self.session), body)
    }

    /// Change the size of the page. Its theme is light from now on.
    pub(crate) fn look(&self, look: Look) {
        let Look { width, height } = look;
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        self.theme(Theme::Light);
    }

    /// Change the theme that the reader wants. All readers of the tests want no motion, except
    /// those of [`Self::moving`].
    pub(crate) fn theme(&self, theme: Theme) {
        self.media(theme, "reduce");
    }

    /// The reader has nothing against motion, until the theme or the size is changed.
    pub(crate) fn moving(&self) {
        self.media(Theme::Light, "no-preference");
    }

    fn media(&self, theme: Theme, motion: &str) {
        let scheme = if theme == Theme::Dark { "dark" } else { "light" };
        let forced = if theme == Theme::Forced { "active" } else { "none" };
        let features = json!({ "features": [
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": motion },
            { "name": "forced-colors", "value": forced },
        ] });
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// A command of Chromium's own protocol.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        let body = json!({ "cmd": command, "params": parameters });
        self.call("goog/cdp/execute", &body).expect("the browser knows the command")
    }

    /// Load an address.
    pub(crate) fn go(&self, address: &str) {
        self.call("url", &json!({ "url": address })).expect("the address loads");
    }

    /// The result of a script, which is the body of an asynchronous function.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.try_run(script).unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The result of a script, or why it has none.
    pub(crate) fn try_run(&self, script: &str) -> Result<Value, String> {
        let body =
            json!({ "script": format!("return (async () => {{ {script} }})()"), "args": [] });
        self.call("execute/sync", &body)
    }

    /// Wait until a script says something other than null, false or nothing.
    pub(crate) fn wait(&self, what: &str, script: &str) -> Value {
        let begin = Instant::now();
        loop {
            let value = self.try_run(script).unwrap_or(Value::Null);
            if !matches!(value, Value::Null | Value::Bool(false)) {
                return value;
            }
            if begin.elapsed() > PATIENCE {
                let alert = self.try_run("return document.getElementById('alert')?.innerText");
                panic!("{what}: not in time; the page says {alert:?}; log {:?}", self.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Press keys, one after the other.
    pub(crate) fn press(&self, keys: &[&str]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| {
                let letter = match *key {
                    "ArrowRight" => "\u{e014}",
                    "ArrowLeft" => "\u{e012}",
                    "Home" => "\u{e011}",
                    "End" => "\u{e010}",
                    "Tab" => "\u{e004}",
                    "Enter" => "\u{e007}",
                    "Escape" => "\u{e00c}",
                    letter => letter,
                };
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": letter }))
            })
            .collect();
        let body = json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] });
        self.call("actions", &body).expect("the keys are pressed");
    }

    /// Type a text, letter by letter.
    pub(crate) fn type_text(&self, text: &str) {
        let letters: Vec<String> = text.chars().map(String::from).collect();
        self.press(&letters.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Go on in the second window, as soon as the page has opened it.
    pub(crate) fn follow(&self) {
        let path = format!("/session/{}/window/handles", self.session);
        let started = Instant::now();
        let last = loop {
            let windows = self.driver.send("GET", &path, &Value::Null).expect("a list of windows");
            let all = windows.as_array().expect("a list");
            if let [_, .., last] = &all[..] {
                break last.clone();
            }
            assert!(started.elapsed() < PATIENCE, "no window was opened");
            std::thread::sleep(Duration::from_millis(20));
        };
        self.call("window", &json!({ "handle": last })).expect("the window is there");
    }

    /// Go on in a new tab, which knows nothing of what the other one keeps for itself.
    pub(crate) fn new_tab(&self) {
        let path = format!("/session/{}/window/new", self.session);
        let made = self.driver.send("POST", &path, &json!({ "type": "tab" })).expect("a tab");
        self.call("window", &json!({ "handle": made["handle"] })).expect("the tab is there");
    }

    /// Write a picture of the window to a file below `target/page`.
    pub(crate) fn picture(&self, name: &str) {
        let shot = self.devtools("Page.captureScreenshot", &json!({ "format": "png" }));
        let bytes = base64(shot["data"].as_str().expect("a picture"));
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/page");
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let path = folder.join(format!("{name}.png"));
        std::fs::write(path, &bytes).expect("the picture can be written");
        let known = DOCUMENTED.iter().find(|(shot, _)| *shot == name);
        if let (Some((_, file)), Some(_)) = (known, std::env::var_os("UPDATE")) {
            let path = folder.join("../../docs").join(file);
            std::fs::write(path, &bytes).expect("the picture can be written");
        }
    }

    /// What the page has written to the console since the last call: errors and warnings.
    pub(crate) fn log(&self) -> Vec<String> {
        let path = format!("/session/{}/se/log", self.session);
        let log = self.driver.send("POST", &path, &json!({ "type": "browser" }));
        let entries = log.ok().and_then(|log| log.as_array().cloned()).unwrap_or_default();
        entries.iter().map(|entry| entry["message"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.driver.send("DELETE", &format!("/session/{}", self.session), &Value::Null);
    }
}

/// Read base64, in which pictures are sent.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for letter in text.bytes() {
        let Some(value) = LETTERS.iter().position(|it| *it == letter) else { continue };
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
