//! Giving locks back.

use std::time::Duration;

use doorway_client::{Event, Moment};

use super::acquire::Grants;
use super::event_loop::EventLoop;
use super::link::Link;
use super::stderr::print_line;

/// How long the node may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Give the locks back, and wait until the node has them: whoever comes after us finds them free.
/// False if one of them was not held any more.
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
        let (what, latest) = (grants.names(), grants.ttl.as_secs_f64());
        print_line(&format!(
            "unknown whether {what} is released: the node does not answer; it is free {latest} s \
             after it last heard of us at the latest"
        ));
    }
    kept
}
