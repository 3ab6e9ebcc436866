//! A service in a process of its own, which can be killed and paused.

#![expect(clippy::unwrap_used, reason = "a process that cannot be talked to ends the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use doorway_client::{Endpoint, Options, TlsConfig, blocking};
use doorway_daemon::listen::Doors;
use doorway_daemon::serve::{self, ServeError};
use doorway_daemon::settings::{Overrides, Settings};
use rustix::process::{Pid, Signal, kill_process};

use super::{Place, fresh, until};

/// The variable with the settings of a service that runs in a process of its own.
const DAEMON: &str = "DOORWAY_TEST_SETTINGS";

/// The variable that says by how many seconds the wall clock of such a service is ahead.
const AHEAD: &str = "DOORWAY_TEST_AHEAD";

/// The exit codes of such a process if another one serves already, and if it cannot serve.
pub(crate) const SERVED: i32 = 3;
pub(crate) const REFUSED: i32 = 4;

/// Not a test: the service itself.
#[test]
#[ignore = "it is a service, which other tests start as a process"]
fn a_daemon() {
    let Ok(file) = std::env::var(DAEMON) else { return };
    // A panic in a task would end only that task, and no test would notice.
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
    let settings = Settings::load(Path::new(&file), &Overrides::default());
    let mut settings = settings.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    settings.wall_clock = || {
        let ahead = std::env::var(AHEAD).map_or(0, |ahead| ahead.parse().unwrap());
        SystemTime::now() + Duration::from_secs(ahead)
    };
    doorway_daemon::log::to_file(
        Path::new(&file).with_extension("log"),
        doorway_daemon::log::Format::Text,
        tracing::Level::INFO,
    );
    let doors = Doors::from_settings(&settings).unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let told = async {
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(|| {
            // The process that started this one closes its end of the pipe to stop it.
            for line in std::io::stdin().lines().map_while(Result::ok) {
                if line == "memory" {
                    println!("\nmemory {}", crate::live_bytes());
                }
            }
            let _ = tell.send(());
        });
        let _ = told.await;
    };
    let code = match runtime.block_on(serve::run(settings, doors, told)) {
        Ok(()) => 0,
        Err(ServeError::Served(_)) => SERVED,
        Err(error) => {
            eprintln!("{error}");
            REFUSED
        }
    };
    std::process::exit(code);
}

/// Start this program again, to do what the variable says.
pub(crate) fn again(test: &str, variable: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(variable, value).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Send a signal to a child. After SIGSTOP, wait until all its threads have stopped.
pub(crate) fn signal(process: &Child, signal: Signal) {
    let pid = Pid::from_raw(process.id().cast_signed()).unwrap();
    kill_process(pid, signal).unwrap();
    if signal == Signal::STOP {
        until("it has stopped", || is_stopped(process.id()));
    }
}

/// Have all threads of a process stopped?
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    threads.flatten().all(|thread| {
        // After the name, which is in parentheses, comes the state. A thread may end meanwhile.
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('T'))
    })
}

/// A service in a process of its own, which is killed when this value is dropped.
pub(crate) struct Daemon {
    /// The name of its node.
    pub(crate) node: String,
    /// Its socket: a path or `@name`.
    pub(crate) socket: String,
    /// Its addresses for sessions and HTTP over TCP.
    pub(crate) tcp: Option<(String, String)>,
    pub(crate) file: PathBuf,
    pub(crate) place: Arc<Place>,
    /// By how many seconds its wall clock is ahead when it is started the next time.
    pub(crate) ahead: u64,
    process: Option<Child>,
    stdout: Mutex<Option<BufReader<ChildStdout>>>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.file.with_extension("log")).unwrap_or_default();
            eprintln!("the log of {}:\n{log}", self.node);
        }
    }
}

impl Daemon {
    /// A service with these settings, not started yet.
    pub(crate) fn new(place: &Arc<Place>, node: &str, text: &str) -> Self {
        Self::at(&format!("@{}", fresh()), place, node, text)
    }

    /// A service with these settings at this socket, not started yet.
    pub(crate) fn at(socket: &str, place: &Arc<Place>, node: &str, text: &str) -> Self {
        let file = place.file(&format!("{node}.toml"));
        fs::write(&file, format!("socket = \"{socket}\"\n{text}")).unwrap();
        Self {
            node: node.to_owned(),
            socket: socket.to_owned(),
            tcp: None,
            file,
            place: Arc::clone(place),
            ahead: 0,
            process: None,
            stdout: Mutex::default(),
        }
    }

    /// A running node without members, with a directory of its own and these additional settings.
    pub(crate) fn alone(more: &str) -> Self {
        let place = Arc::new(Place::new());
        let text =
            format!("data = \"data\"\nalgorithm = \"readers-writers\"\ndrain = \"100ms\"\n{more}");
        let mut daemon = Self::new(&place, "node", &text);
        daemon.spawn();
        daemon.ready();
        daemon
    }

    /// Start the process.
    pub(crate) fn spawn(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let file = self.file.display().to_string();
        let mut command = again("common::daemon::a_daemon", DAEMON, &file);
        let mut process = command.env(AHEAD, self.ahead.to_string()).spawn().unwrap();
        *self.stdout.lock().unwrap() = process.stdout.take().map(BufReader::new);
        self.process = Some(process);
    }

    /// Wait until it answers.
    pub(crate) fn ready(&self) {
        let options = Options::default().visit().patience(Duration::from_secs(5));
        until("the service answers", || {
            blocking::Client::connect(self.endpoint(), &options).is_ok()
        });
    }

    /// Kill it, as a power cut would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Kill it, and start another one.
    pub(crate) fn crash(&mut self) {
        self.kill();
        self.spawn();
    }

    /// Stop it gracefully.
    pub(crate) fn stop(&mut self) {
        drop(self.process.as_mut().unwrap().stdin.take());
        let status = self.ended();
        assert!(status.success(), "{status}");
    }

    /// Wait until it has ended by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut process = self.process.take().unwrap();
        let mut status = None;
        until("the service ends", || {
            status = process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.try_wait().unwrap().is_some())
    }

    pub(crate) fn signal(&self, what: Signal) {
        self.process.iter().for_each(|process| signal(process, what));
    }

    /// How many bytes its process has allocated and not freed.
    pub(crate) fn memory(&self) -> u64 {
        let mut stdin = self.process.as_ref().unwrap().stdin.as_ref().unwrap();
        stdin.write_all(b"memory\n").unwrap();
        let mut stdout = self.stdout.lock().unwrap();
        let mut lines = stdout.as_mut().unwrap().lines().map(Result::unwrap);
        lines.find_map(|line| line.strip_prefix("memory ")?.parse().ok()).unwrap()
    }

    /// Its resident memory, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let pid = self.process.as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.file.with_extension("log")).unwrap_or_default()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.socket.parse().unwrap()
    }

    /// A session with the usual time to live.
    pub(crate) fn client(&self) -> blocking::Client {
        self.session(Duration::from_secs(10))
    }

    /// A session with this time to live.
    pub(crate) fn session(&self, ttl: Duration) -> blocking::Client {
        let options = Options::default().ttl(ttl).label(format!("a client of {}", self.node));
        blocking::Client::connect(self.endpoint(), &options).unwrap()
    }

    /// The options of the client `ci` over TCP.
    pub(crate) fn over_tcp(&self) -> Options {
        over_tcp(self.place.path(), &self.node)
    }
}

/// The options of the client `ci` over TCP, with the certificates in a directory.
pub(crate) fn over_tcp(certificates: &Path, node: &str) -> Options {
    let read = |name: &str| fs::read(certificates.join(name)).unwrap();
    let server = format!("{node}.test.doorway");
    let tls = TlsConfig::with_identity(&read("ca.crt"), &server, &read("ci.crt"), &read("ci.key"));
    Options::default().tls(tls.unwrap())
}

/// The endpoint of a listener for sessions.
pub(crate) fn tcp(address: &str) -> Endpoint {
    format!("tcp://{address}").parse().unwrap()
}
