//! Things known by name: completed by the shell, and an unknown name is answered with the nearest.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use doorway_core::algorithms::{ALL, Entry};
use doorway_core::quorums;
use doorway_lab::check::History;
use doorway_lab::{nearest, papers};

use crate::commands::paper;

/// Parses one of a list of names into what it stands for.
#[derive(Clone)]
pub(crate) struct Named<T> {
    /// What the names are of, as in "no algorithm is called ...".
    what: &'static str,
    /// The command that shows them all.
    shown_by: &'static str,
    all: Vec<(&'static str, T)>,
}

/// The algorithms of the list.
pub(crate) fn algorithms() -> Named<&'static Entry> {
    let all = ALL.iter().map(|entry| (entry.info.name, entry)).collect();
    Named { what: "algorithm", shown_by: "doorway list", all }
}

/// The algorithms between threads.
pub(crate) fn thread_algorithms() -> Named<&'static doorway_threads::algorithms::Entry> {
    let all = doorway_threads::algorithms::ALL.iter().map(|entry| (entry.info.name, entry));
    Named { what: "algorithm", shown_by: "doorway threads list", all: all.collect() }
}

/// The quorum constructions.
pub(crate) fn quorum_kinds() -> Named<quorums::Kind> {
    let all = quorums::Kind::ALL.map(|kind| (kind.name(), kind)).into();
    Named { what: "quorum construction", shown_by: "doorway help quorums", all }
}

/// What can be asked of a history.
pub(crate) fn histories() -> Named<History> {
    Named { what: "history", shown_by: "doorway help check", all: History::ALL.into() }
}

/// The tables of the papers.
pub(crate) fn papers() -> Named<paper::Choice> {
    let mut all: Vec<_> =
        papers::ALL.iter().map(|paper| (paper.name, paper::Choice::One(paper))).collect();
    all.push(("all", paper::Choice::All));
    Named { what: "table", shown_by: "doorway paper", all }
}

impl<T: Clone + Send + Sync + 'static> Named<T> {
    fn find(&self, name: &str) -> Result<T, String> {
        if let Some((_, value)) = self.all.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let Self { what, shown_by, .. } = self;
        let hint = nearest::hint(&name.to_lowercase(), self.all.iter().map(|(known, _)| *known));
        Err(format!("no {what} is called '{name}'{hint} (`{shown_by}` shows them all)"))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Named<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, _: Option<&Arg>, text: &OsStr) -> Result<T, Error> {
        self.find(&text.to_string_lossy())
            .map_err(|reason| Error::raw(ErrorKind::InvalidValue, reason).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.all.iter().map(|(name, _)| PossibleValue::new(*name))))
    }
}
