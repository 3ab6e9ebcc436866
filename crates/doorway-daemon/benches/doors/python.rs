//! Pairs from Python: our package, also with a lock that it keeps, and redis-py with Redis and with
//! our door for Redis clients.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::PYTHON;
use crate::servers::Servers;
use crate::shared::pin::Placement;
use crate::shared::samples::Samples;
use crate::wire::Way;

/// A Python for the clients; it may have redis-py.
pub(crate) struct Python {
    program: PathBuf,
    has_redis: bool,
}

impl Python {
    /// The Python that `REDIS_PYTHON` names, or the one of the system.
    pub(crate) fn find() -> Option<Self> {
        let program = std::env::var_os("REDIS_PYTHON").unwrap_or_else(|| "python3".into());
        let imports = |module: &str| {
            let mut python = std::process::Command::new(&program);
            python.args(["-c", &format!("import {module}")]).env("PYTHONPATH", package());
            python.output().is_ok_and(|done| done.status.success())
        };
        let has_redis = imports("redis");
        imports("doorway").then(|| Self { program: program.into(), has_redis })
    }

    /// What is measured: its name, its kind and where it connects.
    pub(crate) fn rows(&self, servers: &Servers) -> Vec<(&'static str, &'static str, Way)> {
        let mut rows = Vec::new();
        if self.has_redis {
            let redis = servers.redis.as_ref().map(|redis| redis.ways[0].clone());
            rows.extend(redis.map(|way| ("redis-py, Redis", "redis", way)));
            rows.push(("redis-py, Doorway", "redis", servers.ours.redis[0].clone()));
        }
        rows.push((PYTHON, "doorway", servers.ours.sessions[0].clone()));
        rows.push(("Python client, Doorway, kept", "kept", servers.ours.sessions[0].clone()));
        rows
    }

    /// The times of pairs of one process, which runs where the clients run.
    pub(crate) fn pairs(
        &self,
        placement: Placement,
        kind: &str,
        way: &Way,
        turn: Duration,
    ) -> Result<Samples, String> {
        let Way::Unix(socket) = way else { return Err("it is not a Unix socket".to_owned()) };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/doors/pairs.py");
        let mut python = placement.command(0);
        python.arg(&self.program).arg("-B").arg(script).arg(kind).arg(socket);
        python.arg(turn.as_secs_f64().to_string()).env("PYTHONPATH", package());
        let done = python.output().map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned());
        }
        let mut samples = Samples::default();
        for line in String::from_utf8_lossy(&done.stdout).lines() {
            let nanoseconds = line.parse().map_err(|_| format!("it prints {line:?}"))?;
            samples.push(Duration::from_nanos(nanoseconds));
        }
        Ok(samples)
    }
}

/// The directory of our package.
fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src")
}
