//! Arguments that are names: the shell completes them, and an unknown name is answered with the
//! nearest known one.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use doorway_core::algorithms::{ALL, Entry};
use doorway_core::quorums;
use doorway_lab::check::History;
use doorway_lab::{nearest, papers, stories};

use crate::commands::explain::Subject;
use crate::commands::paper;
use crate::commands::problems::problem::{self, Problem};

/// Parses one of a list of names into the value that it stands for.
#[derive(Clone)]
pub(crate) struct NameParser<T> {
    /// The kind of thing that is named, as in "no algorithm is called ...".
    what: &'static str,
    /// The command that shows them all.
    shown_by: &'static str,
    all: Vec<(&'static str, T)>,
    /// Where else a name may be known, and what to say then.
    elsewhere: fn(&str) -> Option<String>,
}

fn nowhere_else(_: &str) -> Option<String> {
    None
}

/// What to say of an algorithm between threads where another kind of thing is expected.
fn between_threads(name: &str) -> Option<String> {
    let known = doorway_threads::algorithms::ALL.iter().any(|entry| entry.info.name == name);
    known.then(|| {
        format!(
            "'{name}' is an algorithm between threads: see `doorway explain {name}` and `doorway \
             threads check {name}`"
        )
    })
}

/// What to say of an algorithm between nodes where another kind of thing is expected.
fn between_nodes(name: &str) -> Option<String> {
    let known = ALL.iter().any(|entry| entry.info.name == name);
    known.then(|| {
        format!(
            "'{name}' is an algorithm between nodes: see `doorway explain {name}` and `doorway \
             check {name}`"
        )
    })
}

/// What to say of a problem where an algorithm is expected.
fn among_problems(name: &str) -> Option<String> {
    problem::all().iter().any(|problem| problem.name == name).then(|| {
        format!(
            "'{name}' is a problem besides mutual exclusion: see `doorway problems check {name}` \
             and `doorway problems show {name}`"
        )
    })
}

/// The algorithms between nodes.
pub(crate) fn algorithms() -> NameParser<&'static Entry> {
    let all = ALL.iter().map(|entry| (entry.info.name, entry)).collect();
    let elsewhere = |name: &str| between_threads(name).or_else(|| among_problems(name));
    NameParser { what: "algorithm", shown_by: "doorway list", all, elsewhere }
}

/// The algorithms between threads.
pub(crate) fn thread_algorithms() -> NameParser<&'static doorway_threads::algorithms::Entry> {
    let all = doorway_threads::algorithms::ALL.iter().map(|entry| (entry.info.name, entry));
    let elsewhere = |name: &str| between_nodes(name).or_else(|| among_problems(name));
    let shown_by = "doorway threads list";
    NameParser { what: "algorithm", shown_by, all: all.collect(), elsewhere }
}

/// The problems besides mutual exclusion.
pub(crate) fn problems() -> NameParser<Problem> {
    let all = problem::all().into_iter().map(|problem| (problem.name, problem)).collect();
    let elsewhere = |name: &str| between_nodes(name).or_else(|| between_threads(name));
    NameParser { what: "problem", shown_by: "doorway problems list", all, elsewhere }
}

/// The algorithms of both families.
pub(crate) fn explained() -> NameParser<Subject> {
    let nodes = ALL.iter().map(|entry| (entry.info.name, Subject::Nodes(entry)));
    let threads = doorway_threads::algorithms::ALL.iter();
    let threads = threads.map(|entry| (entry.info.name, Subject::Threads(entry)));
    let all = nodes.chain(threads).collect();
    let shown_by = "doorway list` or `doorway threads list";
    NameParser { what: "algorithm", shown_by, all, elsewhere: among_problems }
}

/// The quorum constructions.
pub(crate) fn quorum_kinds() -> NameParser<quorums::Kind> {
    let all = quorums::Kind::ALL.map(|kind| (kind.name(), kind)).into();
    NameParser {
        what: "quorum construction",
        shown_by: "doorway help quorums",
        all,
        elsewhere: nowhere_else,
    }
}

/// Parses how quorums are made: the name of a construction, or the sets themselves.
#[derive(Clone)]
pub(crate) struct QuorumPlans(NameParser<quorums::Kind>);

/// The quorum constructions, and quorums by hand.
pub(crate) fn quorum_plans() -> QuorumPlans {
    QuorumPlans(quorum_kinds())
}

impl TypedValueParser for QuorumPlans {
    type Value = quorums::Plan;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        text: &OsStr,
    ) -> Result<quorums::Plan, Error> {
        let shown = text.to_string_lossy();
        if !quorums::Plan::is_by_hand(&shown) && !shown.contains(':') {
            return self.0.parse_ref(command, arg, text).map(quorums::Plan::Kind);
        }
        let wrong = |reason| Error::raw(ErrorKind::InvalidValue, reason).with_cmd(command);
        shown.parse().map_err(wrong)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// The properties of a history that can be checked.
pub(crate) fn histories() -> NameParser<History> {
    let all = History::ALL.into();
    NameParser { what: "history", shown_by: "doorway help check", all, elsewhere: nowhere_else }
}

/// Accepts any name of a story; the shell completes the known ones.
#[derive(Clone)]
pub(crate) struct StoryNames;

/// The stories of papers and flaws.
pub(crate) fn stories() -> StoryNames {
    StoryNames
}

impl TypedValueParser for StoryNames {
    type Value = String;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, text: &OsStr) -> Result<String, Error> {
        Ok(text.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = stories::all().into_iter().map(|story| PossibleValue::new(story.name()));
        Some(Box::new(names))
    }
}

/// The tables of the papers.
pub(crate) fn papers() -> NameParser<paper::Choice> {
    let mut all: Vec<_> =
        papers::ALL.iter().map(|paper| (paper.name, paper::Choice::One(paper))).collect();
    all.push(("all", paper::Choice::All));
    NameParser { what: "table", shown_by: "doorway paper", all, elsewhere: nowhere_else }
}

impl<T: Clone + Send + Sync + 'static> NameParser<T> {
    fn find(&self, name: &str) -> Result<T, String> {
        if let Some((_, value)) = self.all.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let Self { what, shown_by, .. } = self;
        let lower = name.to_lowercase();
        if let Some(answer) = (self.elsewhere)(&lower) {
            return Err(answer);
        }
        let hint = nearest::hint(&lower, self.all.iter().map(|(known, _)| *known));
        Err(format!("no {what} is called '{name}'{hint} (`{shown_by}` shows them all)"))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NameParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, text: &OsStr) -> Result<T, Error> {
        self.find(&text.to_string_lossy())
            .map_err(|reason| Error::raw(ErrorKind::InvalidValue, reason).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.all.iter().map(|(name, _)| PossibleValue::new(*name))))
    }
}
