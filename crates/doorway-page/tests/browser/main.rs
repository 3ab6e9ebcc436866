//! The page in a real browser, Debian's Chromium, against the real server.
//!
//! Tests that need the browser are ignored unless they are asked for: `cargo xtask test Chromium`.

mod code;
#[expect(dead_code, reason = "the tests of the live page use the rest")]
mod driver;
mod exports;
mod lecture;
mod look;
mod screens;
mod site;
#[path = "../../../doorway-daemon/tests/common/skip.rs"]
mod skip;
mod stories;
mod threads;

use doorway_page::guard::Token;
use doorway_page::server::{First, Server};
use driver::{Browser, Look};
use tokio::runtime::Runtime;

/// A server of the page, and a window in which it is open.
struct Stage {
    browser: Browser,
    token: Token,
    /// The thread pool of the server; dropping it stops the server.
    runtime: Option<Runtime>,
}

/// Start a server. Returns its address with the token, and what keeps it running.
fn serve(port: u16, token: &Token, first: First) -> (String, Runtime) {
    let ([address, _], runtime) = serve_with_ticket(port, token, first);
    (address, runtime)
}

/// Start a server. Returns its addresses with the token and with the ticket, and what keeps it
/// running.
fn serve_with_ticket(port: u16, token: &Token, first: First) -> ([String; 2], Runtime) {
    let runtime = Runtime::new().expect("threads start");
    let server =
        runtime.block_on(Server::bind(port, token.clone(), first)).expect("a port is free");
    let addresses = [server.address(), server.ticket_address()];
    runtime.spawn(server.run());
    (addresses, runtime)
}

impl Stage {
    fn new(look: Look, first: First) -> Self {
        Self::at_port(0, look, first)
    }

    /// A server at this port, or at any free port if it is 0.
    fn at_port(port: u16, look: Look, first: First) -> Self {
        let token = Token::random().expect("random bytes");
        let (address, runtime) = serve(port, &token, first);
        let browser = Browser::open(look);
        browser.go(&address);
        let stage = Self { browser, token, runtime: Some(runtime) };
        stage.ready();
        stage
    }

    /// Wait until the page has shown what its address names.
    fn ready(&self) {
        self.browser.wait("the page is ready", "return document.body.dataset.ready === 'yes'");
    }

    /// Stop the server. Its port is free when this returns.
    fn stop(&mut self) {
        let runtime = self.runtime.take().expect("a server runs");
        runtime.shutdown_timeout(driver::PATIENCE);
    }

    /// Open a place of the page.
    fn visit(&self, place: &str) {
        let place = serde_json::to_string(place).expect("text");
        self.browser.run(&format!(
            "const moved = new Promise((done) => addEventListener('hashchange', done, \
             {{ once: true }})); location.hash = {place}; await Promise.race([moved, \
             new Promise((done) => setTimeout(done, 1000))]);"
        ));
        self.browser.wait("the place is shown", "return !doorwayLab.busy");
    }

    /// The number of the step on screen.
    fn at(&self) -> u64 {
        self.browser.run("return doorwayLab.at").as_u64().expect("a number")
    }

    /// Wait until the page shows this step.
    fn until(&self, at: u64) {
        let moment = "doorwayLab.story && !doorwayLab.busy && doorwayLab.at";
        let script = format!("return {moment} === {at}");
        self.browser.wait(&format!("step {at}"), &script);
    }

    fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({selector:?})?.innerText ?? ''");
        self.browser.run(&script).as_str().expect("a text").to_owned()
    }
}
