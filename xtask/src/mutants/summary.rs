//! `docs/mutants.md`: the results of each module. The next run reads them again, so the rows are
//! written here beside the code that reads them.

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
tell from the original, for the reason given below. The fingerprint is that of the code without its
comments. The last column says whether the code has changed since the module was tried; then the
row is about code that is gone. A module without a row has not been tried yet.
";

const TABLE: &str = "
| module | mutants | caught | too slow | unviable | survivors | fingerprint | code |
|---|--:|--:|--:|--:|--:|---|---|
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

    fn line(&self, modules: &[Module<'_>]) -> String {
        let counts = self.counts.map(|count| count.to_string()).join(" | ");
        let code = if modules.iter().any(|module| self.is_about(module)) { "" } else { "changed" };
        format!("| `{}` | {counts} | {} | {code} |", self.module, self.fingerprint)
    }

    /// Is the row about the module with the code it has now?
    fn is_about(&self, module: &Module<'_>) -> bool {
        self.module == module.name && self.fingerprint == module.code_fingerprint()
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
        self.0.iter().any(|row| row.is_about(module))
    }

    pub(super) fn record(&mut self, module: &Module<'_>, outcome: &Outcome) {
        let Outcome { caught, timeouts, unviable, survivors } = outcome;
        self.0.retain(|row| row.module != module.name);
        self.0.push(Row {
            module: module.name.to_owned(),
            counts: [outcome.mutants(), *caught, *timeouts, *unviable, survivors.len()],
            fingerprint: module.code_fingerprint(),
        });
        self.0.sort_by(|one, other| one.module.cmp(&other.module));
    }

    pub(super) fn text(&self, modules: &[Module<'_>], listed: &[Survivor]) -> String {
        let mut lines: Vec<String> = self.0.iter().map(|row| row.line(modules)).collect();
        let current = |row: &&Row| modules.iter().any(|module| row.is_about(module));
        let current: Vec<&Row> = self.0.iter().filter(current).collect();
        let (tried, changed) = (self.0.len(), self.0.len() - current.len());
        let share = format!("Rows about code that has changed since: {changed} of {tried}.");
        let sum = |at: usize| current.iter().map(|row| row.counts[at]).sum::<usize>().to_string();
        lines.push(format!(
            "| all but those that have changed | {} | | |",
            [0, 1, 2, 3, 4].map(sum).join(" | ")
        ));
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
        format!("{HEAD}\n{share}\n{TABLE}{}\n", lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::File;

    #[test]
    fn what_is_written_is_read_again() {
        let code = File { path: "a.rs".to_owned(), text: "fn a() {}\n".to_owned() };
        let module = Module { name: "a", files: vec![&code] };
        let row = |module: &str, fingerprint: &str| Row {
            module: module.to_owned(),
            counts: [7, 4, 1, 1, 1],
            fingerprint: fingerprint.to_owned(),
        };
        let rows = vec![row("a", &module.code_fingerprint()), row("b", "f")];
        let survivor = Survivor {
            file: "a.rs".to_owned(),
            mutation: "replace || with &&".to_owned(),
            code: "|| b".to_owned(),
            reason: "They are the same.".to_owned(),
        };
        let listed = [survivor];
        let modules = [module];
        let text = Summary(rows).text(&modules, &listed);
        let table = "| `b` | 7 | 4 | 1 | 1 | 1 | f | changed |\n| all but those that have changed | 7 | 4 | 1 | 1 | 1 | | |\n";
        assert!(text.contains(table), "{text}");
        assert!(
            text.contains("\n\nRows about code that has changed since: 1 of 2.\n\n| module"),
            "{text}"
        );
        let current = format!("| {} |  |\n", modules[0].code_fingerprint());
        assert!(text.contains(&current), "{text}");
        let bullet = "\n### a.rs\n\n- `replace || with &&`, at `|| b`: They are the same.\n";
        assert!(text.ends_with(bullet), "{text}");
        assert_eq!(Summary::parse(&text).text(&modules, &listed), text);
    }
}
