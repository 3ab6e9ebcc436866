//! All requests of a blocking client.

use std::time::Duration;

use doorway_client::blocking::Client;
use doorway_client::{Code, Error, Life, Options, Scope, State};

use crate::common::daemon::Daemon;
use crate::common::{code, until};

#[test]
fn locks_are_acquired_tried_shared_and_released() {
    let daemon = Daemon::alone("");
    let (one, other) = (daemon.client(), daemon.client());
    let grant = one.acquire("a").enter().unwrap();
    assert_eq!((grant.lock().as_str(), grant.state()), ("a", State::Held));
    assert!(grant.remaining().is_some_and(|left| left > Duration::from_secs(5)));
    assert_eq!(code(&other.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    let short = Duration::from_millis(30);
    assert!(matches!(other.acquire("a").within(short).enter(), Err(Error::NotFree(_))));
    let fence = grant.fence();
    grant.release().unwrap();
    let next = other.acquire("a").try_now().enter().unwrap();
    assert!(next.fence() > fence);
    drop(next);
    let (left, right) = (one.acquire("b").shared().enter(), other.acquire("b").shared().enter());
    let (left, right) = (left.unwrap(), right.unwrap());
    assert_eq!(code(&one.acquire("b").try_now().enter().unwrap_err()), Code::NotFree);
    left.release().unwrap();
    right.release().unwrap();
    let writer = one.acquire("b").try_now().enter().unwrap();
    writer.release().unwrap();
    let all = one.lock_all(["y", "x"]).unwrap();
    assert_eq!(code(&other.acquire("x").try_now().enter().unwrap_err()), Code::NotFree);
    drop(all);
    until("both are free", || other.acquire("x").try_now().enter().is_ok());
    for wrong in ["", "%k/3/a", "a\n"] {
        assert!(one.acquire(wrong).enter().is_err(), "{wrong:?} is not a name");
    }
}

#[test]
fn permits_are_counted_and_their_number_is_agreed_on() {
    let daemon = Daemon::alone("");
    let client = daemon.client();
    let permit = || client.acquire("pool").permits(2).try_now().enter();
    let (one, _two) = (permit().unwrap(), permit().unwrap());
    assert_eq!(code(&permit().unwrap_err()), Code::NotFree);
    let refused = client.acquire("pool").permits(3).enter().unwrap_err();
    assert_eq!(code(&refused), Code::NotServed);
    assert!(refused.to_string().contains("2 permits"), "{refused}");
    assert_eq!(code(&client.acquire("pool").enter().unwrap_err()), Code::NotServed);
    let report = client.inspect("pool").unwrap();
    assert_eq!((report.lock.as_str(), report.permits, report.holders.len()), ("pool", 2, 2));
    one.release().unwrap();
    permit().unwrap().release().unwrap();
}

#[test]
fn queries_are_answered() {
    let daemon = Daemon::alone("");
    let (one, other) = (daemon.client(), daemon.client());
    let visitor = Client::connect(daemon.endpoint(), &Options::default().visit()).unwrap();
    assert_eq!(visitor.node().map(|node| (node.scope, node.session)), Some((Scope::Machine, None)));
    let grant = one.acquire("deploy/web").enter().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| other.acquire("deploy/web").enter().map(|grant| grant.fence()));
        until("it waits", || visitor.status().unwrap().waiting == 1);
        let report = visitor.inspect("deploy/web").unwrap();
        assert_eq!(report.algorithm, "readers-writers");
        assert_eq!((report.holders.len(), report.waiters.len()), (1, 1));
        assert_eq!(report.holders[0].fence, grant.fence());
        assert!(report.holders[0].client.starts_with("a client of node (pid "), "{report:?}");
        assert_eq!(report.waiters[0].place, Some(0));
        let list = visitor.list("deploy/", None).unwrap();
        assert_eq!((list.locks.len(), list.more), (1, false));
        assert_eq!((list.locks[0].inside, list.locks[0].waiting), (1, 1));
        assert!(visitor.list("other", None).unwrap().locks.is_empty());
        let status = visitor.status().unwrap();
        assert_eq!((status.sessions, status.held, status.node.as_str()), (2, 1, "node"));
        assert_eq!(code(&visitor.acquire("a").enter().unwrap_err()), Code::Invalid);
        let free = scope.spawn(|| visitor.await_free("deploy/web"));
        let fence = grant.fence();
        grant.release().unwrap();
        assert!(waits.join().unwrap().unwrap() > fence);
        free.join().unwrap().unwrap();
    });
    visitor.await_free("never/used").unwrap();
}

#[test]
fn a_broken_lock_is_lost_and_its_release_frees_nothing() {
    let daemon = Daemon::alone("");
    let (one, other, third) = (daemon.client(), daemon.client(), daemon.client());
    let (tell, told) = std::sync::mpsc::channel();
    one.on_lost(move |lost| tell.send(lost.clone()).unwrap());
    let grant = one.acquire("a").enter().unwrap();
    let fence = grant.fence();
    let wrong = other.break_lock("a", doorway_client::Fence::new(9, 9)).unwrap_err();
    assert_eq!(code(&wrong), Code::Gone);
    assert!(wrong.to_string().contains(&fence.to_string()), "{wrong}");
    other.break_lock("a", fence).unwrap();
    let lost = told.recv_timeout(crate::common::PATIENCE).unwrap();
    assert_eq!((lost.lock.as_str(), lost.fence), ("a", fence));
    assert!(lost.reason.contains("broken by uid "), "{lost}");
    assert!(grant.is_lost());
    assert_eq!(grant.remaining(), Some(Duration::ZERO));
    let next = other.acquire("a").try_now().enter().unwrap();
    // Repeated: nothing that is held now has that fence.
    assert!(grant.release().is_err());
    assert!(!one.release("a", fence).unwrap());
    assert!(!one.release("a", fence).unwrap());
    assert_eq!(next.state(), State::Held);
    assert_eq!(code(&third.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    next.release().unwrap();
}

#[test]
fn any_process_of_its_user_can_renew_and_release_a_lease() {
    let daemon = Daemon::alone("");
    let options = Options::default().ttl(Duration::from_millis(700)).life(Life::Lease);
    let script = Client::connect(daemon.endpoint(), &options).unwrap();
    let fence = script.acquire("a").enter().unwrap().keep();
    drop(script);
    let client = daemon.client();
    client.renew("a", fence).unwrap();
    assert_eq!(code(&client.acquire("a").try_now().enter().unwrap_err()), Code::NotFree);
    assert!(client.release("a", fence).unwrap());
    assert!(!client.release("a", fence).unwrap());
    assert_eq!(code(&client.renew("a", fence).unwrap_err()), Code::Gone);
    client.acquire("a").try_now().enter().unwrap().release().unwrap();
    // A lease that is not renewed ends by itself.
    let script = Client::connect(daemon.endpoint(), &options).unwrap();
    let fence = script.acquire("a").enter().unwrap().keep();
    drop(script);
    assert!(client.acquire("a").enter().unwrap().fence() > fence);
}
