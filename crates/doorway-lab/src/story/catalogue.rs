//! What a page is told about the algorithms: what they declare, their rules and their code.

use std::collections::BTreeMap;

use doorway_core::algorithms::ALL;
use doorway_core::{Channel, Info, Kind, Needs};
use serde::Serialize;

use crate::refutations;
use crate::script::OPTIONS;
use crate::source::{Rule, Source, SourceFile};

/// An algorithm in the list of all algorithms.
#[derive(Clone, Debug, Serialize)]
pub struct AlgorithmEntry {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Authors, title and place of publication.
    pub paper: &'static str,
    /// The year of publication.
    pub year: u16,
    /// Its family.
    pub family: &'static str,
    /// "fifo" or "unordered".
    pub channel: &'static str,
    /// How the text fails, if it is wrong as printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuted: Option<&'static str>,
}

/// Everything about an algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct AlgorithmView {
    /// What the list says about it.
    #[serde(flatten)]
    pub entry: AlgorithmEntry,
    /// The options of `doorway check` with which that is found.
    pub check: Option<&'static str>,
    /// Whether it has a shared mode.
    pub shared: bool,
    /// Whether a client that waits may give up.
    pub withdraws: bool,
    /// The options of a group that it has a use for, each with an example.
    pub options: Vec<(&'static str, &'static str)>,
    /// The rules of the paper.
    pub rules: Vec<RuleView>,
    /// The files with its code, the one with the handlers first.
    pub files: Vec<FileView>,
    /// What the fields of its states mean.
    pub fields: BTreeMap<String, String>,
}

/// A file of an algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct FileView {
    /// Its path below the folder of the algorithms.
    pub path: &'static str,
    /// Its text below its opening comment, from which the rules are.
    pub source: &'static str,
    /// How many lines the opening comment has.
    pub skipped: usize,
}

/// A rule of a paper.
#[derive(Clone, Debug, Serialize)]
pub struct RuleView {
    /// Its number.
    pub number: usize,
    /// Its text.
    pub text: String,
}

/// All algorithms, in the order of the list.
pub fn catalogue() -> Vec<AlgorithmEntry> {
    ALL.iter().map(|listed| entry(&listed.info)).collect()
}

fn entry(info: &Info) -> AlgorithmEntry {
    AlgorithmEntry {
        name: info.name,
        summary: info.summary,
        paper: info.paper,
        year: info.year,
        family: match info.kind {
            Kind::Central => "central",
            Kind::Permission => "permission",
            Kind::Quorum => "quorum",
            Kind::Token => "token",
        },
        channel: if info.channel == Channel::Fifo { "fifo" } else { "unordered" },
        refuted: info.refuted,
    }
}

/// Everything about the algorithm of this name.
pub fn algorithm(name: &str) -> Option<AlgorithmView> {
    let info = &ALL.iter().find(|listed| listed.info.name == name)?.info;
    let source = Source::of(info.name)?;
    let option = |(name, _): &&(&str, &str)| match *name {
        "n" => false,
        "permits" | "seats" => info.permits,
        "quorums" => info.needs == Needs::Quorums,
        "weights" => matches!(info.needs, Needs::Weights | Needs::Quorums),
        "tree" => matches!(info.needs, Needs::Tree | Needs::Wiring),
        "topology" => info.needs == Needs::Wiring,
        "graph" | "initiators" => info.needs == Needs::Graph,
        _ => true,
    };
    let file = |file: &SourceFile| {
        let opening = file.text.split_inclusive('\n').take_while(|line| line.starts_with("//!"));
        let (skipped, length) =
            opening.fold((0, 0), |(lines, bytes), line| (lines + 1, bytes + line.len()));
        FileView { path: file.path, source: &file.text[length..], skipped }
    };
    let rule = |rule: &Rule| RuleView { number: rule.number, text: rule.text.clone() };
    Some(AlgorithmView {
        entry: entry(info),
        check: refutations::of(info.name).map(|refutation| refutation.check),
        shared: info.shared,
        withdraws: info.withdraws,
        options: OPTIONS.iter().filter(option).copied().collect(),
        rules: source.rules.iter().map(rule).collect(),
        files: source.files.iter().map(file).collect(),
        fields: source.fields.clone(),
    })
}
