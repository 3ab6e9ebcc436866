//! Steps as short words, for links: `a2` (node 2 asks), `d2-3` (a message from 2 arrives at 3).
//!
//! | word | script |
//! |---|---|
//! | `a2`, `s2` | `acquire 2`, `acquire 2 shared` |
//! | `r2`, `w2` | `release 2`, `withdraw 2` |
//! | `d2-3`, `d2-3.2` | `deliver 2 3`: the oldest message; the second oldest |
//! | `x2-3`, `u2-3` | `drop 2 3`, `duplicate 2 3` |
//! | `c3`, `k1-3` | `crash 3`, `detect 1 3` |
//! | `f1` | `forget 1` |
//!
//! Words follow each other without a space. They name choices and not states, so a link still opens
//! after the code has changed.

use doorway_core::{Channel, Mode, NodeId};

use crate::{ChannelPosition, Choice, World};

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Deliver,
    Drop,
    Duplicate,
}

/// A step as a link names it. It may turn out to be impossible in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepWord {
    Acquire(NodeId, Mode),
    Release(NodeId),
    Withdraw(NodeId),
    /// `which` counts the messages from `from` to `to` from 1, in the order of sending.
    Message {
        fate: Fate,
        from: NodeId,
        to: NodeId,
        which: usize,
    },
    Crash(NodeId),
    Detect {
        node: NodeId,
        failed: NodeId,
    },
    Forget(NodeId),
}

/// Split a link's steps into words. A word is a letter and the numbers behind it.
pub fn split(text: &str) -> Result<Vec<&str>, String> {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(_, letter)| letter.is_ascii_alphabetic())
        .map(|(at, _)| at)
        .collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let words: Vec<&str> = starts.iter().zip(ends).map(|(from, to)| &text[*from..to]).collect();
    if words.iter().map(|word| word.len()).sum::<usize>() == text.len() {
        Ok(words)
    } else {
        Err(format!("steps begin with a letter, as in a2d2-3, not with '{}'", head(text)))
    }
}

/// The beginning of a text that may be long.
fn head(text: &str) -> String {
    text.chars().take(20).collect()
}

fn parse(text: &str, size: u32) -> Result<StepWord, String> {
    let wrong = || format!("'{}' is not a step; examples are a2, r2, d2-3 and c3", head(text));
    let mut letters = text.chars();
    let letter = letters.next().ok_or_else(wrong)?;
    let mut numbers = letters.as_str().split(['-', '.']);
    let number = |text: Option<&str>| {
        let number = text.and_then(|text| text.parse::<u32>().ok()).ok_or_else(wrong)?;
        if (1..=size).contains(&number) {
            Ok(NodeId(number - 1))
        } else {
            Err(format!("there is no node {number}; nodes are numbered 1 to {size}"))
        }
    };
    let node = number(numbers.next())?;
    let word = match letter {
        'a' => StepWord::Acquire(node, Mode::Exclusive),
        's' => StepWord::Acquire(node, Mode::Shared),
        'r' => StepWord::Release(node),
        'w' => StepWord::Withdraw(node),
        'c' => StepWord::Crash(node),
        'f' => StepWord::Forget(node),
        'k' => StepWord::Detect { node, failed: number(numbers.next())? },
        'd' | 'x' | 'u' => {
            let to = number(numbers.next())?;
            let which = numbers.next().map_or(Ok(1), |which| which.parse().map_err(|_| wrong()))?;
            let fate = match letter {
                'd' => Fate::Deliver,
                'x' => Fate::Drop,
                _ => Fate::Duplicate,
            };
            StepWord::Message { fate, from: node, to, which }
        }
        _ => return Err(wrong()),
    };
    if numbers.next().is_some() { Err(wrong()) } else { Ok(word) }
}

/// The places of the messages from one node to another, in the order of sending.
pub(super) fn between(world: &World, from: NodeId, to: NodeId) -> Vec<ChannelPosition> {
    let mut letters: Vec<_> = world.channel_of(from, to).collect();
    letters.sort_by_key(|(_, letter)| letter.id);
    letters.into_iter().map(|(position, _)| position).collect()
}

/// The choice of `world` that a word names, or why it is impossible.
pub(super) fn choice(world: &World, text: &str) -> Result<Choice, String> {
    let choice = match parse(text, world.group().size())? {
        StepWord::Acquire(node, mode) => Choice::Acquire(node, mode),
        StepWord::Release(node) => Choice::Release(node),
        StepWord::Withdraw(node) => Choice::Withdraw(node),
        StepWord::Crash(node) => Choice::Crash(node),
        StepWord::Detect { node, failed } => Choice::Detect { node, failed },
        StepWord::Forget(node) => Choice::Forget(node),
        StepWord::Message { fate, from, to, which } => {
            let places = between(world, from, to);
            let position = which.checked_sub(1).and_then(|at| places.get(at)).copied();
            let position = position.ok_or_else(|| match places.len() {
                0 => format!("no message is under way from {from} to {to}"),
                count => format!("only {count} messages are under way from {from} to {to}"),
            })?;
            if world.channel() == Channel::Fifo && which != 1 {
                return Err("channels are FIFO here, so the oldest message is first".to_owned());
            }
            match fate {
                Fate::Deliver => Choice::Deliver(position),
                Fate::Drop => Choice::Drop(position),
                Fate::Duplicate => Choice::Duplicate(position),
            }
        }
    };
    possible(world, choice).map(|()| choice)
}

/// Whether a choice that is not about a message can be made.
fn possible(world: &World, choice: Choice) -> Result<(), String> {
    let lives = |node: NodeId| {
        let phase = world.nodes().member(node).phase();
        if world.live_in(phase).contains(&node) {
            Ok(world.nodes().member(node))
        } else {
            Err(format!("node {node} has crashed"))
        }
    };
    let ensure = |possible: bool, why: String| if possible { Ok(()) } else { Err(why) };
    match choice {
        Choice::Acquire(node, mode) => ensure(
            lives(node)?.may_acquire(world.group(), mode),
            format!("node {node} cannot ask in this way now"),
        ),
        Choice::Release(node) => {
            ensure(lives(node)?.may_release(), format!("node {node} is not inside"))
        }
        Choice::Withdraw(node) => {
            ensure(lives(node)?.may_withdraw(), format!("node {node} cannot give up now"))
        }
        Choice::Crash(node) => lives(node).map(|_| ()),
        Choice::Detect { node, failed } => ensure(
            world.choices().contains(&choice),
            format!("there is no crash of node {failed} that node {node} has yet to detect"),
        ),
        Choice::Forget(node) => {
            let mut world = world.clone();
            world.limits_mut().forgetting = true;
            ensure(world.choices().contains(&choice), format!("node {node} cannot forget now"))
        }
        Choice::Start(_) | Choice::Deliver(_) | Choice::Drop(_) | Choice::Duplicate(_) => Ok(()),
    }
}

/// The word that names a choice of `world`.
pub fn word(world: &World, choice: Choice) -> String {
    let message = |letter: char, position: ChannelPosition| {
        let ChannelPosition { from, to, .. } = position;
        let places = between(world, from, to);
        match places.iter().position(|other| *other == position) {
            None | Some(0) => format!("{letter}{from}-{to}"),
            Some(at) => format!("{letter}{from}-{to}.{}", at + 1),
        }
    };
    match choice {
        Choice::Start(_) => unreachable!("a world has started before the first choice"),
        Choice::Acquire(node, Mode::Exclusive) => format!("a{node}"),
        Choice::Acquire(node, Mode::Shared) => format!("s{node}"),
        Choice::Release(node) => format!("r{node}"),
        Choice::Withdraw(node) => format!("w{node}"),
        Choice::Deliver(position) => message('d', position),
        Choice::Drop(position) => message('x', position),
        Choice::Duplicate(position) => message('u', position),
        Choice::Crash(node) => format!("c{node}"),
        Choice::Detect { node, failed } => format!("k{node}-{failed}"),
        Choice::Forget(node) => format!("f{node}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_anything_else_is_refused() {
        assert_eq!(split("a2d2-3d2-1.2x1-2").unwrap(), ["a2", "d2-3", "d2-1.2", "x1-2"]);
        assert_eq!(split("").unwrap(), [""; 0]);
        assert!(split("2a").is_err());
        for bad in ["a", "a0", "a9", "z1", "d1", "d1-", "d1-2.x", "a1-2", "d1-2.1.1", "aé"] {
            assert!(parse(bad, 3).is_err(), "{bad}");
        }
        let (from, to) = (NodeId(1), NodeId(2));
        let fate = Fate::Drop;
        assert_eq!(parse("x2-3.4", 3), Ok(StepWord::Message { fate, from, to, which: 4 }));
    }
}
