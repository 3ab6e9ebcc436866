//! `doorway members rules`: the rules for locks of a group that agrees on its members.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use doorway_daemon::settings::Settings;
use doorway_protocol::{
    MembersReport, MembersRequest, NAMES, RuleChange, RuleTable, RuleTables, RulesReport,
};
use serde::Serialize;

use super::ask;
use super::confirm::confirm;
use crate::commands::print_json;
use crate::service::exit::{self, Exit};
use crate::service::options::LookArgs;
use crate::service::query::Query;

/// Show the rules for locks of the group, or change them while the group works
///
/// Without a file the command prints the rules on which the group has agreed, as `[[lock]]` tables
/// of a settings file. With a file it reads the `[[lock]]` tables and `algorithm` of that file,
/// shows how they differ from the rules of the group, and asks. The group then begins a view with
/// the new rules at all members at once. A client that holds a lock keeps it, and a client that
/// waits goes on waiting.
#[derive(clap::Args)]
pub(super) struct Args {
    /// A file with all rules, for example the settings of a node
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Show the difference, and change nothing
    #[arg(long, requires = "file")]
    dry_run: bool,

    /// Change the rules without asking
    #[arg(long, requires = "file")]
    yes: bool,

    /// Change the rules even if a lock has more holders than the new rules let in. Nobody enters
    /// such a lock until enough of them have left
    #[arg(long, requires = "file")]
    force: bool,
}

/// What `--json` prints about a change.
#[derive(Serialize)]
struct ChangeRecord<'a> {
    /// The hash of the rules before.
    before: &'a str,
    /// The hash of the rules in the file.
    after: String,
    changes: &'a [RuleChange],
    /// Whether the rules were changed.
    done: bool,
    /// The view that the members have agreed on.
    view: u64,
}

pub(super) fn run(
    args: &Args,
    node: &LookArgs,
    json: bool,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let Some(file) = &args.file else { return show(node, json, out) };
    let rules = Settings::load_rules(file);
    let rules = rules.map_err(|mistakes| Exit::new(exit::USAGE, mistakes.to_string()))?;
    let after = rules.tables();
    let mut query = Query::look(&node.address)?;
    let report = ask(&mut query, MembersRequest::Show)?;
    let before = known(&report)?;
    let tables = RuleTables(before.tables.clone());
    let changes = tables.changes_to(&after);
    let mut said = ChangeRecord {
        before: &before.digest,
        after: format!("{:016x}", after.digest()),
        changes: &changes,
        done: false,
        view: report.view,
    };
    if !json {
        for change in &changes {
            writeln!(out, "{change}")?;
        }
    }
    if changes.is_empty() || args.dry_run {
        if json {
            return print_json(out, &said);
        }
        if changes.is_empty() {
            writeln!(out, "the group {} has these rules already", report.group)?;
        }
        return Ok(());
    }
    out.flush()?;
    confirm("All members change to these rules at once.", args.yes)?;
    let (replaces, force) = (tables.digest(), args.force);
    let report = ask(&mut query, MembersRequest::Rules { rules: after, replaces, force })?;
    if json {
        (said.done, said.view) = (true, report.view);
        return print_json(out, &said);
    }
    let MembersReport { group, view, .. } = &*report;
    Ok(writeln!(out, "the group {group} has the rules {} from view {view} on", said.after)?)
}

/// The rules of a group that is founded.
fn known(report: &MembersReport) -> Result<&RulesReport, Exit> {
    report.rules.as_ref().ok_or_else(|| {
        let why = report.trouble.clone();
        Exit::new(
            exit::UNAVAILABLE,
            why.unwrap_or_else(|| "the group is not founded yet".to_owned()),
        )
    })
}

/// Print the rules on which the group has agreed.
fn show(node: &LookArgs, json: bool, out: &mut dyn Write) -> anyhow::Result<()> {
    let report = ask(&mut Query::look(&node.address)?, MembersRequest::Show)?;
    let rules = known(&report)?;
    if json {
        return print_json(out, rules);
    }
    writeln!(out, "# The rules {} of the group {}.", rules.digest, report.group)?;
    Ok(write!(out, "{}", settings(&rules.tables))?)
}

/// Rules as a settings file has them.
fn settings(tables: &[RuleTable]) -> String {
    let mut text = String::new();
    let (locks, others): (Vec<_>, Vec<_>) =
        tables.iter().partition(|table| table.contains_key(NAMES));
    for table in others.into_iter().chain(locks) {
        if table.contains_key(NAMES) {
            text.push_str("\n[[lock]]\n");
        }
        // The pattern comes first, as people write it.
        let names = table.get_key_value(NAMES).into_iter();
        for (key, value) in names.chain(table.iter().filter(|(key, _)| *key != NAMES)) {
            // A member may be called 7.
            let number = key.starts_with("permits") && value.parse::<u64>().is_ok();
            let value = if number { value.clone() } else { quoted(value) };
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}

/// A text as a string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_is_printed_is_read_as_the_same_rules() {
        let text = "algorithm = \"lamport\"\n\n[[lock]]\nnames = \"12\"\nalgorithm = \"maekawa\"\n\
                    permits = 1\n\n[[lock]]\nnames = \"s \\\"x\\\\ *\"\nalgorithm = \"raymond-k\"\n\
                    permits = 3\n";
        let tables = Settings::parse_rules(text, Path::new("rules.toml")).unwrap().tables();
        assert_eq!(settings(&tables.0), text);
    }
}
