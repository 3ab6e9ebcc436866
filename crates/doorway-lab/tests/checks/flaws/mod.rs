//! Flaws of published texts, misreadings of them, and broken assumptions: for each, the checker
//! finds a shortest counterexample, and finds nothing wrong with the version without the flaw.
//!
//! `docs/flaws.md` and its pictures are written from the table `doorway_lab::flaws`: `cargo xtask
//! docs` does it, or `UPDATE=1 cargo test -p doorway-lab --test checks flaws::`.

mod page;

use doorway_lab::check::{Property, Verdict};
use doorway_lab::flaws::{self, Finding, Flaw};

/// The differences between the findings and the table.
fn complaints(flaw: &Flaw, wrong: &Finding, right: &Finding) -> Vec<String> {
    let Flaw { name, algorithm, steps, breaks, .. } = flaw;
    let mut complaints = Vec::new();
    if wrong.trace.title != *algorithm {
        complaints.push(format!("{name}: the algorithm is {}, not {algorithm}", wrong.trace.title));
    }
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
    let found = flaws::all().into_iter().map(|flaw| {
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
