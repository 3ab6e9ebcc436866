//! The laboratory of the real command, which is started again.

use std::process::{Child, Command};

use super::driver::{Browser, Look};
use super::served;

/// The command, which ends with the test.
struct Served(Child, String);

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_doorway"));
        command.arg("lab").args(arguments).arg("--no-open");
        let (child, address) = served(&mut command);
        Self(child, address)
    }

    /// The port in the address that it has printed.
    fn port(&self) -> &str {
        self.1.split([':', '/']).nth(4).expect("a port")
    }

    fn stop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

const MOMENT: &str = "const { story, at } = doorwayLab; return story && [story.words(), at]";

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_command_that_is_started_again_opens_the_moment_in_a_new_tab() {
    let mut first = Served::start(&[]);
    let browser = Browser::open(Look::DESK);
    let open = |address: &str| {
        browser.go(address);
        browser.wait("the page is ready", "return document.body.dataset.ready === 'yes'");
    };
    open(&first.1);
    browser.run("location.hash = '#/lab/ricart-agrawala+n=3/a2d2-3d2-1?at=3'");
    browser
        .wait("the moment", "return doorwayLab.story?.steps.length === 3 && doorwayLab.at === 3");
    browser.wait("the address", "return localStorage.getItem('doorway.last')?.includes('at=3')");
    let moment = browser.run(MOMENT);
    first.stop();
    browser.press(&["1"]);
    let told = "return document.querySelector('#alert code')?.innerText";
    let told = browser.wait("the command", told);
    let link = told.as_str().unwrap().strip_prefix("doorway lab '").expect("the command");
    // The command of the page, at whatever port.
    let mut second = Served::start(&[link.trim_end_matches('\'')]);
    browser.new_tab();
    open(&second.1);
    assert_eq!(browser.run(MOMENT), moment);
    // The same command as before, at the port that it has again: its first screen leads there.
    let port = second.port().to_owned();
    second.stop();
    let third = Served::start(&["--port", &port]);
    browser.new_tab();
    open(&third.1);
    let last = "return document.querySelector('.last a')?.innerText";
    assert_eq!(browser.wait("the last moment", last), "ricart-agrawala, step 3");
    browser.run("document.querySelector('.last a').click()");
    browser.wait("it is open", "return doorwayLab.story && !doorwayLab.busy");
    assert_eq!(browser.run(MOMENT), moment);
    assert_eq!(browser.wrong_in_any_theme("a moment that was left"), [""; 0]);
}
