//! Looks at everything that a node needs and says what to do about what is wrong.

mod dates;
mod machine;
mod peers;
mod running;

use std::path::{Path, PathBuf};

use serde::Serialize;
use time::OffsetDateTime;

use crate::certificate::{Facts, SOON_DAYS};
use crate::settings::{FILE, Overrides, Settings};

/// How good something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and should be seen to.
    Warning,
    /// It does not work.
    Wrong,
}

/// What was found about one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at, in one word.
    pub area: &'static str,
    /// How good it is.
    pub verdict: Verdict,
    /// What was found.
    pub what: String,
    /// What to do, unless it is good.
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

/// The file of this machine's node, if it has one.
pub fn usual_file() -> Option<PathBuf> {
    // The directory alone says that there is to be one: without the file that is a mistake.
    let file = Path::new(FILE);
    file.parent().is_some_and(Path::exists).then(|| file.to_owned())
}

/// Examine the node of this file, or the one of this user if there is none.
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
            findings.extend(peers::reach(&settings, runs));
        }
    }
    findings
}

/// Chain, names and keys were found good when the file was read; what is left is how long.
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
