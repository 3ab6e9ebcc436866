//! Reads the settings again at every SIGHUP.
//!
//! Clients with their tokens and rights, and the limits, change while the service runs. The log
//! says what was taken over, and which other changes need a restart. Certificates are read by
//! [`crate::tls`].

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::service::Service;
use crate::settings::{Overrides, Settings};

/// The file of the settings, and what overrides it.
pub type Source = (PathBuf, Overrides);

/// The settings of a service that runs, as the last reload left them.
pub type SharedSettings = Arc<RwLock<Settings>>;

/// Reload the settings at every SIGHUP, forever. The signal is awaited as soon as this returns:
/// before, it would end the process.
pub(crate) fn watch(service: Service, current: SharedSettings) -> impl Future<Output = ()> + Send {
    let hangup = signal(SignalKind::hangup());
    reload(service, current, hangup)
}

async fn reload(service: Service, current: SharedSettings, hangup: io::Result<Signal>) {
    let Some((file, overrides)) = current.read().source.clone() else { return };
    let mut hangup = match hangup {
        Ok(hangup) => hangup,
        Err(error) => return tracing::warn!("SIGHUP will not reload the settings: {error}"),
    };
    while hangup.recv().await.is_some() {
        match Settings::load(&file, &overrides) {
            Ok(new) => take_over(&service, &current, new),
            Err(mistakes) => {
                let file = file.display();
                tracing::error!(%file, "the settings are not reloaded: {mistakes}");
            }
        }
    }
}

/// Take over what can change while the service runs.
fn take_over(service: &Service, current: &SharedSettings, new: Settings) {
    let Changes { taken, mut restart } = changes(&current.read(), &new);
    if new.members.is_some() && restart.contains(&LOCK) {
        restart.retain(|part| *part != LOCK);
        tracing::warn!(
            "the group agrees on its rules: `doorway members rules FILE` changes [[lock]] and \
             `algorithm`"
        );
    }
    if !taken.is_empty() {
        let mut current = current.write();
        current.clients.clone_from(&new.clients);
        // The system limits the files, not the settings.
        let files = current.limits.files;
        let limits = crate::settings::Limits { files, ..new.limits };
        current.limits = service.configure(limits, current.clients.clone());
    }
    let file = new.source.map(|(file, _)| file.display().to_string()).unwrap_or_default();
    match (taken.join(", "), restart.join(", ")) {
        (taken, restart) if taken.is_empty() && restart.is_empty() => {
            tracing::info!(file, "the settings are read again; nothing has changed");
        }
        (taken, restart) if restart.is_empty() => {
            tracing::info!(file, "the settings are read again; changed: {taken}");
        }
        (taken, restart) => {
            let taken = if taken.is_empty() { "nothing" } else { &taken };
            tracing::warn!(
                file,
                "the settings are read again; changed: {taken}; only a restart changes: {restart}"
            );
        }
    }
}

/// The part of the settings that has the rules for locks.
const LOCK: &str = "[[lock]]";

/// What differs between two settings.
struct Changes {
    /// What is taken over at once.
    taken: Vec<&'static str>,
    /// What needs a restart.
    restart: Vec<&'static str>,
}

/// The name of a part of the settings, and its value as a text.
type Part = (&'static str, fn(&Settings) -> String);

fn changes(old: &Settings, new: &Settings) -> Changes {
    let differ = |part: fn(&Settings) -> String| part(old) != part(new);
    let named = |parts: &[Part]| {
        parts.iter().filter(|(_, part)| differ(*part)).map(|(name, _)| *name).collect()
    };
    Changes {
        taken: named(&[
            ("[[client]]", |it| format!("{:?}", it.clients)),
            ("[limits]", |it| {
                format!("{:?}", crate::settings::Limits { files: 0, ..it.limits.clone() })
            }),
        ]),
        restart: named(&[
            ("group", |it| it.node.group.clone()),
            ("node", |it| it.node.me.clone()),
            ("data", |it| format!("{:?}", it.node.data)),
            ("[[member]]", |it| format!("{:?}", it.node.members)),
            ("[members]", |it| format!("{:?}", it.members)),
            (LOCK, |it| format!("{:?} {}", it.node.rules, it.node.algorithm)),
            ("limits.outstanding", |it| it.node.outstanding.to_string()),
            ("socket", |it| format!("{:?}", it.socket)),
            ("[sessions]", |it| format!("{:?}", it.sessions)),
            ("[http]", |it| format!("{:?} {:?}", it.http, it.hosts)),
            ("[redis]", |it| format!("{:?} {}", it.redis, it.redlock)),
            ("[etcd]", |it| format!("{:?}", it.etcd)),
            ("[tls]", |it| format!("{:?}", it.tls)),
            ("drain", |it| format!("{:?}", it.drain)),
            ("idle_stop", |it| format!("{:?}", it.idle_stop)),
        ]),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn changes_are_named_by_whether_they_need_a_restart() {
        let file = Path::new("/nowhere/doorway.toml");
        let read = |text: &str| Settings::parse(text, file, &Overrides::default()).unwrap();
        let old = read("");
        let new = read("drain = \"7s\"\n[limits]\ngrants = 7\n");
        let Changes { taken, restart } = changes(&old, &new);
        assert_eq!((taken, restart), (vec!["[limits]"], vec!["drain"]));
        let Changes { taken, restart } = changes(&old, &old);
        assert!(taken.is_empty() && restart.is_empty());
    }
}
