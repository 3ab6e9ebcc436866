//! The setup of a script: the line `run ALGORITHM n=3 ...` and the quorums below it.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use doorway_core::algorithms::ALL;
use doorway_core::quorums::Quorums;
use doorway_core::{
    Channel, Graph, Group, GroupError, Holder, Info, Mode, Needs, NodeId, Shape, Start, Wiring,
};

use super::ScriptError;
use crate::check::History;
use crate::erased::AnyAlgorithm;
use crate::nearest::hint;
use crate::{FOREVER, Limits, Victims, World};

/// The largest group of a script. Scripts are for people to read.
pub const MAX_NODES: usize = 100;

/// The options of `run`, each with an example of its value.
pub const OPTIONS: [(&str, &str); 13] = [
    ("n", "3"),
    ("channel", "fifo or unordered"),
    ("holder", "2 or 1,3: the nodes that are inside at the start"),
    ("begin", "node-1 or one-pass: where the token of a token algorithm comes from"),
    ("permits", "2"),
    ("seats", "1"),
    ("quorums", "grid"),
    ("weights", "2,1,1"),
    ("tree", "chain, star or balanced:2"),
    ("topology", "mesh, ring or tree"),
    ("graph", "mesh, ring, or edges as in 1-2,2-3"),
    ("initiators", "1,3"),
    ("history", "fences, order or price: the history that nodes keep and that is then judged"),
];

/// What `run` and the `quorum` lines below it say.
#[derive(Default)]
pub(super) struct Setup<'a> {
    /// The line of `run`; 0 until it is read.
    pub(super) line: usize,
    /// Everything after `run`, which is the title of the diagram.
    pub(super) title: &'a str,
    pub(super) algorithm: &'a str,
    pub(super) size: usize,
    shape: Shape,
    channel: Option<Channel>,
    holders: Vec<NodeId>,
    /// Whether one pass of `ricart-agrawala` makes the token.
    one_pass: bool,
    /// The history that nodes keep, if any.
    pub(super) history: Option<History>,
    /// The quorums given in the script, by node; empty if there are none.
    quorums: Vec<Option<Vec<NodeId>>>,
    /// Was there another command already, so that the group can no longer be changed?
    pub(super) closed: bool,
}

impl<'a> Setup<'a> {
    /// Parse `run NAME n=3 ...`.
    pub(super) fn run(&mut self, number: usize, line: &'a str) -> Result<(), String> {
        if self.line > 0 {
            return Err(format!("a second 'run'; the first is in line {}", self.line));
        }
        let title = line.strip_prefix("run").unwrap_or_default().trim_start();
        let mut words = title.split_whitespace();
        let name =
            words.next().ok_or("missing algorithm; an example is 'run ricart-agrawala n=3'")?;
        if ALL.iter().all(|entry| entry.info.name != name) {
            return Err(unknown_algorithm(name));
        }
        let mut options: BTreeMap<&str, &str> = BTreeMap::new();
        for word in words {
            let Some((key, value)) = word.split_once('=') else {
                return Err(format!("'{word}' is not of the form OPTION=VALUE, as in n=3"));
            };
            if options.insert(key, value).is_some() {
                return Err(format!("'{key}' is given twice"));
            }
        }
        let size =
            options.remove("n").ok_or("missing number of nodes; add an option such as n=3")?;
        self.size = read("n", size)?;
        if self.size == 0 || self.size > MAX_NODES {
            return Err(format!("a script has 1 to {MAX_NODES} nodes, not {size}"));
        }
        for (key, value) in options {
            self.option(key, value)?;
        }
        (self.line, self.title, self.algorithm) = (number, title, name);
        Ok(())
    }

    fn option(&mut self, key: &str, value: &str) -> Result<(), String> {
        let shape = &mut self.shape;
        match key {
            "holder" => self.holders = nodes(value, self.size)?,
            "channel" => {
                let channels = [("fifo", Channel::Fifo), ("unordered", Channel::Unordered)];
                self.channel = Some(one_of(key, value, &channels)?);
            }
            "begin" => {
                self.one_pass = one_of(key, value, &[("node-1", false), ("one-pass", true)])?;
            }
            "permits" => shape.permits = Some(read(key, value)?),
            "seats" => shape.seats = Some(read(key, value)?),
            "quorums" => shape.quorums = Some(value.parse()?),
            "weights" => {
                let weights = value.split(',').map(|weight| read(key, weight));
                shape.weights = Some(weights.collect::<Result<_, _>>()?);
            }
            "tree" => shape.tree = Some(value.parse()?),
            "topology" => {
                let wirings =
                    [("mesh", Wiring::Mesh), ("ring", Wiring::Ring), ("tree", Wiring::Tree)];
                shape.wiring = Some(one_of(key, value, &wirings)?);
            }
            "graph" => shape.graph = Some(graph(value, self.size)?),
            "history" => self.history = Some(one_of(key, value, &History::ALL)?),
            "initiators" => shape.initiators = Some(nodes(value, self.size)?.into_iter().collect()),
            _ => {
                let near = hint(key, OPTIONS.map(|(name, _)| name));
                return Err(format!("unknown option '{key}'{near}"));
            }
        }
        Ok(())
    }

    /// Parse `quorum 7 = 2 7 10 13`.
    pub(super) fn quorum(&mut self, line: &str) -> Result<(), String> {
        if self.line == 0 || self.closed {
            return Err("'quorum' must be directly below 'run', before any other command".into());
        }
        let (left, right) = line
            .split_once('=')
            .ok_or_else(|| format!("'{line}' is not of the form 'quorum 1 = 1 2 3'"))?;
        let owner = left.strip_prefix("quorum").unwrap_or_default().trim();
        let owner = node(owner, self.size)?;
        let members = right.split_whitespace().map(|word| node(word, self.size));
        let mut members: Vec<NodeId> = members.collect::<Result<_, _>>()?;
        members.sort_unstable();
        members.dedup();
        self.quorums.resize(self.size, None);
        match self.quorums[owner.index()].replace(members) {
            None => Ok(()),
            Some(_) => Err(format!("the quorum of node {owner} is given twice")),
        }
    }

    /// The first world of the script.
    pub(super) fn world(&self) -> Result<World, ScriptError> {
        let wrong = |message: String| ScriptError::new(self.line, message);
        let algorithm = if self.one_pass {
            let unfit = || wrong(format!("{} has no use for 'begin'", self.algorithm));
            AnyAlgorithm::by_one_pass(self.algorithm).ok_or_else(unfit)?
        } else {
            let unknown = || wrong(unknown_algorithm(self.algorithm));
            AnyAlgorithm::named(self.algorithm).ok_or_else(unknown)?
        };
        let group = self.group(algorithm.info()).map_err(wrong)?;
        let free = group.permits() as usize;
        if self.holders.len() > free {
            let many = self.holders.len();
            return Err(wrong(format!("{many} holders, but at most {free} may be inside at once")));
        }
        let holders = self.holders.iter().enumerate();
        if let Some((_, twice)) = holders.clone().find(|(at, h)| self.holders[..*at].contains(h)) {
            return Err(wrong(format!("node {twice} is named as a holder twice")));
        }
        let inside = |(_, &node): (_, &NodeId)| Holder { node, mode: Mode::Exclusive, permits: 1 };
        let start = Start { holders: holders.map(inside).collect(), floor: 0 };
        // The script decides what happens, so it may use any number of requests and faults.
        let limits = Limits {
            acquires: vec![(FOREVER, Mode::Exclusive); self.size],
            losses: u32::MAX,
            duplicates: u32::MAX,
            crashes: u32::MAX,
            victims: Victims::Anyone,
            detection: true,
            forgetting: true,
            withdrawing: true,
        };
        let channel = self.channel.unwrap_or(algorithm.info().channel);
        let algorithm = match self.history {
            Some(history) => history.watch(algorithm),
            None => algorithm,
        };
        Ok(World::new(algorithm, Arc::new(group), &start, channel, limits))
    }

    fn group(&self, info: &Info) -> Result<Group, String> {
        let say = |error: GroupError| error.to_string();
        let group = info.group(self.size, &self.shape).map_err(say)?;
        if self.quorums.is_empty() {
            return Ok(group);
        }
        if info.needs != Needs::Quorums {
            return Err(format!("{} has no use for quorums", info.name));
        }
        let mut sets = Vec::new();
        for (node, set) in group.nodes().zip(&self.quorums) {
            let missing = || format!("missing quorum of node {node}; add 'quorum {node} = ...'");
            sets.push(set.clone().ok_or_else(missing)?);
        }
        Quorums::from_sets(sets).and_then(|quorums| group.with_quorums(quorums)).map_err(say)
    }
}

/// Parse the number of a node. Scripts count nodes from 1.
pub(super) fn node(word: &str, size: usize) -> Result<NodeId, String> {
    match word.parse::<usize>() {
        Ok(node) if (1..=size).contains(&node) => Ok(NodeId::at(node - 1)),
        Ok(node) => Err(format!("there is no node {node}; nodes are numbered 1 to {size}")),
        Err(_) => Err(format!("'{word}' is not a node number; nodes are numbered 1 to {size}")),
    }
}

fn nodes(list: &str, size: usize) -> Result<Vec<NodeId>, String> {
    list.split(',').map(|word| node(word, size)).collect()
}

fn graph(text: &str, size: usize) -> Result<Graph, String> {
    let edge = |edge: &str| {
        let (one, other) = edge.split_once('-').ok_or_else(|| {
            format!("'{edge}' is not an edge; write ring, mesh, or edges as in 1-2,2-3")
        })?;
        Ok((node(one, size)?, node(other, size)?))
    };
    match text {
        "ring" => Ok(Graph::ring(size)),
        "mesh" => Graph::mesh(size).map_err(|error| error.to_string()),
        _ => {
            let edges: Vec<_> = text.split(',').map(edge).collect::<Result<_, String>>()?;
            Graph::new(size, edges).map_err(|error| error.to_string())
        }
    }
}

/// The error message for an unknown name of an algorithm.
fn unknown_algorithm(name: &str) -> String {
    let near = hint(name, ALL.iter().map(|entry| entry.info.name));
    format!("there is no algorithm '{name}'{near}")
}

fn read<T: FromStr>(key: &str, value: &str) -> Result<T, String> {
    let example = || {
        let (_, example) =
            OPTIONS.iter().find(|(name, _)| *name == key).copied().unwrap_or_default();
        format!("invalid value '{value}' for '{key}'; an example is {key}={example}")
    };
    value.parse().map_err(|_| example())
}

fn one_of<T: Copy>(key: &str, value: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == value).map(|(_, meaning)| *meaning);
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("unknown {key} '{value}'; use one of {}", names()))
}
