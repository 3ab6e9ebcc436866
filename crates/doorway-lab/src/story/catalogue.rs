//! What a page is told about the algorithms: what they declare, their rules and their code.

use std::collections::BTreeMap;

use doorway_core::algorithms::ALL;
use doorway_core::{Channel, Kind, Needs};
use serde::Serialize;

use crate::refutations;
use crate::script::OPTIONS;
use crate::source::Source;

/// An algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct AlgorithmView {
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
    pub refuted: Option<&'static str>,
    /// The options of `doorway check` with which that is found.
    pub check: Option<&'static str>,
    /// Whether it has a shared mode.
    pub shared: bool,
    /// The options of a group that it has a use for, each with an example.
    pub options: Vec<(&'static str, &'static str)>,
    /// The rules of the paper.
    pub rules: Vec<RuleView>,
    /// The file with its code.
    pub file: &'static str,
    /// The text of that file.
    pub source: &'static str,
    /// What the fields of its states mean.
    pub fields: BTreeMap<String, String>,
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
pub fn catalogue() -> Vec<AlgorithmView> {
    let views = ALL.iter().filter_map(|entry| {
        let info = entry.info;
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
        let rule = |rule: crate::source::Rule| RuleView { number: rule.number, text: rule.text };
        Some(AlgorithmView {
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
            check: refutations::of(info.name).map(|refutation| refutation.check),
            shared: info.shared,
            options: OPTIONS.iter().filter(option).copied().collect(),
            rules: source.rules.into_iter().map(rule).collect(),
            file: source.file,
            source: source.text,
            fields: source.fields,
        })
    });
    views.collect()
}
