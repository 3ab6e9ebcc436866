//! How commands find a node: one that starts later, that hangs, that is something else, or the next
//! of several.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use crate::network::Network;
use crate::place::{Place, Process, signal, until};

/// A port where something listens that does this with each connection, and counts them.
fn listen(serve: impl Fn(std::net::TcpStream) + Send + 'static) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its number").port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    spawn(move || {
        for stream in listener.incoming().flatten() {
            counted.fetch_add(1, SeqCst);
            serve(stream);
        }
    });
    (port, count)
}

#[test]
fn a_wait_is_also_for_a_node_that_starts_later() {
    let mut place = Place::empty();
    let mut command = place.command("run -w 60 x -- echo inside".split(' '));
    let waits = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(Duration::from_millis(1500));
    place.start();
    let done = waits.wait_with_output().unwrap();
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"inside\n"[..]), "{done:?}");
    place.kill_node();
    let begin = Instant::now();
    let (code, text) = place.code("run -w 2 x -- true");
    assert_eq!(code, Some(69), "{text}");
    assert!(text.contains("no node answered within 2") && text.contains(&place.socket()), "{text}");
    assert!(begin.elapsed() >= Duration::from_secs(2), "{:?}", begin.elapsed());
    let begin = Instant::now();
    assert_eq!(place.code("run -n x -- true").0, Some(69));
    assert!(begin.elapsed() < Duration::from_secs(2), "with -n there is one attempt");
}

#[test]
fn a_wait_is_also_for_a_port_where_nobody_listens_yet() {
    let network = Network::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let node = network.port;
    let mut command = network.command_at(&format!("tcp://127.0.0.1:{port}"), "run -w 60 x -- true");
    let waits = Process::spawn(&mut command);
    sleep(Duration::from_millis(1200));
    // The port leads to the node now, and every answer takes its time.
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    spawn(move || {
        for stream in listener.incoming().flatten() {
            let other = std::net::TcpStream::connect(("127.0.0.1", node)).unwrap();
            for (from, to) in [(&stream, &other), (&other, &stream)] {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        sleep(Duration::from_millis(260));
                        if to.write_all(&bytes[..count]).is_err() {
                            return;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    assert_eq!(waits.end().code(), Some(0));
    let slow = format!("tcp://127.0.0.1:{port}");
    let done = network.command_at(&slow, "run -n x -- true").output().unwrap();
    assert_eq!(done.status.code(), Some(0), "a round trip of 0.52 s is not an obstacle: {done:?}");
}

#[test]
fn a_node_that_hangs_is_named_after_two_seconds() {
    let place = Place::new();
    signal(place.node(), "STOP");
    for words in ["run -n x -- true", "status", "who x", "run -w 2 x -- true", "lock -n x --ttl 55"]
    {
        let begin = Instant::now();
        let (code, text) = place.code(words);
        assert_eq!(code, Some(69), "{words}: {text}");
        let why = format!(
            " s at {} (it accepts connections but does not answer: is it stopped?)",
            place.socket()
        );
        assert!(text.contains("no node answered within 2") && text.contains(&why), "{text}");
        assert!(begin.elapsed() < Duration::from_secs(6), "{words}: {:?}", begin.elapsed());
    }
    signal(place.node(), "CONT");
    let begin = Instant::now();
    until("what was given up is not granted", || place.code("run -n x -- true").0 == Some(0));
    assert!(begin.elapsed() < Duration::from_secs(30), "a lease was left: {:?}", begin.elapsed());
}

#[test]
fn something_else_at_the_port_is_named_and_not_flooded() {
    let network = Network::new();
    let (port, count) = listen(drop);
    let place = format!("tcp://127.0.0.1:{port}");
    let done = network.command_at(&place, "run -w 3 x -- true").output().unwrap();
    assert_eq!(done.status.code(), Some(69), "{done:?}");
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(text.contains(&place) && text.contains("closed the connection"), "{text}");
    let connects = count.load(SeqCst);
    assert!((2..60).contains(&connects), "{connects} connections in 3 seconds");

    let (port, _) = listen(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let place = format!("tcp://127.0.0.1:{port}");
    let begin = Instant::now();
    let done = network.command_at(&place, "run -w 60 x -- true").output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success() && text.contains(&place) && text.contains("HTTP"), "{text}");
    assert!(begin.elapsed() < Duration::from_secs(30), "there is nothing to wait for");

    let place = format!("tcp://127.0.0.1:{}", network.http);
    let done = network.command_at(&place, "run -w 2 x -- true").output().unwrap();
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(69), "{text}");
    assert!(text.contains("this is the HTTP port of the node"), "{text}");
    assert!(text.contains(&format!("sessions are at 127.0.0.1:{}", network.port)), "{text}");
}

#[test]
fn the_next_of_several_nodes_is_used() {
    let (mut first, second) = (Place::new(), Place::new());
    let list = format!("@doorway-test-nobody,{},{}", first.socket(), second.socket());
    let command = |words: &str| {
        let mut command = first.command(words.split(' '));
        command.env("DOORWAY_SOCKET", &list);
        command
    };
    assert_eq!(command("run -n x -- true").output().unwrap().status.code(), Some(0));
    let two = format!("run --socket @doorway-test-nobody --socket {} -n x -- true", first.socket());
    assert_eq!(second.code(&two).0, Some(0));
    let none = "status --socket @doorway-test-nobody,@doorway-test-no-one";
    let (code, text) = first.code(none);
    assert_eq!(code, Some(69), "{text}");
    assert!(text.contains("at @doorway-test-no-one (") && text.contains("-nobody ("), "{text}");

    // One waits at the first node, one holds a lock there, and then the node is gone.
    let holder = Process::spawn(&mut command("run --ttl 3 y -- sleep 100"));
    until("it is held", || first.inside("y", 1));
    let blocker = first.answer("lock x --ttl 60");
    let waiter = Process::spawn(&mut command("run -w 60 x -- sleep 1"));
    until("it waits", || first.waiting("x", 1));
    first.kill_node();
    until("the request goes to the second node", || second.inside("x", 1));
    assert_eq!(waiter.end().code(), Some(0), "{blocker}");
    assert_eq!(holder.end().code(), Some(123), "the lock is lost with its node");
    assert!(second.inside("y", 0));
}
