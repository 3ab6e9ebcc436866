//! A real etcd on this machine, for tests. The tests of the command use this file too.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long etcd may take to start on a busy machine.
const START: Duration = Duration::from_mins(1);

/// An etcd of one server, with its data in a directory of its own.
pub(crate) struct EtcdServer {
    directory: PathBuf,
    client: u16,
    peer: u16,
    tls: Vec<String>,
    process: Option<Child>,
}

impl EtcdServer {
    /// An etcd that runs.
    pub(crate) fn new() -> Self {
        let mut server = Self::stopped();
        server.start();
        server
    }

    /// An etcd that does not run yet.
    pub(crate) fn stopped() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("doorway-etcd-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).expect("a directory");
        let ports = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [client, peer] = ports.map(|port| port.local_addr().expect("its number").port());
        Self { directory, client, peer, tls: Vec::new(), process: None }
    }

    /// Serve https only, with these options of etcd.
    #[allow(dead_code, reason = "the tests of the command do not use it")]
    pub(crate) fn with_tls(mut self, options: &[String]) -> Self {
        self.tls = options.to_vec();
        self
    }

    /// A file in its directory.
    #[allow(dead_code, reason = "the tests of the command do not use it")]
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.tls.is_empty() { "http" } else { "https" };
        format!("{scheme}://127.0.0.1:{}", self.client)
    }

    /// Start it, with the data that it had before.
    pub(crate) fn start(&mut self) {
        let (client, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer));
        let log = std::fs::File::options().create(true).append(true).open(self.file("log"));
        let log = log.expect("a log");
        let mut etcd = Command::new("etcd");
        etcd.arg("--data-dir")
            .arg(self.file("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .args(&self.tls)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        self.process = Some(etcd.spawn().expect("etcd is installed"));
        let begin = Instant::now();
        while !self.answers() {
            assert!(begin.elapsed() < START, "etcd does not start: {}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    /// Whether it accepts connections and, without TLS, whether it has a leader.
    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.client)) else { return false };
        let mut text = String::new();
        let request = b"GET /health HTTP/1.0\r\n\r\n";
        !self.tls.is_empty()
            || stream.write_all(request).and_then(|()| stream.read_to_string(&mut text)).is_ok()
                && text.contains("\"health\":\"true\"")
    }

    /// Kill it, as a power cut would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Stop it without an end of its connections, or let it go on.
    #[allow(dead_code, reason = "not all tests use it")]
    pub(crate) fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("it runs");
        let mut kill = Command::new("kill");
        let done = kill.args([&format!("-{signal}"), &process.id().to_string()]).status();
        assert!(done.is_ok_and(|status| status.success()));
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.file("log")).unwrap_or_default()
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("the log of etcd:\n{}", self.log());
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
