//! The files of a group, sorted by node, and the steps of one lock in each.

use std::collections::BTreeSet;

use doorway_core::algorithms::ALL;
use doorway_core::{Group, NodeId, Shape};
use doorway_protocol::recording::{Event, Header, LockLine};

use super::lines::Line;
use super::steps::{self, NodeSteps};
use super::{File, Problem};
use crate::nearest;

/// What the nodes of a group have recorded about one lock.
pub(super) struct GroupRecording {
    pub(super) group: String,
    pub(super) lock: String,
    /// The names of the members, in the order of their numbers.
    pub(super) members: Vec<String>,
    pub(super) algorithm: &'static str,
    /// The group as the algorithm needs it: with quorums, a tree, and so on.
    pub(super) arranged: Group,
    pub(super) nodes: Vec<NodeSteps>,
    /// Whether it begins while the lock is in use.
    pub(super) partial: bool,
}

/// The lines of a file with their numbers; the first line is a header.
pub(super) struct ParsedFile<'a> {
    pub(super) name: &'a str,
    pub(super) header: Header,
    pub(super) lines: Vec<(usize, Line)>,
}

/// Read the files of all nodes of one group, and select a lock.
pub(super) fn read(files: &[File], lock: Option<&str>) -> Result<GroupRecording, Problem> {
    let files: Vec<_> = files.iter().flat_map(by_node).collect();
    let parsed: Vec<_> = files.iter().map(parse).collect::<Result<_, _>>()?;
    let Some(first) = parsed.first() else { return Err(Problem::new("no files were given")) };
    let (group, members) = (&first.header.group, &first.header.members);
    let mut sorted = Vec::new();
    for member in members {
        let mut of = parsed.iter().filter(|file| file.header.node == *member);
        match (of.next(), of.next()) {
            (Some(file), None) => sorted.push(file),
            (None, _) => {
                let all = members.join(", ");
                let reason = format!("the file of node {member} is missing; the group has {all}");
                return Err(Problem::new(reason));
            }
            (Some(one), Some(other)) => {
                let reason = format!("{} and {} are both of node {member}", one.name, other.name);
                return Err(Problem::new(reason));
            }
        }
    }
    for file in &parsed {
        let Header { group: theirs, members: with, node, .. } = &file.header;
        if theirs != group || with != members || !members.contains(node) {
            let reason = format!("{} and {} are of different groups", first.name, file.name);
            return Err(Problem::new(reason));
        }
    }
    let lock = choose(&parsed, lock)?;
    let (algorithm, arranged) = arranged(&parsed, &lock, members.len())?;
    let nodes = (0..).map(NodeId).zip(sorted).map(|(node, file)| steps::of(node, file, &lock));
    let nodes = nodes.collect::<Result<_, _>>()?;
    let (group, members) = (group.clone(), members.clone());
    let partial = parsed.iter().any(|file| file.header.partial);
    Ok(GroupRecording { group, lock, members, algorithm, arranged, nodes, partial })
}

/// The parts of a file: a recording of one lock has the lines of all nodes, one node after the
/// other. Lines before the first one that is partial, and files without such lines, stay together.
fn by_node(file: &File) -> Vec<File> {
    let mut parts: Vec<File> = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let begins = matches!(Line::read(line), Ok(Line::Header(header)) if header.partial);
        if begins || parts.is_empty() {
            let name = match index {
                0 => file.name.clone(),
                _ => format!("{} after line {index}", file.name),
            };
            parts.push(File { name, text: String::new() });
        }
        if let Some(part) = parts.last_mut() {
            part.text.push_str(line);
            part.text.push('\n');
        }
    }
    if parts.is_empty() { vec![file.clone()] } else { parts }
}

fn parse(file: &File) -> Result<ParsedFile<'_>, Problem> {
    let texts: Vec<&str> = file.text.lines().collect();
    let mut lines = Vec::with_capacity(texts.len());
    let mut first = None::<Header>;
    for (index, text) in texts.iter().enumerate() {
        let wrong = |reason: &str| Problem::at(&file.name, index + 1, reason);
        let line = match Line::read(text) {
            Ok(line) => line,
            // A node that is killed may leave a line half written.
            Err(_) if index > 0 && may_be_last(texts.get(index + 1)) => continue,
            Err(reason) => return Err(wrong(&reason)),
        };
        match (&first, &line) {
            (None, Line::Header(header)) => first = Some(header.clone()),
            (None, _) => return Err(wrong("a recording begins with a line that names its node")),
            (Some(first), Line::Header(header)) if !same_node(header, first) => {
                return Err(wrong("this start belongs to another node or group than the first"));
            }
            (Some(_), _) => {}
        }
        lines.push((index + 1, line));
    }
    let header = first.ok_or_else(|| Problem::at(&file.name, 1, "the file is empty"))?;
    Ok(ParsedFile { name: &file.name, header, lines })
}

/// Are both about starts of one node of one group?
fn same_node(one: &Header, other: &Header) -> bool {
    (&one.group, &one.node, &one.members) == (&other.group, &other.node, &other.members)
}

/// Can a line be the last one that a process wrote, given the line that follows it?
fn may_be_last(next: Option<&&str>) -> bool {
    next.is_none_or(|next| matches!(Line::read(next), Ok(Line::Header(_))))
}

fn lock_lines<'a>(
    parsed: &'a [ParsedFile<'_>],
) -> impl Iterator<Item = (&'a str, usize, &'a LockLine)> {
    parsed.iter().flat_map(|file| {
        file.lines.iter().filter_map(|(number, line)| match line {
            Line::Lock(line) => Some((file.name, *number, line)),
            _ => None,
        })
    })
}

/// The lock to read: the one named, or the only one there is.
fn choose(parsed: &[ParsedFile<'_>], lock: Option<&str>) -> Result<String, Problem> {
    let known: BTreeSet<&str> = lock_lines(parsed).map(|(_, _, line)| line.lock.as_str()).collect();
    let shown: Vec<&str> = known.iter().copied().take(20).collect();
    let more = known.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let list = || format!("{}{more}", shown.join(", "));
    match (lock, shown.as_slice()) {
        (_, []) => Err(Problem::new("no lock was used in this recording")),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(Problem::new(format!(
            "several locks were recorded; name one with --lock: {}",
            list()
        ))),
        (Some(lock), _) if known.contains(lock) => Ok(lock.to_owned()),
        (Some(lock), _) => {
            let reason = format!("lock {lock} is not in this recording; it has {}", list());
            Err(Problem::new(reason))
        }
    }
}

/// The algorithm of a lock, and the group as the algorithm needs it.
fn arranged(
    parsed: &[ParsedFile<'_>],
    lock: &str,
    size: usize,
) -> Result<(&'static str, Group), Problem> {
    let mut known = None::<(&'static str, u32, Group)>;
    for (file, number, line) in lock_lines(parsed).filter(|(_, _, line)| line.lock == lock) {
        let Event::Begin { algorithm, permits, .. } = &line.event else { continue };
        let wrong = |reason: String| Problem::at(file, number, reason);
        if let Some((name, of, _)) = &known {
            if name == algorithm && of == permits {
                continue;
            }
            return Err(wrong(format!("the lock began with {name} and {of} permits earlier")));
        }
        let Some(entry) = ALL.iter().find(|entry| entry.info.name == algorithm) else {
            let hint = nearest::hint(algorithm, ALL.iter().map(|entry| entry.info.name));
            return Err(wrong(format!("no algorithm is called {algorithm}{hint}")));
        };
        let several = (*permits != 1).then_some(*permits);
        let shape = Shape { permits: several, seats: several, ..Shape::default() };
        let group = entry.info.group(size, &shape).map_err(|error| wrong(error.to_string()))?;
        known = Some((entry.info.name, *permits, group));
    }
    let nowhere = || Problem::new(format!("no file names the algorithm of lock {lock}"));
    known.map(|(name, _, group)| (name, group)).ok_or_else(nowhere)
}
