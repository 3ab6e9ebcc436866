//! Examines everything that a node needs, and says what to do about what is wrong.

mod dates;
mod machine;
mod peers;
mod running;
mod votes;

use std::path::{Path, PathBuf};

use serde::Serialize;
use time::OffsetDateTime;

use crate::certificate::{Facts, SOON_DAYS};
use crate::settings::{FILE, Overrides, Settings};

pub(crate) use peers::answering;

/// The verdict on one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is right.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work.
    Wrong,
}

/// The result of examining one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was examined, in one word.
    pub area: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// What to do, unless it is right.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(area: &'static str, what: impl Into<String>) -> Self {
        Self { area, verdict: Verdict::Ok, what: what.into(), remedy: None }
    }

    fn warning(area: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { area, verdict: Verdict::Warning, what: what.into(), remedy }
    }

    fn wrong(area: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict: Verdict::Wrong, ..Self::warning(area, what, remedy) }
    }
}

/// The configuration of this machine's node, if the machine has one.
pub fn usual_file() -> Option<PathBuf> {
    // If the directory exists, there should be a node; a missing file is then reported.
    let file = Path::new(FILE);
    file.parent().is_some_and(Path::exists).then(|| file.to_owned())
}

/// Examine the node of a configuration, or without one the node of this user.
pub fn examine(file: Option<&Path>, overrides: &Overrides) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (read, shown) = match file {
        Some(file) => (Settings::load(file, overrides), file.display().to_string()),
        None => (Settings::local(overrides), "the node of this user, which needs no file".into()),
    };
    match read {
        Err(mistakes) => {
            findings.extend(mistakes.all.into_iter().map(|mistake| {
                let place = match (&mistakes.file, mistake.line) {
                    (Some(file), Some(line)) => format!("{file}:{line}: "),
                    (Some(file), None) => format!("{file}: "),
                    (None, _) => String::new(),
                };
                let what = format!("{place}{}", mistake.what);
                Finding::wrong("configuration", what, mistake.remedy)
            }));
            findings.extend(machine::clocks());
        }
        Ok(settings) => {
            findings.push(Finding::ok("configuration", shown));
            findings.extend(certificates(&settings, OffsetDateTime::now_utc()));
            findings.extend(machine::clocks());
            let running = running::ask(&settings);
            findings.extend(machine::permissions(&settings, running.pid.is_some()));
            findings.push(machine::limits(&settings, running.pid));
            let runs = running.pid.is_some();
            findings.push(running.finding);
            findings.extend(votes::count(running.members.as_ref()));
            findings.extend(votes::rules(running.members.as_ref()));
            findings.extend(peers::reach(&settings, runs, running.members.as_ref()));
        }
    }
    findings
}

/// Check how long the certificates are valid. The settings were read only if all else is right.
fn certificates(settings: &Settings, now: OffsetDateTime) -> Vec<Finding> {
    let Some(tls) = &settings.node.tls else { return Vec::new() };
    let mut findings = Vec::new();
    for (what, remedy, pem) in [
        ("the certificate of this node", "run `doorway ca node --renew`", &tls.certificate),
        (
            "the authority",
            "make another authority and put both certificates into `ca` of every member first",
            &tls.ca,
        ),
    ] {
        for facts in Facts::all(pem).unwrap_or_default() {
            let days = facts.days_left(now);
            let said = format!("{what} is good until {}, for {days} days", facts.last_day());
            findings.push(if days < SOON_DAYS {
                Finding::warning("certificates", said, remedy)
            } else {
                Finding::ok("certificates", said)
            });
        }
    }
    findings
}
