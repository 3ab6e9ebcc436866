//! Flaws of published texts, misreadings of them, and broken assumptions: for each, the checker
//! finds a shortest counterexample, and finds nothing wrong with the version without the flaw.
//!
//! `docs/flaws.md` and its pictures are written from this table: `cargo xtask docs` does it, or
//! `UPDATE=1 cargo test -p doorway-lab --test checks flaws::`.

mod drowsy;
mod page;
mod permissions;
mod quorums;
mod tokens;
mod worlds;

use doorway_lab::check::{Property, Report, Verdict};
use doorway_lab::{Trace, Violation};

/// A flaw, and the searches that refute it.
#[derive(Clone)]
pub(crate) struct Flaw {
    pub(crate) name: &'static str,
    /// What is wrong.
    pub(crate) what: &'static str,
    /// What happens in the counterexample, for readers of the page.
    pub(crate) story: &'static str,
    /// The version without the flaw.
    pub(crate) cure: &'static str,
    /// The property that it violates.
    pub(crate) breaks: Property,
    /// The number of steps of a shortest counterexample.
    pub(crate) steps: usize,
    /// Searches the wrong version for the violation.
    pub(crate) wrong: fn() -> Finding,
    /// Searches the right version for any violation.
    pub(crate) right: fn() -> Finding,
}

/// The answer of the checker about a world.
pub(crate) struct Finding {
    pub(crate) report: Report,
    /// The world in words.
    pub(crate) setting: String,
    /// The counterexample; only the opening if there is no violation.
    pub(crate) trace: Trace,
}

/// All flaws, in the order of the page.
fn flaws() -> impl Iterator<Item = Flaw> {
    quorums::flaws().into_iter().chain(permissions::flaws()).chain(tokens::flaws())
}

impl Finding {
    pub(crate) fn violation(&self) -> Option<&Violation> {
        match &self.report.verdict {
            Verdict::Violated { violation, .. } => Some(violation),
            Verdict::Holds | Verdict::NotExhausted => None,
        }
    }
}

/// The differences between the findings and the table.
fn complaints(flaw: &Flaw, wrong: &Finding, right: &Finding) -> Vec<String> {
    let Flaw { name, steps, breaks, .. } = flaw;
    let mut complaints = Vec::new();
    match &wrong.report.verdict {
        Verdict::Violated { trace, violation, .. } => {
            let broken = Property::violated_by(violation);
            if (trace.len(), broken) != (*steps, *breaks) {
                let found = trace.len();
                complaints.push(format!("{name}: {broken} in {found} steps, not {breaks} {steps}"));
            }
        }
        verdict => complaints.push(format!("{name}: {verdict:?}")),
    }
    if right.report.verdict != Verdict::Holds {
        complaints.push(format!("{name} without the flaw: {:?}", right.report.verdict));
    }
    complaints
}

#[test]
fn every_flaw_is_found_and_its_cure_holds_as_the_page_says() {
    let found = flaws().map(|flaw| {
        let (wrong, right) = ((flaw.wrong)(), (flaw.right)());
        (flaw, wrong, right)
    });
    let found: Vec<_> = found.collect();
    let complaints: Vec<String> =
        found.iter().flat_map(|(flaw, wrong, right)| complaints(flaw, wrong, right)).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let stale = page::stale(&found);
    assert!(stale.is_empty(), "stale: {}; `cargo xtask docs` writes them", stale.join(", "));
}
