//! `docs/mutants.md`: the results of each module. The next run reads them again.

use std::fs;

use anyhow::Context as _;

use super::Survivor;
use super::module::Module;
use super::trial::Outcome;

/// The path of the summary.
pub(super) const PATH: &str = "docs/mutants.md";

const HEAD: &str = "\
# Mutants

Written by `cargo xtask mutants`, which makes small changes to the algorithms and runs the tests on
each changed version, a *mutant*. A mutant is *caught* if a test fails, *too slow* if a test does
not end in time, and *unviable* if it does not compile. A *survivor* is a mutant that no test can
tell from the original, for the reason given below. The fingerprint is that of the source: it shows
whether a module has changed since it was tried. A module without a row has not been tried yet.

| module | mutants | caught | too slow | unviable | survivors | fingerprint |
|---|--:|--:|--:|--:|--:|---|
";

/// The results of one module.
struct Row {
    module: String,
    /// Mutants, caught, too slow, unviable, survivors.
    counts: [usize; 5],
    fingerprint: String,
}

impl Row {
    fn parse(line: &str) -> Option<Self> {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let module = cells.next()?.trim_end_matches('`').to_owned();
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = cells.next()?.parse().ok()?;
        }
        Some(Self { module, counts, fingerprint: cells.next()?.to_owned() })
    }

    fn line(&self) -> String {
        let counts = self.counts.map(|count| count.to_string()).join(" | ");
        format!("| `{}` | {counts} | {} |", self.module, self.fingerprint)
    }
}

/// The results of every module that has been tried, sorted by name.
pub(super) struct Summary(Vec<Row>);

impl Summary {
    pub(super) fn read() -> anyhow::Result<Self> {
        Ok(Self::parse(&fs::read_to_string(PATH).context(PATH)?))
    }

    fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(Row::parse).collect())
    }

    /// Was the module tried with the code it has now?
    pub(super) fn knows(&self, module: &Module<'_>) -> bool {
        let fingerprint = module.fingerprint();
        self.0.iter().any(|row| row.module == module.name && row.fingerprint == fingerprint)
    }

    pub(super) fn record(&mut self, module: &Module<'_>, outcome: &Outcome) {
        let Outcome { caught, timeouts, unviable, survivors } = outcome;
        self.0.retain(|row| row.module != module.name);
        self.0.push(Row {
            module: module.name.to_owned(),
            counts: [outcome.mutants(), *caught, *timeouts, *unviable, survivors.len()],
            fingerprint: module.fingerprint(),
        });
        self.0.sort_by(|one, other| one.module.cmp(&other.module));
    }

    pub(super) fn text(&self, listed: &[Survivor]) -> String {
        let mut lines: Vec<String> = self.0.iter().map(Row::line).collect();
        let sum = |at: usize| self.0.iter().map(|row| row.counts[at]).sum::<usize>().to_string();
        lines.push(format!("| all | {} | |", [0, 1, 2, 3, 4].map(sum).join(" | ")));
        lines.push("\n## Survivors".to_owned());
        let mut file = "";
        for survivor in listed {
            if survivor.file != file {
                file = &survivor.file;
                lines.push(format!("\n### {file}\n"));
            }
            let Survivor { mutation, code, reason, .. } = survivor;
            lines.push(format!("- `{mutation}`, at `{code}`: {reason}"));
        }
        format!("{HEAD}{}\n", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let row =
            Row { module: "a".to_owned(), counts: [7, 4, 1, 1, 1], fingerprint: "f".to_owned() };
        let survivor = Survivor {
            file: "a.rs".to_owned(),
            mutation: "replace || with &&".to_owned(),
            code: "|| b".to_owned(),
            reason: "They are the same.".to_owned(),
        };
        let listed = [survivor];
        let text = Summary(vec![row]).text(&listed);
        assert!(text.contains("| `a` | 7 | 4 | 1 | 1 | 1 | f |\n| all | 7 | 4 | 1 | 1 | 1 | |\n"));
        let bullet = "\n### a.rs\n\n- `replace || with &&`, at `|| b`: They are the same.\n";
        assert!(text.ends_with(bullet), "{text}");
        assert_eq!(Summary::parse(&text).text(&listed), text);
    }
}
