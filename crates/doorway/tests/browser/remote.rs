//! The page that a node serves itself, where its settings have `page = true`.

use std::fs;

use crate::driver::{Browser, Look};
use crate::place::{Place, Process, free_ports, until};

const TOKEN: &str = "a-token-of-an-operator";

/// A node with certificates that serves HTTP with the page, and the port.
fn node() -> (Place, Process, u16) {
    let place = Place::empty();
    let [port] = free_ports();
    fs::write(place.file("operator.token"), TOKEN).expect("a file");
    let node = place.serve_with_tls(&format!(
        "[http]\nlisten = \"127.0.0.1:{port}\"\npage = true\n\
         [[client]]\nname = \"operator\"\ntoken_file = \"operator.token\"\n\
         rights = [{{ names = \"shop/*\", may = [\"inspect\"] }}]\n"
    ));
    (place, node, port)
}

#[test]
#[ignore = "needs Chromium: `cargo xtask test Chromium`"]
fn a_node_asks_for_a_token_and_shows_what_the_client_may_see() {
    let (place, _node, port) = node();
    let _held = ["shop/orders", "secret"].map(|lock| {
        let held = Process::spawn(&mut place.run(lock, "sleep 1000"));
        until("it is held", || place.inside(lock, 1));
        held
    });
    let browser = Browser::open(Look::DESK);
    browser.go(&format!("https://127.0.0.1:{port}/page"));
    let shows = |text: &str| {
        let script = format!("return document.body.innerText.includes({text:?})");
        browser.wait(text, &script);
    };
    shows("The token of a [[client]]");
    assert_eq!(browser.run("return document.activeElement.id"), "token");
    browser.picture("live-sign-in-1366");
    assert_eq!(browser.wrong_in_any_theme("live-sign-in"), [""; 0]);
    browser.type_text("a-wrong-token-of-nobody");
    browser.press(&["Enter"]);
    shows("show a token that this node knows");
    browser.type_text(TOKEN);
    browser.press(&["Enter"]);
    shows("shop/orders");
    assert_eq!(browser.run("return document.body.innerText.includes('secret')"), false);
    let click = |text: &str| {
        let find = format!(
            "[...document.querySelectorAll('button')].find((it) => it.innerText === {text:?})"
        );
        browser.wait(text, &format!("return Boolean({find})"));
        browser.run(&format!("{find}.click()"));
    };
    click("shop/orders");
    // Without the right to break it.
    click("Break …");
    let fence =
        place.who("shop/orders")["holders"][0]["fence"].as_str().expect("digits").to_owned();
    browser.type_text(&fence);
    browser.press(&["Enter"]);
    shows("client operator may not break `shop/orders`");
    browser.press(&["Escape"]);
    // The node has no laboratory: the recording is a file for the machine of the operator.
    click("Record 10 s");
    let saved = "return document.querySelector('a[download]')?.download";
    assert_eq!(browser.wait("the file", saved), "shop_orders.recording");
    shows("doorway diagram --recorded shop_orders.recording --page");
    click("Sign out");
    shows("The token of a [[client]]");
    browser.run("location.reload()");
    shows("The token of a [[client]]");
}
