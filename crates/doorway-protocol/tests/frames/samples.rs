//! One sample of each message.

use doorway_protocol::{
    Absent, Ask, BackupSeat, Claim, Claims, ClientInfo, Code, DirectoryId, EtcdReport, Fence,
    Greeting, GroupBackup, Hello, Holder, LastHolder, LedgerTrouble, Life, LockLine, LockReport,
    Locks, MembersReport, MembersRequest, Mode, Name, NodeIdentity, NodeStatus, Opening, Refusal,
    Reply, Request, RuleTables, RulesReport, Scope, SeatReport, SeatRole, SeatState, Secret,
    SessionId, Wait, Waiter, Welcome, put,
};
use serde::Serialize;

/// The bytes of a frame, and the value in it as text.
pub(crate) struct Sample {
    pub(crate) value: String,
    pub(crate) bytes: Vec<u8>,
}

fn sample<T: Serialize + std::fmt::Debug>(value: &T) -> Sample {
    let mut bytes = Vec::new();
    put(value, &mut bytes);
    Sample { value: format!("{value:?}"), bytes }
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a valid name")
}

fn fence() -> Fence {
    Fence::new(3, 77)
}

fn claim() -> Claim {
    let (mode, permits) = (Mode::Shared, Some(4));
    Claim { lock: name("deploy"), mode, permits, fence: fence(), request: 9 }
}

fn refusal(code: Code) -> Refusal {
    Refusal { code, text: "why".to_owned() }
}

pub(crate) fn hellos() -> Vec<Hello> {
    let resume = |node| Opening::Resume {
        node,
        session: SessionId(5),
        secret: Secret([7; 16]),
        ttl_ms: 10_000,
        life: Life::Connection { inherited: true },
        held: vec![claim()],
        waiting: vec![11, 12],
        more: true,
    };
    let lives = [Life::Connection { inherited: false }, Life::Process { pid: 4321 }, Life::Lease];
    let new = lives.map(|life| Opening::New { ttl_ms: 500, life });
    let node = NodeIdentity { name: "one".to_owned(), directory: DirectoryId([9; 16]) };
    let openings = [Opening::Visit, resume(None)].into_iter().chain(new);
    let openings = openings.chain([resume(Some(node))]);
    let who = ClientInfo { label: "backup.sh".to_owned(), host: "north".to_owned(), pid: 77 };
    let hello = |opening| Hello {
        versions: (1, 1),
        who: who.clone(),
        token: Some("sesame".to_owned()),
        opening,
    };
    openings.map(hello).collect()
}

pub(crate) fn claims() -> Claims {
    Claims { held: vec![claim()], waiting: vec![13], more: false }
}

pub(crate) fn greetings() -> Vec<Greeting> {
    let welcome = |version, directory| Welcome {
        version,
        node: "one".to_owned(),
        scope: Scope::Cluster,
        session: Some((SessionId(6), Secret([8; 16]))),
        ttl_ms: 10_000,
        lost: vec![claim()],
        directory,
    };
    let directory = Some(DirectoryId([9; 16]));
    vec![Ok(welcome(1, None)), Err(refusal(Code::Gone)), Ok(welcome(3, directory))]
}

pub(crate) fn requests() -> Vec<Request> {
    let ask = |mode, permits, wait| Ask { lock: name("deploy"), mode, permits, wait };
    vec![
        Request::Acquire(1, ask(Mode::Exclusive, None, Wait::Forever)),
        Request::Acquire(2, ask(Mode::Shared, None, Wait::No)),
        Request::Acquire(300, ask(Mode::Exclusive, Some(3), Wait::Ms(2500))),
        Request::Withdraw(4),
        Request::Release(5, name("deploy"), fence()),
        Request::Alive(6),
        Request::Inspect(7, name("über/uns")),
        Request::List { number: 8, prefix: "de".to_owned(), after: Some(name("deploy")) },
        Request::Status(9),
        Request::Break(10, name("deploy"), fence()),
        Request::AwaitFree(11, name("deploy")),
        Request::Bye,
        Request::Renew(12, name("deploy"), fence()),
        Request::Drain(13, 10_000),
        Request::Evidence(14),
        Request::Members(15, MembersRequest::Show),
        Request::Members(16, MembersRequest::Init { lease_ms: Some(10_000), from_fixed: Some(7) }),
        Request::Members(
            17,
            MembersRequest::Add { name: "d".to_owned(), address: "d.example:7001".to_owned() },
        ),
        Request::Members(18, MembersRequest::Remove { name: "c".to_owned(), force: true }),
        Request::Members(19, MembersRequest::Replace { name: "b".to_owned() }),
        Request::Members(20, MembersRequest::Lease(5000)),
        Request::Members(21, MembersRequest::Log(7)),
        Request::Members(
            22,
            MembersRequest::Rules { rules: rules(), replaces: 0xcbf2_9ce4, force: true },
        ),
        Request::Members(23, MembersRequest::Arranged),
        Request::Once {
            number: 24,
            lock: name("backup"),
            period_ms: 3_600_000,
            key: [5; 16],
            who: ClientInfo { label: "backup.sh".to_owned(), host: "north".to_owned(), pid: 77 },
        },
        Request::Windows(25, name("backup")),
        Request::Keep(
            26,
            Ask {
                lock: name("deploy"),
                mode: Mode::Exclusive,
                permits: None,
                wait: Wait::Ms(2000),
            },
        ),
        Request::InUse(name("deploy"), fence()),
        Request::Ledger(27),
        Request::LastHolders(28, name("deploy")),
        Request::Members(27, restore()),
    ]
}

fn restore() -> MembersRequest {
    let seat = BackupSeat {
        name: "a".to_owned(),
        address: "a.example:7001".to_owned(),
        seat: "5eed".to_owned(),
        voter: true,
    };
    let backup = GroupBackup {
        group: "shop".to_owned(),
        cluster: "0123456789abcdef".to_owned(),
        view: 12,
        lease_ms: 10_000,
        longest_lease_ms: 60_000,
        seats: vec![seat],
        rules: rules(),
    };
    let backup = Box::new(backup);
    MembersRequest::Restore { backup, lease_ms: Some(5000), above: 14, check: true }
}

fn holder() -> Holder {
    Holder {
        node: "one".to_owned(),
        session: Some(5),
        client: "backup.sh, process 77 on north".to_owned(),
        shared: false,
        fence: fence(),
        held_ms: 1234,
    }
}

fn report() -> LockReport {
    let waiter = Waiter {
        node: "two".to_owned(),
        session: None,
        client: "deploy.sh".to_owned(),
        shared: true,
        place: Some(0),
        waited_ms: 99,
        missing: vec!["three".to_owned()],
        circle: Some(vec!["two/1".to_owned(), "one/5".to_owned()]),
    };
    LockReport {
        lock: "deploy".to_owned(),
        algorithm: "raymond".to_owned(),
        permits: 1,
        view: Some(3),
        holders: vec![holder()],
        waiters: vec![waiter],
        away: vec![Absent { node: "three".to_owned(), for_ms: 500 }],
        silent: vec!["four".to_owned()],
    }
}

fn status() -> NodeStatus {
    NodeStatus {
        node: "one".to_owned(),
        group: "east".to_owned(),
        version: "0.1.0".to_owned(),
        scope: Scope::Machine,
        pid: 99,
        up_ms: 100_000,
        view: None,
        members: vec!["one".to_owned(), "two".to_owned()],
        away: vec![],
        reclaiming_ms: Some(3000),
        sessions: 1,
        held: 2,
        waiting: 3,
        grants: 400,
    }
}

fn members() -> MembersReport {
    let seat = |name: &str, role, state, away_ms, waiting_for: &[&str]| SeatReport {
        name: name.to_owned(),
        address: format!("{name}.example:7001"),
        seat: "9f".to_owned(),
        role,
        state,
        away_ms,
        beat_ms: away_ms.is_none().then_some(700),
        waiting_for: waiting_for.iter().map(|&name| name.to_owned()).collect(),
    };
    MembersReport {
        node: "a".to_owned(),
        group: "east".to_owned(),
        cluster: Some("1f".to_owned()),
        view: 7,
        running: Some(7),
        lease_ms: 10_000,
        longest_lease_ms: 60_000,
        lease_left_ms: 8500,
        seats: vec![
            seat("a", SeatRole::Leader, SeatState::InView, None, &[]),
            seat("b", SeatRole::Voter, SeatState::Waiting, None, &["d"]),
            seat("c", SeatRole::Learner, SeatState::Away, Some(42_000), &[]),
            seat("d", SeatRole::Member, SeatState::Evicted, None, &[]),
        ],
        voters: 2,
        reachable: 1,
        no_quorum_ms: Some(3000),
        trouble: Some("start b".to_owned()),
        etcd: Some(EtcdReport {
            addresses: vec!["http://e1:2379".to_owned()],
            unreachable_ms: Some(4000),
            warning: Some("alarm".to_owned()),
        }),
        rules: Some(RulesReport {
            digest: "cbf29ce484222325".to_owned(),
            tables: rules().0,
            differs: Some("permits differ".to_owned()),
        }),
    }
}

fn rules() -> RuleTables {
    let table = |keys: &[(&str, &str)]| {
        keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    RuleTables(vec![
        table(&[("names", "slots"), ("algorithm", "raymond-k"), ("permits", "3")]),
        table(&[("algorithm", "lamport")]),
    ])
}

pub(crate) fn replies() -> Vec<Reply> {
    let line = LockLine {
        lock: "deploy".to_owned(),
        inside: 1,
        waiting: 2,
        holder: Some(holder()),
        longest_wait_ms: 17,
    };
    let codes = [
        Code::Invalid,
        Code::Forbidden,
        Code::Busy,
        Code::NotFree,
        Code::NotServed,
        Code::Gone,
        Code::Unavailable,
        Code::Broken,
        Code::Elsewhere,
    ];
    let mut replies = vec![Reply::Granted(1, fence())];
    replies.extend(codes.map(|code| Reply::Refused(2, refusal(code))));
    replies.extend([
        Reply::Released(3, true),
        Reply::Alive(4),
        Reply::Lock(5, Box::new(report())),
        Reply::Locks(6, Locks { locks: vec![line], more: true }),
        Reply::Status(7, Box::new(status())),
        Reply::Done(8),
        Reply::Lost(name("deploy"), fence(), "broken".to_owned()),
        Reply::Stopping(2000),
        Reply::Members(9, Box::new(members())),
        Reply::Arranged(23, vec!["locks `x*`: maekawa, quorums grid".to_owned()]),
        Reply::Window {
            number: 24,
            lock: name("backup@1h@2026-11-17T18:00:00Z"),
            fence: fence(),
            left_ms: 90_000,
        },
        Reply::Kept { number: 26, fence: fence(), more: 1000 },
        Reply::Wanted(name("deploy"), fence()),
        Reply::Ledger(27, None),
        Reply::Ledger(
            27,
            Some(LedgerTrouble {
                error: "no space is left in /data".to_owned(),
                remedy: "make room".to_owned(),
                for_ms: 5000,
            }),
        ),
        Reply::LastHolders(
            28,
            vec![LastHolder {
                node: "c".to_owned(),
                session: Some(5),
                client: Some("backup.sh".to_owned()),
                shared: false,
                fence: Some(fence()),
                heard_ms: 25_000,
            }],
        ),
    ]);
    replies
}

/// All samples.
pub(crate) fn all() -> Vec<Sample> {
    let mut all: Vec<Sample> = hellos().iter().map(sample).collect();
    all.push(sample(&claims()));
    all.extend(greetings().iter().map(sample));
    all.extend(requests().iter().map(sample));
    all.extend(replies().iter().map(sample));
    all
}
