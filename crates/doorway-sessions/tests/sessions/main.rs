//! The shipped sessions without a network, a disk and a clock: step by step, against random
//! schedules of client machines, and together with client machines in every schedule. The blocking
//! and the async client use the same shell over real sockets.

mod clients;
mod schedules;
mod search;
mod shell;
mod steps;
#[path = "../common/wait.rs"]
mod wait;

use proptest::test_runner::Config;

/// How the random tests run.
fn random() -> Config {
    Config { cases: 1000, failure_persistence: None, ..Config::default() }
}
