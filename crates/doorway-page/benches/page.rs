//! How fast the page is: the server's answers, the size of the files, a long story in a browser.
//!
//! `cargo xtask bench page` runs this and the benchmark of the live page, takes four minutes and
//! needs Chromium. `--smoke` does a little of everything without a browser and measures nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Instant;

use doorway_page::files::weight;
use doorway_page::guard::Token;
use doorway_page::server::{First, Server};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

#[path = "../tests/browser/driver.rs"]
#[expect(dead_code, reason = "the benchmark needs a part of the driver")]
mod driver;
#[path = "shared/figures.rs"]
mod figures;
use driver::{Browser, Look, SENT};
use figures::print;

struct Host {
    address: String,
    port: u16,
    token: Token,
    _runtime: Runtime,
}

impl Host {
    fn start() -> Self {
        let runtime = Runtime::new().expect("threads start");
        let token = Token::random().expect("random bytes");
        let server = Server::bind(0, token.clone(), First::Shelf);
        let server = runtime.block_on(server).expect("a port is free");
        let address = server.address();
        runtime.spawn(server.run());
        let port = address.split([':', '/']).nth(4).and_then(|it| it.parse().ok());
        Self { address, port: port.expect("the address has a port"), token, _runtime: runtime }
    }

    /// Send a call and read its answer to the end.
    fn call(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server listens");
        let head = format!(
            "POST /api/{path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nx-doorway-token: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.port,
            self.token.text(),
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).expect("the server reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the server answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        serde_json::from_str(body).expect("an answer in JSON")
    }
}

/// The middle and the worst of some figures.
fn spread(mut figures: Vec<f64>) -> (f64, f64) {
    figures.sort_by(f64::total_cmp);
    (figures[figures.len() / 2], figures[figures.len() - 1])
}

/// How much is sent until the page shows its first screen.
fn print_first_loads(browser: &Browser) {
    let sent = || browser.run(SENT).as_f64().unwrap_or(0.0) / 1e3;
    print("sent until the shelf is shown", format_args!("{:>9.1} kB", sent()));
    browser.run("location.reload()");
    browser.wait("the page", "return document.body.dataset.ready === 'yes'");
    print("sent when it is loaded again", format_args!("{:>9.1} kB", sent()));
    browser.devtools("Network.clearBrowserCache", &json!({}));
    browser.run("location.hash = '#/lab/ricart-agrawala+n=3/a1a2?at=2'; location.reload()");
    browser.wait("the page", "return document.body.dataset.ready === 'yes'");
    print("sent until a story is shown", format_args!("{:>9.1} kB", sent()));
}

fn main() {
    let smoke = std::env::args().any(|word| word == "--smoke");
    let (steps, rounds) = if smoke { (40, 3) } else { (10_000, 200) };
    let begin = Instant::now();
    let host = Host::start();
    let ready = begin.elapsed().as_secs_f64() * 1e3;

    let run = json!({ "run": "ricart-agrawala n=30" });
    let mut told = host.call("play", &run);
    let mut taken = 0;
    let mut words = String::new();
    while taken < steps {
        let until = (steps - taken).min(2_000).to_string();
        told = host.call("go", &json!({ "key": told["key"], "until": until, "by": "fair" }));
        let new = told["steps"].as_array().expect("steps");
        words.extend(new.iter().filter_map(|step| step["do"].as_str()));
        taken += new.len();
    }
    let mut single = Vec::new();
    for _ in 0..rounds {
        let begin = Instant::now();
        told = host.call("go", &json!({ "key": told["key"], "until": "1", "by": "fair" }));
        single.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    let (middle, worst) = spread(single);
    print("server ready", format_args!("{ready:>9.1} ms"));
    print("files of the laboratory", format_args!("{:>9.1} kB", weight(false) as f64 / 1e3));
    print("files of the live page", format_args!("{:>9.1} kB", weight(true) as f64 / 1e3));
    let what = format!("one step of 30 nodes after {steps} steps, median");
    print(&what, format_args!("{middle:>9.2} ms"));
    print("worst", format_args!("{worst:>9.2} ms"));
    if smoke {
        return;
    }
    let browser = Browser::open(Look::DESK);
    browser.go(&host.address);
    browser.wait("the page", "return document.body.dataset.ready === 'yes'");
    print_first_loads(&browser);
    let words = serde_json::to_string(&words).expect("text");
    let script = format!(
        "const begin = performance.now(); \
         await doorwayLab.link({{ run: 'ricart-agrawala n=30', steps: {words} }}); \
         location.hash = '#/lab/x'; doorwayLab.show(0); return performance.now() - begin;"
    );
    browser.run(
        "location.hash = '#/lab/ricart-agrawala+n=30/?at=0'; \
                 await new Promise((done) => setTimeout(done, 500))",
    );
    let load = browser.run(&script.replace("location.hash = '#/lab/x'; ", ""));
    let what = format!("{steps} steps loaded and shown");
    print(&what, format_args!("{:>9.0} ms", load.as_f64().unwrap_or(0.0)));
    let frames = browser.run(
        "const box = document.querySelector('.scroller'); const times = []; let last = null; \
         await new Promise((done) => { let count = 0; const frame = (now) => { \
           if (last !== null) times.push(now - last); last = now; box.scrollLeft += 60; \
           count += 1; if (count < 200) requestAnimationFrame(frame); else done(); }; \
           requestAnimationFrame(frame); }); return times;",
    );
    let frames = frames.as_array().cloned().unwrap_or_default();
    let (middle, worst) = spread(frames.iter().filter_map(Value::as_f64).collect());
    print("a frame while the diagram scrolls, median", format_args!("{middle:>9.1} ms"));
    print("worst", format_args!("{worst:>9.1} ms"));
}
