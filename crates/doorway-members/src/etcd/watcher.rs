//! Learns what other nodes have written, and whether etcd is there.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::core::{Attempt, Core, RANGE};
use super::line::{Line, Lines};
use super::wire::{self, Event, Range, Status};

/// How often etcd is asked for its own troubles.
const STATUS: Duration = Duration::from_secs(30);

/// A database of this size, in bytes, is worth a warning: by default etcd accepts no more than 2
/// GiB, and then refuses all changes.
const LARGE: u64 = 3 << 29;

/// Go on following the state of the group.
pub(super) async fn follow(core: Arc<Core>) {
    loop {
        let mut line = Line::new(&core.access);
        let why = match watch(&core, &mut line).await {
            Ok(mut lines) => loop {
                match take(&core, &mut lines).await {
                    Ok(true) => core.note(Attempt::Read, Ok(())),
                    Ok(false) => break None, // Read everything again.
                    Err(why) => break Some(why),
                }
            },
            Err(why) => Some(why),
        };
        if let Some(why) = why {
            core.note(Attempt::Read, Err(&why));
            sleep(core.timings().heartbeat()).await;
        }
    }
}

/// Read everything, and begin to watch.
async fn watch(core: &Core, line: &mut Line) -> Result<Lines, String> {
    let revision = core.read(line).await?;
    core.note(Attempt::Read, Ok(()));
    let body = wire::watch(&core.keys.prefix, revision + 1);
    let limit = core.timings().put();
    line.stream("/v3/watch", &body, limit).await.map_err(|error| error.why)
}

/// Take the next news of a watch. False if they are not enough to know the state.
async fn take(core: &Core, lines: &mut Lines) -> Result<bool, String> {
    let watched = wire::parse_watch(&lines.next().await?)?;
    core.check_etcd(watched.header)?;
    // Events come in the order of their revisions, and those of one revision come together.
    let mut events = watched.events;
    while let Some(revision) = events.first().map(|event| event.kv.mod_revision) {
        let count = events.iter().take_while(|it| it.kv.mod_revision == revision).count();
        let ops = events.drain(..count).map(Event::into_op).collect();
        let Some((known, old)) = core.newest() else { return Ok(false) };
        if revision <= known {
            continue; // This node has written it, or has read it already.
        }
        let Some(kept) = core.keys.apply(&old, ops)? else { return Ok(false) };
        core.learn(revision, &Arc::new(kept));
    }
    Ok(true)
}

/// Ask etcd now and then whether it is there. If a watch has ended unnoticed, this finds out what
/// it did not tell.
pub(super) async fn ping(core: Arc<Core>) {
    let mut line = Line::new(&core.access);
    let mut looked: Option<Instant> = None;
    loop {
        let pause = core.timings().ping();
        sleep(pause).await;
        if core.silence().is_none_or(|silence| silence >= pause) {
            let asked = look(&core, &mut line).await;
            core.note(Attempt::Read, asked.as_ref().copied().map_err(String::as_str));
            if asked.is_err() {
                continue;
            }
        }
        if looked.is_none_or(|looked| looked.elapsed() >= STATUS) {
            looked = Some(Instant::now());
            let limit = core.timings().put();
            let status = line.call("/v3/maintenance/status", &json!({}), limit).await;
            // etcd may refuse to tell, and this is only for people.
            core.warn(status.ok().and_then(|status| warning(&status)));
        }
    }
}

async fn look(core: &Core, line: &mut Line) -> Result<(), String> {
    let limit = core.timings().put();
    let asked = line.call(RANGE, &wire::get(&core.keys.record), limit).await;
    let range: Range = asked.map_err(|error| error.why)?;
    core.check_etcd(range.header)?;
    let revision = range.kvs.first().map_or(0, |pair| pair.mod_revision);
    let is_behind = || core.known.lock().revision < revision;
    if is_behind() {
        sleep(core.timings().ping() / 2).await;
    }
    if is_behind() || range.kvs.is_empty() {
        core.read(line).await?;
    }
    Ok(())
}

/// What an operator should know of a server of etcd.
fn warning(status: &Status) -> Option<String> {
    if !status.errors.is_empty() {
        return Some(format!("etcd reports: {}", status.errors.join("; ")));
    }
    (status.db_size >= LARGE).then(|| {
        let size = status.db_size >> 20;
        format!(
            "the database of etcd has {size} MiB; at its quota (2 GiB by default) it refuses all \
             changes: start etcd with --auto-compaction-retention=1, and defragment it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_and_a_large_database_are_told() {
        let status = |text: &str| wire::parse::<Status>(text.as_bytes()).unwrap();
        assert_eq!(warning(&status(r#"{"version":"3.4.23","dbSize":"20480"}"#)), None);
        let said = warning(&status(r#"{"dbSize":"1900000000"}"#)).unwrap();
        assert!(said.contains("1811 MiB") && said.contains("--auto-compaction-retention=1"));
        let said = warning(&status(r#"{"errors":["memberID:1 alarm:NOSPACE "]}"#)).unwrap();
        assert!(said.contains("NOSPACE"), "{said}");
    }
}
