//! `NAME... -- COMMAND...`: where the names of locks end and the command begins.

use std::env;
use std::ffi::{OsStr, OsString};

use doorway_protocol::Name;

use crate::cli;

/// Which locks to take, and which command to run while they are held.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The locks, in the order of their names, each once.
    pub(crate) locks: Vec<Name>,
    /// The command and its arguments.
    pub(crate) command: Vec<OsString>,
}

impl CommandLine {
    /// As [`Self::new`]. The parser drops a `--` before the first word, so the command line of this
    /// process is looked at.
    pub(crate) fn read(
        program: &str,
        words: &[OsString],
        line: Option<&OsStr>,
    ) -> Result<Self, String> {
        let before = env::args_os().rev().nth(words.len());
        Self::new(program, before.is_some_and(|word| word == "--"), words, line)
    }

    /// What to say when the command was not found: what else may have been meant.
    pub(crate) fn hint(&self, program: &str, words: &[OsString]) -> Option<String> {
        let [command, rest @ ..] = self.command.as_slice() else { return None };
        if rest.is_empty() && command.as_encoded_bytes().contains(&b' ') {
            return Some(format!("to run a line of the shell, say {program} NAME -- sh -c 'LINE'"));
        }
        let split = words.iter().any(|word| word == "--");
        let lock = self.locks.first().filter(|_| !split && !rest.is_empty())?;
        Some(format!(
            "the word after the first NAME is the command: for several locks say {program} {lock} \
             {} -- COMMAND...",
            command.display()
        ))
    }

    /// Split the words after the options of `program`, which is `doorway run` or one like it, and
    /// after a `--` that ended the options, if one `ended` them; `line` is the value of `-c`, if it
    /// was among the options.
    ///
    /// The words before the first `--` are names. Without a `--` the first word is the name and the
    /// rest is the command, as with flock(1), which also takes `-c LINE` after the name. A name may
    /// begin with `-` if the options have ended: `program -- -name -- COMMAND`.
    fn new(
        program: &str,
        ended: bool,
        words: &[OsString],
        line: Option<&OsStr>,
    ) -> Result<Self, String> {
        if let Some(first) = words.first()
            && ended
            && line.is_none()
            && !words.iter().any(|word| word == "--")
        {
            let first = first.display();
            return Err(format!(
                "no name before `--`: say {program} NAME -- {first}..., with the name of a lock"
            ));
        }
        let shell = |line: &OsString| vec!["sh".into(), "-c".into(), line.clone()];
        let (names, command) = if let Some(at) = words.iter().position(|word| word == "--") {
            (&words[..at], words[at + 1..].to_vec())
        } else if let [_, option, line] = words
            && (option == "-c" || option == "--command")
        {
            (&words[..1], shell(line))
        } else if line.is_some() {
            (words, Vec::new())
        } else {
            let (names, command) = words.split_at(words.len().min(1));
            if let Some(option) = command.first().filter(|word| is_option(word)) {
                return Err(no_option(program, option));
            }
            (names, command.to_vec())
        };
        let command = match line {
            Some(_) if !command.is_empty() => {
                return Err("give either -c LINE or a COMMAND, not both".to_owned());
            }
            Some(line) => shell(&line.into()),
            None => command,
        };
        if command.is_empty() {
            return Err(no_command(program, names));
        }
        if let Some(option) = names.iter().find(|word| is_option(word) && !ended) {
            return Err(no_option(program, option));
        }
        let mut locks = names.iter().map(name).collect::<Result<Vec<_>, _>>()?;
        if locks.is_empty() {
            return Err(format!("no name given: say {program} NAME -- COMMAND..."));
        }
        locks.sort();
        locks.dedup();
        Ok(Self { locks, command })
    }
}

fn is_option(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-")
}

fn no_option(program: &str, word: &OsString) -> String {
    let shown = word.display();
    let near = word.to_str().and_then(|word| cli::nearest_option(program, word));
    match near {
        // It is known, so it comes too late.
        Some(near) if *word == *near => format!(
            "'{near}' comes too late: options go before the first NAME, and `--` goes before a \
             COMMAND that begins with '-'"
        ),
        Some(near) => format!("'{shown}' is unknown; did you mean '{near}'?"),
        None => format!(
            "'{shown}' is unknown: `--` goes before a COMMAND that begins with '-', and before all \
             NAMEs if one of them does; `{program} -h` lists the options"
        ),
    }
}

/// The error of a command line without a command. A number alone is how flock(1) is given a file
/// descriptor, to hold a lock for the rest of a script.
fn no_command(program: &str, names: &[OsString]) -> String {
    let is_number = |name: &OsString| {
        let bytes = name.as_encoded_bytes();
        !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
    };
    let missing = match names {
        [name] => {
            let name = name.display();
            format!("'{name}' is taken for the name of a lock, and no command follows")
        }
        _ => "no command follows the names".to_owned(),
    };
    let mut text = format!("{missing}: say {program} NAME -- COMMAND...");
    if let [name] = names
        && is_number(name)
    {
        text +=
            " (file descriptors cannot be locked; `doorway lock NAME` takes a lock for a script)";
    }
    text
}

fn name(word: &OsString) -> Result<Name, String> {
    let text = word.to_str().ok_or_else(|| {
        format!("'{}' is not the name of a lock: names are UTF-8", word.display())
    })?;
    Name::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, line: Option<&str>) -> Result<(String, String), String> {
        let words: Vec<OsString> = text.split_whitespace().map(Into::into).collect();
        split(false, &words, line)
    }

    /// The names and the command of `doorway run`. A `--` may have `ended` its options before.
    fn split(
        ended: bool,
        words: &[OsString],
        line: Option<&str>,
    ) -> Result<(String, String), String> {
        let CommandLine { locks, command } =
            CommandLine::new("doorway run", ended, words, line.map(OsStr::new))?;
        let locks: Vec<_> = locks.iter().map(Name::as_str).collect();
        let command: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        Ok((locks.join(" "), command.join(" ")))
    }

    #[test]
    fn names_end_and_the_command_begins_at_the_first_two_dashes() {
        for (text, line, locks, command) in [
            ("x -- ls -l", None, "x", "ls -l"),
            ("x ls -l", None, "x", "ls -l"),
            ("x ls -c -n", None, "x", "ls -c -n"),
            ("b a b -- ls -- -l", None, "a b", "ls -- -l"),
            ("x -c ls", None, "x", "sh -c ls"),
            ("x sh -c ls", None, "x", "sh -c ls"),
            ("x", Some("ls -l"), "x", "sh -c ls -l"),
            ("y x", Some("ls"), "x y", "sh -c ls"),
            ("x -- -c ls", None, "x", "-c ls"),
        ] {
            assert_eq!(words(text, line), Ok((locks.into(), command.into())), "{text}");
        }
    }

    #[test]
    fn a_name_may_begin_with_a_dash_after_the_options_have_ended() {
        let words = ["-b", "-a", "--", "ls", "-l"].map(OsString::from);
        assert_eq!(split(true, &words, None), Ok(("-a -b".into(), "ls -l".into())));
        assert_eq!(split(true, &words[..1], Some("ls")), Ok(("-b".into(), "sh -c ls".into())));
        let error = split(true, &words[..1], None).unwrap_err();
        assert!(error.contains("no name before `--`"), "{error}");
    }

    #[test]
    fn the_error_names_what_is_missing_or_too_much() {
        for (text, line, why) in [
            ("", None, "no command"),
            ("x", None, "'x' is taken for the name of a lock, and no command follows"),
            ("x --", None, "'x' is taken for the name of a lock, and no command follows"),
            ("x y --", None, "no command follows the names: say doorway run NAME -- COMMAND..."),
            ("9", None, "`doorway lock NAME`"),
            ("-- ls", None, "no name"),
            ("", Some("ls"), "no name"),
            ("x -- ls", Some("ls"), "not both"),
            ("x -n -- ls", None, "'-n' comes too late"),
            ("x --nonblok -- ls", None, "did you mean '--nonblock'?"),
            ("x -n", Some("ls"), "before the first NAME"),
            ("x -n ls", None, "`--` goes before a COMMAND"),
            ("x -z ls", None, "'-z' is unknown: `--` goes before a COMMAND that begins with '-'"),
            ("-z -- ls", None, "and before all NAMEs if one of them does"),
            ("--block-non x -- ls", None, "'--block-non' is unknown"),
        ] {
            let error = words(text, line).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
