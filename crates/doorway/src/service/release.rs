//! Releasing locks at the end of a command.

use std::time::Duration;

use doorway_client::machine::UNLIMITED;
use doorway_client::{Event, Moment};

use super::acquire::Grants;
use super::event_loop::EventLoop;
use super::link::Link;
use super::stderr::print_line;

/// How long to wait for the node's answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Release the locks and wait for the node's answer, so that the next command finds them free.
/// Returns false if one of them was not held any more.
pub(crate) fn release(grants: &Grants, link: &mut Link, event_loop: &mut EventLoop) -> bool {
    let now = Moment::now();
    let release = |(lock, fence): &(_, _)| link.machine.release(now, lock, *fence);
    let mut numbers: Vec<u64> = grants.locks.iter().map(release).collect();
    let (mut kept, until) = (true, now.after(PATIENCE));
    link.flush();
    while !numbers.is_empty() && Moment::now() < until {
        let _ = event_loop.wait(link, until);
        while let Some(event) = link.event() {
            if let Event::Released { number, held } = event {
                numbers.retain(|one| *one != number);
                kept &= held;
            }
        }
    }
    link.machine.bye();
    link.flush();
    if !numbers.is_empty() {
        let what = grants.names();
        let latest = match grants.ttl {
            UNLIMITED => "when this process has ended".to_owned(),
            ttl => format!("at the latest {} s after it last heard from it", ttl.as_secs_f64()),
        };
        print_line(&format!(
            "unknown whether {what} is released, because the node does not answer this process; \
             the node frees it {latest}"
        ));
    }
    kept
}
