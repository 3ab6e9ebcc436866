//! Whatever happens, nothing panics, and nothing is left when all clients have left.

use doorway_protocol::{Fence, Request};
use proptest::prelude::*;

use super::*;
use crate::shell::Shell;

const PIDS: u32 = 4;

/// One random thing that happens to a node.
#[expect(clippy::too_many_lines, reason = "one arm for each action")]
fn act(shell: &mut Shell, connections: &mut u64, action: u8, choice: u16) {
    let any = Connection(u64::from(choice) % (*connections + 1));
    let (number, lock) = (u64::from(choice / 4 % 4), ["a", "b", "c"][usize::from(choice / 16 % 3)]);
    let mode = if choice.is_multiple_of(5) { Mode::Shared } else { Mode::Exclusive };
    let permits = [None, None, None, Some(2), Some(3)][usize::from(choice / 48 % 5)];
    let wait = [Wait::No, Wait::Ms(700), Wait::Forever][usize::from(choice / 240 % 3)];
    let ask = Ask { lock: name(lock), mode, permits, wait };
    let held: Vec<_> = shell
        .sessions
        .grants()
        .map(|(session, lock, fence)| (session, lock.clone(), fence))
        .collect();
    let some = held.get(usize::from(choice) % held.len().max(1)).cloned();
    let (session, held, fence) = some.unwrap_or((1, name("a"), Fence::new(1, 1)));
    let input = match action % 20 {
        0..=2 => {
            *connections += 1;
            let connection = Connection(*connections);
            let pid = u32::from(choice) % PIDS;
            let inherited = choice.is_multiple_of(3);
            let from = if choice.is_multiple_of(2) { From::Here } else { From::Network(1) };
            let remote = from != From::Here;
            let life = match choice / 4 % 4 {
                0 => Life::Lease,
                1 if !remote => Life::Process { pid },
                _ => Life::Connection { inherited },
            };
            let ttl_ms = [600, 1500, u32::MAX][usize::from(choice / 16 % 3)];
            shell.run(Input::Connect { connection, remote });
            Input::Hello(Box::new(Opening {
                connection,
                principal: principal(from),
                remote,
                process: (!remote).then_some(ProcessId { pid, started: Some(1) }),
                hello: Hello {
                    versions: VERSIONS,
                    who: ClientInfo::default(),
                    token: None,
                    opening: match choice % 7 {
                        0 => doorway_protocol::Opening::Visit,
                        1 => doorway_protocol::Opening::Resume {
                            node: choice.is_multiple_of(2).then(shell::identity),
                            session: SessionId(session),
                            secret: Secret([7; 16]),
                            ttl_ms,
                            life,
                            held: vec![claim(lock, number)],
                            waiting: vec![number],
                            more: false,
                        },
                        _ => doorway_protocol::Opening::New { ttl_ms, life },
                    },
                },
                claims: Vec::new(),
                secret: Secret([7; 16]),
            }))
        }
        3..=6 => Input::Request(any, Request::Acquire(number, ask)),
        7 => Input::Request(any, Request::Release(number, held, fence)),
        8 => Input::Request(any, Request::Withdraw(number)),
        9 => Input::Request(any, Request::Renew(number, held, fence)),
        10 if choice.is_multiple_of(3) => Input::Request(any, Request::Bye),
        10 => Input::Heard(any),
        11 => Input::HangUp { connection: any, closed: !choice.is_multiple_of(4) },
        12..=14 => {
            *connections += 1;
            let key = match choice % 3 {
                0 => None,
                1 => Some(LeaseKey::Request(format!("k{number}"))),
                _ => Some(LeaseKey::Owner(format!("k{number}"))),
            };
            let call = match choice / 4 % 6 {
                0 => Call::Renew(held, fence, Some(Duration::from_millis(choice.into()))),
                1 => Call::Release(held, fence),
                2 => Call::Withdraw(name(lock), format!("k{number}")),
                _ => Call::Acquire(Box::new(LeaseAsk {
                    ask,
                    key,
                    ttl_ms: (!choice.is_multiple_of(7)).then_some(900),
                    unattended: choice.is_multiple_of(5),
                    label: String::new(),
                    remote: true,
                    secret: Secret([7; 16]),
                })),
            };
            Input::Call(Connection(*connections), principal(From::Network(1)), call)
        }
        15 => Input::CallTimedOut(any),
        16 => Input::Lost { session, name: held, fence },
        17 => {
            *connections += 1;
            let call = Call::Break(held, fence);
            Input::Call(Connection(*connections), principal(From::Here), call)
        }
        18 => return shell.process_ended(u32::from(choice) % PIDS),
        _ if choice.is_multiple_of(16) => {
            shell.kill();
            return shell.start(choice.is_multiple_of(3));
        }
        _ => {
            let now = shell.now().after(Duration::from_millis(u64::from(choice) % 1000));
            return shell.pass(now);
        }
    };
    shell.run(input);
}

/// Break the locks without end, and no others.
fn break_endless(shell: &mut Shell) {
    let is_endless = |session: u64| shell.sessions.expires(shell.now(), session).is_none();
    let endless = shell.sessions.grants().filter(|(session, ..)| is_endless(*session));
    let endless: Vec<_> = endless.map(|(_, lock, fence)| (lock.clone(), fence)).collect();
    for (lock, fence) in endless {
        let call = Call::Break(lock, fence);
        shell.run(Input::Call(Connection(u64::MAX), principal(From::Here), call));
    }
}

proptest! {
    #![proptest_config(crate::random())]

    #[test]
    fn nothing_is_left_of_clients_that_have_left(
        actions in prop::collection::vec(any::<(u8, u16)>(), 1..200),
    ) {
        let mut shell = Shell::new(at(0), Duration::from_millis(TTL.into()), true, None);
        let mut connections = 0;
        for (action, choice) in actions {
            act(&mut shell, &mut connections, action, choice);
        }
        for connection in (0..=connections).map(Connection) {
            shell.run(Input::HangUp { connection, closed: true });
        }
        shell.pass(shell.now().after(Duration::from_secs(5)));
        (0..PIDS).for_each(|pid| shell.process_ended(pid));
        shell.process_ended(42);
        shell.pass(shell.now().after(Duration::from_secs(15)));
        break_endless(&mut shell);
        shell.pass(shell.now().after(Duration::from_secs(15)));
        prop_assert!(shell.sessions.is_clean(), "{:?}", shell.sessions);
        prop_assert!(shell.ledger.is_empty(), "{:?}", shell.ledger);
        prop_assert_eq!(shell.locks.held(), 0);
    }
}
