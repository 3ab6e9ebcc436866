//! A node of a test's own, and commands that use it.

use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a test waits for anything, on a machine that has much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The program.
pub(crate) const DOORWAY: &str = env!("CARGO_BIN_EXE_doorway");

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A node of a test's own, killed when the test is over.
pub(crate) struct Place {
    name: String,
    /// A directory for what the test writes.
    pub(crate) directory: PathBuf,
    node: Option<Child>,
}

impl Place {
    /// A place without a node.
    pub(crate) fn empty() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("doorway-test-{}-{number}", std::process::id());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
        let _ = fs::remove_dir_all(&directory); // Of an earlier process with this id.
        fs::create_dir_all(&directory).expect("a directory for a test");
        Self { name, directory, node: None }
    }

    /// A place with a node that listens.
    pub(crate) fn new() -> Self {
        let mut place = Self::empty();
        place.start();
        place
    }

    /// A place with a node in a pid namespace of its own, which does not see this process. None if
    /// this user cannot make one.
    pub(crate) fn in_namespace() -> Option<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--kill-child"]);
        let may = Command::new("unshare").args(unshare.get_args()).arg("true").status();
        if !may.is_ok_and(|status| status.success()) {
            return None;
        }
        let mut place = Self::empty();
        unshare.arg(DOORWAY);
        place.start_as(unshare);
        Some(place)
    }

    /// A place with a node that may open only this many files.
    pub(crate) fn with_files(most: u32) -> Self {
        let mut place = Self::empty();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\""), DOORWAY]);
        place.start_as(shell);
        place
    }

    /// Start the node, and wait until it listens.
    pub(crate) fn start(&mut self) {
        self.start_as(Command::new(DOORWAY));
    }

    /// Start the node with this command.
    fn start_as(&mut self, mut serve: Command) {
        serve.args(["serve", "--local", "--socket", &self.socket(), "--data"]);
        serve.arg(self.directory.join("data")).stdin(Stdio::null()).stdout(Stdio::null());
        let log = fs::File::create(self.directory.join("stderr")).expect("a log");
        self.node = Some(serve.stderr(log).spawn().expect("a node starts"));
        until("the node listens", || self.listens());
    }

    /// True if a node listens.
    fn listens(&self) -> bool {
        let address = SocketAddr::from_abstract_name(&self.name).expect("a name");
        UnixStream::connect_addr(&address).is_ok()
    }

    /// The socket of the node.
    pub(crate) fn socket(&self) -> String {
        format!("@{}", self.name)
    }

    /// The process of the node.
    pub(crate) fn node(&self) -> u32 {
        self.node.as_ref().expect("a node runs").id()
    }

    /// End the node with this signal, and wait until it has ended.
    pub(crate) fn end_node(&mut self, how: &str) {
        signal(self.node(), how);
        if let Some(mut node) = self.node.take() {
            let _ = node.wait();
        }
    }

    /// Kill the node, as in a crash.
    pub(crate) fn kill_node(&mut self) {
        if let Some(mut node) = self.node.take() {
            let _ = node.kill();
            let _ = node.wait();
        }
    }

    /// A file of this test.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Make certificates: `doorway ca` with these words, in the directory.
    pub(crate) fn ca(&self, words: &str) {
        let mut command = Command::new(DOORWAY);
        command.arg("ca").args(words.split(' ')).current_dir(&self.directory);
        let done = command.output().expect("it runs");
        assert!(done.status.success(), "{words}: {done:?}");
    }

    /// Start the node `a` of the group `shop` with certificates and with these settings, and wait
    /// until it listens.
    pub(crate) fn serve_with_tls(&self, settings: &str) -> Process {
        self.ca("init --group shop --dir ca");
        self.ca("node a --address 127.0.0.1 --dir ca --to files");
        let text = format!(
            "group = \"shop\"\nnode = \"a\"\nsocket = \"{}\"\ndata = \"data\"\n\
             [tls]\nca = \"ca/ca.crt\"\ncertificate = \"files/a.crt\"\nkey = \"files/a.key\"\n\
             {settings}",
            self.socket()
        );
        fs::write(self.file("doorway.toml"), text).expect("a file");
        let mut serve = Command::new(DOORWAY);
        serve.args(["serve", "--config"]).arg(self.file("doorway.toml"));
        let log = fs::File::create(self.file("stderr")).expect("a log");
        let node = Process::spawn(serve.stdin(Stdio::null()).stderr(log));
        until("the node listens", || self.output("status").status.success());
        node
    }

    /// `doorway` with these words.
    pub(crate) fn command<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(DOORWAY);
        command.args(words).env("DOORWAY_SOCKET", self.socket()).stdin(Stdio::null());
        command
    }

    /// `doorway run` with these words and then this line for a shell.
    pub(crate) fn run(&self, words: &str, line: &str) -> Command {
        let words = ["run"].into_iter().chain(words.split_whitespace());
        self.command(words.chain(["--", "sh", "-c", line]))
    }

    /// What `doorway` prints with these words. It must succeed.
    pub(crate) fn answer(&self, words: &str) -> String {
        let done = self.output(words);
        assert!(done.status.success(), "{words}: {done:?}");
        String::from_utf8(done.stdout).expect("text")
    }

    /// The output of `doorway` with these words.
    pub(crate) fn output(&self, words: &str) -> Output {
        self.command(words.split_whitespace()).output().expect("it runs")
    }

    /// The exit code of `doorway` with these words, and its standard error. It must print nothing.
    pub(crate) fn code(&self, words: &str) -> (Option<i32>, String) {
        let done = self.output(words);
        assert!(done.stdout.is_empty(), "{words}: {done:?}");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// What `doorway who` reports about a lock.
    pub(crate) fn who(&self, lock: &str) -> serde_json::Value {
        serde_json::from_str(&self.answer(&format!("who {lock} --json"))).expect("JSON")
    }

    /// True if exactly `count` clients hold this lock.
    pub(crate) fn inside(&self, lock: &str, count: usize) -> bool {
        self.who(lock)["holders"].as_array().is_some_and(|holders| holders.len() == count)
    }

    /// True if exactly `count` clients wait for this lock.
    pub(crate) fn waiting(&self, lock: &str, count: usize) -> bool {
        self.who(lock)["waiters"].as_array().is_some_and(|waiters| waiters.len() == count)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill_node();
        if std::thread::panicking() {
            let log = fs::read_to_string(self.directory.join("stderr")).unwrap_or_default();
            let more = fs::read_to_string(self.directory.join("data/log")).unwrap_or_default();
            eprintln!("the node's log:\n{log}{more}");
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A process that is killed at the end of the test if it still runs.
pub(crate) struct Process(Child);

impl Process {
    /// Start it.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::try_spawn(command).expect("it runs")
    }

    /// Start it, if the program is there.
    pub(crate) fn try_spawn(command: &mut Command) -> std::io::Result<Self> {
        command.spawn().map(Self)
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Send it a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// How it ends.
    pub(crate) fn end(mut self) -> std::process::ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().expect("a child of ours") {
                return status;
            }
            assert!(Instant::now() < end, "it does not end");
            sleep(Duration::from_millis(2));
        }
    }

    /// Has it ended?
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child of ours").is_some()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // First its children, which are process groups of their own.
            for child in children(self.id()) {
                signal_group(child, "KILL");
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// The processes that this one started.
pub(crate) fn children(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// True if this process exists and is not a zombie.
pub(crate) fn lives(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().to_owned());
    state.is_some_and(|state| !state.starts_with('Z') && !state.starts_with('X'))
}

/// Send a signal to a process.
pub(crate) fn signal(process: u32, name: &str) {
    let _ = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status();
}

/// Send a signal to a process group, which may have ended.
pub(crate) fn signal_group(group: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{name}"), "--", &format!("-{group}")]).stderr(Stdio::null());
    let _ = kill.status();
}

/// Ports of this machine that nothing listens on.
pub(crate) fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    // All are open at once, so that they differ.
    let free = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    free.map(|free| free.local_addr().expect("its number").port())
}

/// Wait until a condition is true.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// The text of a file, once it ends with a complete line.
pub(crate) fn line_of(path: &Path) -> String {
    let read = || fs::read_to_string(path).unwrap_or_default();
    until("a line is written", || read().ends_with('\n'));
    read().trim_end().to_owned()
}
