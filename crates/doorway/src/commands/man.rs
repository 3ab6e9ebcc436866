//! `doorway man`: the manual pages, made from the parser and the help.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli;

/// Print the manual page, or write the pages of all commands into a directory
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    doorway man | man -l -                          read the page of doorway itself\n  \
    doorway man ~/.local/share/man/man1             install the pages of all commands")]
pub(crate) struct Args {
    /// Write doorway.1, doorway-run.1 and so on into this directory [default: print doorway.1]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Print or write the pages.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    let Some(directory) = &args.directory else { return Ok(page(&command, out)?) };
    fs::create_dir_all(directory)
        .and_then(|()| write(&command, directory))
        .with_context(|| format!("cannot write manual pages to {}", directory.display()))
}

/// Write the page of a command, and those of the commands below it.
fn write(command: &clap::Command, directory: &std::path::Path) -> io::Result<()> {
    let mut text = Vec::new();
    page(command, &mut text)?;
    fs::write(directory.join(format!("{}.1", name(command))), text)?;
    command.get_subcommands().try_for_each(|below| write(below, directory))
}

/// The name of a page, such as `doorway-run`.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// Print the page of a command.
fn page(command: &clap::Command, out: &mut dyn Write) -> io::Result<()> {
    let man = Man::new(command.clone());
    // The title of the library leaves out an empty date, and so moves the rest of the footer.
    let (title, version) = (name(command).to_uppercase(), env!("CARGO_PKG_VERSION"));
    writeln!(out, ".TH {title} 1 \"\" \"doorway {version}\" \"Doorway Manual\"")?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(out)?;
    }
    let mut roff = Roff::default();
    if name(command) == "doorway" {
        for (heading, names) in cli::groups() {
            let below = names.filter_map(|name| command.find_subcommand(name));
            subcommands(&heading.to_uppercase(), below, &mut roff);
        }
    } else if command.has_subcommands() {
        subcommands("COMMANDS", command.get_subcommands(), &mut roff);
    }
    if let Some(text) = command.get_after_help() {
        sections(&text.to_string(), &mut roff);
    }
    roff.to_writer(out)
}

/// A section that lists commands by the names of their pages.
fn subcommands<'a>(
    heading: &str,
    commands: impl Iterator<Item = &'a clap::Command>,
    roff: &mut Roff,
) {
    roff.control("SH", [heading]);
    for command in commands {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        roff.control("TP", []);
        roff.text([bold(name(command)), roman("(1)")]);
        roff.text([roman(about)]);
    }
}

/// The text after the options of a help, as sections of a page.
///
/// A paragraph whose first line ends with a colon becomes a section of that name. Examples and
/// tables keep their lines; other text is filled. Paragraphs without a heading become notes.
fn sections(text: &str, roff: &mut Roff) {
    let mut in_notes = false;
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let lines: Vec<&str> = paragraph.lines().collect();
        let heading = lines[0].strip_suffix(':').filter(|_| lines.len() > 1);
        let body = if heading.is_some() { &lines[1..] } else { &lines[..] };
        match heading {
            Some(heading) => roff.control("SH", [heading.to_uppercase().as_str()]),
            None if in_notes => roff.control("PP", []),
            None => roff.control("SH", ["NOTES"]),
        };
        in_notes = heading.is_none();
        let is_table = || body.iter().any(|line| line.trim().contains("  "));
        let keeps_lines = heading.is_some_and(|heading| heading == "Examples" || is_table());
        if keeps_lines {
            roff.control("nf", []);
        }
        for line in body {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        if keeps_lines {
            roff.control("fi", []);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_help_becomes_sections() {
        let text = "Some\nnotes.\n\nExamples:\n  doorway run x -- ls\n  doorway who x\n\n\
                    Who shares:\n  Every user\n  does.\n\nVariables:\n  A    one\n";
        let mut roff = Roff::default();
        sections(text, &mut roff);
        let page = roff.to_roff();
        let expected = "\
.SH NOTES
Some
notes.
.SH EXAMPLES
.nf
doorway run x \\-\\- ls
doorway who x
.fi
.SH \"WHO SHARES\"
Every user
does.
.SH VARIABLES
.nf
A    one
.fi
";
        assert!(page.ends_with(expected), "{page}");
    }
}
