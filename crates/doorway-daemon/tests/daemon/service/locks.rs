//! Acquire, release, withdraw, break, and all questions.

use doorway_daemon::service::EventKind;
use doorway_node::RuleConfig;
use doorway_protocol::{Ask, Code, Mode, NamePattern, Reply, Request, Wait};
use doorway_sessions::principal::{PatternRights, Principal, Right, Rights};

use super::client::{ask, name};
use crate::common::settings::settings;
use crate::server::Server;

#[test]
fn one_client_is_inside_and_the_next_enters_with_a_higher_fence() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.session(), server.session());
    let first = one.acquire("a");
    let number = other.ask("a", Wait::Forever);
    server.until("one waits", |service| service.status().waiting == 1);
    assert!(one.release("a", first));
    let second = other.granted(number);
    assert!(second > first);
    let refused = one.ask("a", Wait::No);
    assert_eq!(one.refused(refused).code, Code::NotFree);
    let refused = one.ask("a", Wait::Ms(20));
    assert_eq!(one.refused(refused).code, Code::NotFree);
    assert_eq!(server.service.status().grants, 2);
}

#[test]
fn release_is_idempotent_and_never_frees_a_newer_grant() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.session(), server.session());
    let first = one.acquire("a");
    assert!(one.release("a", first));
    assert!(!one.release("a", first));
    let second = one.acquire("a");
    assert!(!one.release("a", first), "the fence of before");
    assert!(!other.release("a", second), "not its own");
    assert!(!one.release("b", second), "another lock");
    assert_eq!(server.service.held(), 1);
    assert!(one.release("a", second));
}

#[test]
fn withdrawing_gives_up_the_place_or_the_grant() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.session(), server.session());
    one.acquire("a");
    let number = other.ask("a", Wait::Forever);
    server.until("one waits", |service| service.status().waiting == 1);
    other.send(&Request::Withdraw(number));
    assert_eq!(other.refused(number).code, Code::Gone);
    assert_eq!(server.service.status().waiting, 0);
    one.send(&Request::Withdraw(1));
    server.until("it is released", |service| service.held() == 0);
    let number = other.ask("a", Wait::No);
    other.granted(number);
    other.send(&Request::Withdraw(99));
    assert_eq!(other.refused(99).code, Code::Gone);
}

#[test]
fn shared_holders_are_inside_together() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.session(), server.session());
    let shared = |wait| Ask { mode: Mode::Shared, ..ask("a", wait) };
    let number = one.ask_for(shared(Wait::No));
    one.granted(number);
    let number = other.ask_for(shared(Wait::No));
    other.granted(number);
    let number = other.ask("a", Wait::No);
    assert_eq!(other.refused(number).code, Code::NotFree);
}

#[test]
fn there_are_as_many_holders_as_permits_and_all_agree_on_the_number() {
    let server = Server::start(&settings());
    let mut client = server.session();
    let permits = |permits| Ask { permits: Some(permits), ..ask("a", Wait::No) };
    let fences: Vec<_> = (0..3)
        .map(|_| {
            let number = client.ask_for(permits(3));
            client.granted(number)
        })
        .collect();
    let number = client.ask_for(permits(3));
    assert_eq!(client.refused(number).code, Code::NotFree);
    let number = client.ask_for(permits(4));
    let refused = client.refused(number);
    assert_eq!(refused.code, Code::NotServed);
    assert!(refused.text.contains("3 permits"), "{refused}");
    let number = client.ask("a", Wait::No);
    assert_eq!(client.refused(number).code, Code::NotServed);
    let number = client.number();
    client.send(&Request::Inspect(number, name("a")));
    let Reply::Lock(_, report) = client.reply() else { panic!("no report") };
    assert_eq!((report.lock.as_str(), report.permits, report.holders.len()), ("a", 3, 3));
    let number = client.number();
    client.send(&Request::List { number, prefix: String::new(), after: None });
    let Reply::Locks(_, locks) = client.reply() else { panic!("no list") };
    assert_eq!((locks.locks.len(), locks.locks[0].lock.as_str()), (1, "a"));
    assert!(fences.into_iter().all(|fence| client.release("a", fence)));
    // The lock is unused now, so another number of permits is allowed, or none.
    let number = client.ask_for(permits(2));
    let fence = client.granted(number);
    assert!(client.release("a", fence));
    let plain = client.acquire("a");
    let number = client.ask_for(permits(2));
    let refused = client.refused(number);
    assert!(refused.text.contains("without permits"), "{refused}");
    assert!(client.release("a", plain));
    let number = client.ask_for(permits(1));
    client.granted(number);
}

#[test]
fn reserved_names_and_numbers_out_of_range_are_refused() {
    let server = Server::start(&settings());
    let mut client = server.session();
    let number = client.ask("%k/3/a", Wait::No);
    assert_eq!(client.refused(number).code, Code::Invalid);
    for permits in [0, 65] {
        let number = client.ask_for(Ask { permits: Some(permits), ..ask("a", Wait::No) });
        assert_eq!(client.refused(number).code, Code::Invalid);
    }
    let both = Ask { permits: Some(2), mode: Mode::Shared, ..ask("a", Wait::No) };
    let number = client.ask_for(both);
    assert_eq!(client.refused(number).code, Code::NotServed);
}

#[test]
fn breaking_a_lock_requires_its_fence_and_tells_the_holder() {
    let server = Server::start(&settings());
    let (mut holder, mut breaker) = (server.session(), server.client());
    let fence = holder.acquire("a");
    breaker.visit();
    let wrong = doorway_protocol::Fence::new(fence.view(), fence.clock() + 1);
    breaker.send(&Request::Break(1, name("a"), wrong));
    let refused = breaker.refused(1);
    assert_eq!(refused.code, Code::Gone);
    assert!(refused.text.contains(&fence.to_string()), "{refused}");
    breaker.send(&Request::Break(2, name("a"), fence));
    assert_eq!(breaker.reply(), Reply::Done(2));
    let Reply::Lost(lock, lost, why) = holder.reply() else { panic!("not told") };
    assert_eq!((lock.as_str(), lost), ("a", fence));
    assert!(why.starts_with("broken by uid "), "{why}");
    assert!(!holder.release("a", fence));
    assert!(holder.acquire("a") > fence);
}

/// A report is short, however many clients share the lock.
#[test]
fn breaking_with_a_wrong_fence_names_the_right_ones() {
    let server = Server::start(&settings());
    let (mut holder, mut breaker) = (server.session(), server.client());
    for _ in 0..12 {
        let shared = Ask { mode: Mode::Shared, ..ask("a", Wait::No) };
        let number = holder.ask_for(shared);
        holder.granted(number);
    }
    breaker.visit();
    breaker.send(&Request::Break(1, name("a"), doorway_protocol::Fence::new(9, 9)));
    let refused = breaker.refused(1);
    assert!(refused.text.ends_with(" and 4 more"), "{refused}");
}

#[test]
fn a_client_that_awaits_a_free_lock_is_told_when_it_is() {
    let server = Server::start(&settings());
    let (mut holder, mut visitor) = (server.session(), server.client());
    let fence = holder.acquire("a");
    visitor.visit();
    visitor.send(&Request::AwaitFree(1, name("b")));
    assert_eq!(visitor.reply(), Reply::Done(1), "nobody is inside");
    visitor.send(&Request::AwaitFree(2, name("a")));
    visitor.send(&Request::AwaitFree(3, name("a")));
    visitor.send(&Request::Withdraw(3));
    assert_eq!(visitor.refused(3).code, Code::Gone);
    assert!(holder.release("a", fence));
    assert_eq!(visitor.reply(), Reply::Done(2));
    visitor.send(&Request::Acquire(4, ask("a", Wait::No)));
    assert_eq!(visitor.refused(4).code, Code::Invalid);
}

#[test]
fn reports_name_holders_and_waiting_clients() {
    let server = Server::start(&settings());
    let (mut one, mut other) = (server.session(), server.session());
    let fence = one.acquire("deploy/web");
    one.acquire("other");
    other.ask("deploy/web", Wait::Forever);
    server.until("one waits", |service| service.status().waiting == 1);
    one.send(&Request::Inspect(50, name("deploy/web")));
    let Reply::Lock(50, report) = one.reply() else { panic!("no report") };
    assert_eq!(report.algorithm, "readers-writers");
    assert_eq!(report.holders.len(), 1);
    assert_eq!(report.holders[0].fence, fence);
    let expected = format!("test (pid {}) on here", std::process::id());
    assert_eq!(report.holders[0].client, expected);
    assert_eq!((report.waiters.len(), report.waiters[0].place), (1, Some(0)));
    let list = |number, prefix: &str| Request::List { number, prefix: prefix.into(), after: None };
    one.send(&list(51, "deploy/"));
    let Reply::Locks(51, locks) = one.reply() else { panic!("no list") };
    assert!(!locks.more);
    assert_eq!(locks.locks.len(), 1);
    assert_eq!((locks.locks[0].inside, locks.locks[0].waiting), (1, 1));
    one.send(&Request::Status(52));
    let Reply::Status(52, status) = one.reply() else { panic!("no status") };
    assert_eq!((status.sessions, status.held, status.waiting), (2, 2, 1));
}

#[test]
fn lists_are_paginated() {
    let server = Server::start(&settings());
    let mut client = server.session();
    for index in 0..450 {
        client.acquire(&format!("lock{index:03}"));
    }
    let number = client.ask_for(Ask { permits: Some(2), ..ask("lock200x", Wait::No) });
    client.granted(number);
    let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        client.send(&Request::List { number: 1000, prefix: "lock".into(), after });
        let Reply::Locks(_, page) = client.reply() else { panic!("no list") };
        seen.extend(page.locks.into_iter().map(|line| line.lock));
        pages += 1;
        if !page.more {
            break;
        }
        after = seen.last().map(|last| name(last));
    }
    assert_eq!((seen.len(), pages), (451, 3));
    assert!(seen.is_sorted());
    assert_eq!(seen[201], "lock200x");
}

#[test]
fn events_report_what_happens_to_grants() {
    let server = Server::start(&settings());
    let mut events = server.service.events();
    let mut client = server.session();
    let fence = client.acquire("a");
    client.release("a", fence);
    let lost = client.acquire("b");
    client.send(&Request::Break(90, name("b"), lost));
    client.reply();
    client.reply();
    let kinds: Vec<_> = std::iter::from_fn(|| events.try_recv().ok())
        .map(|event| (event.kind, event.lock.to_string(), event.fence.unwrap()))
        .collect();
    let expected = [
        (EventKind::Granted, "a".to_owned(), fence),
        (EventKind::Released, "a".to_owned(), fence),
        (EventKind::Granted, "b".to_owned(), lost),
        (EventKind::Lost, "b".to_owned(), lost),
    ];
    assert_eq!(kinds, expected);
}

/// A pattern in the settings may match every name, also the internal names of permits.
#[test]
fn a_rule_for_all_names_does_not_affect_permits() {
    let mut settings = settings();
    let (pattern, algorithm) = ("*".to_owned(), "readers-writers".to_owned());
    settings.node.rules.push(RuleConfig::new(pattern, algorithm, 1));
    let server = Server::start(&settings);
    let mut client = server.session();
    for _ in 0..2 {
        let number = client.ask_for(Ask { permits: Some(2), ..ask("a", Wait::No) });
        client.granted(number);
    }
    let number = client.ask_for(Ask { permits: Some(2), ..ask("a", Wait::No) });
    assert_eq!(client.refused(number).code, Code::NotFree);
}

#[test]
fn a_page_is_filled_with_visible_locks() {
    let server = Server::start(&settings());
    let mut client = server.session();
    for number in 0..300 {
        client.acquire(&format!("a/{number:03}"));
    }
    for number in 0..250 {
        let permits = (number % 50 == 0).then_some(2);
        let asked = client.ask_for(Ask { permits, ..ask(&format!("b/{number:03}"), Wait::No) });
        client.granted(asked);
    }
    let may = vec![Right::Inspect];
    let rights = Rights(vec![PatternRights { pattern: NamePattern::new("b/*"), may }]);
    let principal = Principal { name: "client eye".into(), uid: None, rights };
    let page = server.service.list(&principal, "", None);
    let names: Vec<_> = page.locks.iter().map(|line| line.lock.clone()).collect();
    let expected = |numbers: std::ops::Range<u32>| -> Vec<String> {
        numbers.map(|number| format!("b/{number:03}")).collect()
    };
    assert_eq!((names, page.more), (expected(0..200), true));
    let page = server.service.list(&principal, "", Some(&name("b/199")));
    let names: Vec<_> = page.locks.iter().map(|line| line.lock.clone()).collect();
    assert_eq!((names, page.more), (expected(200..250), false));
}
