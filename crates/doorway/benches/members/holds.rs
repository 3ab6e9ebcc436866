//! Leases that the group has to keep, beside the locks of other services on the same disk. Each is
//! written to the disks of a majority before it is answered; Redis has one disk.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::group::Group;
use crate::http::Http;
use crate::others::LockService;

/// The times to acquire a lease of a minute at the leader of a group, and to acquire and release
/// it, in turns with the other services.
pub(crate) fn holds(
    group: &Group,
    others: &mut [Box<dyn LockService>],
    times: usize,
) -> Vec<(String, Vec<f64>)> {
    let mut doorway = Http::new(group.connect(group.leader()));
    let mut ours = [vec![], vec![]];
    let mut theirs: Vec<_> = others.iter().map(|_| [vec![], vec![]]).collect();
    for number in 0..times {
        let begin = Instant::now();
        let request = json!({ "request_id": number.to_string(), "ttl_ms": 60_000 });
        let fence = doorway.post("/v1/locks/orders/acquire", &request)["fence"].take();
        let held = begin.elapsed();
        doorway.post("/v1/locks/orders/release", &json!({ "fence": fence }));
        note(&mut ours, held, begin.elapsed());
        for (other, times) in others.iter_mut().zip(&mut theirs) {
            let begin = Instant::now();
            other.acquire();
            let held = begin.elapsed();
            other.release();
            note(times, held, begin.elapsed());
        }
    }
    let names = others.iter().map(|other| other.name());
    let all = ["long lease"].into_iter().chain(names).zip([ours].into_iter().chain(theirs));
    all.flat_map(|(name, [held, pairs])| {
        [(format!("{name}, acquire"), held), (format!("{name}, acquire + release"), pairs)]
    })
    .collect()
}

fn note([held, pairs]: &mut [Vec<f64>; 2], first: Duration, both: Duration) {
    held.push(first.as_secs_f64() * 1000.0);
    pairs.push(both.as_secs_f64() * 1000.0);
}
