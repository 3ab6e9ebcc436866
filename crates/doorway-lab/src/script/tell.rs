//! Writing scripts: from the choices of a world back to commands.

use doorway_core::{Channel, Mode};

use super::parse::MessageChoice;
use super::stage::plain;
use crate::{ChannelPosition, Choice, World};

/// The commands that make these choices, one for each, and the world in which they end.
pub fn tell(world: &World, choices: &[Choice]) -> (Vec<String>, World) {
    let mut world = world.clone();
    let mut commands = Vec::new();
    for choice in choices {
        commands.push(command(&world, *choice));
        world.apply(*choice);
    }
    (commands, world)
}

/// A script of these commands, each with room for its effects. `comment` is its first line, `setup`
/// the arguments of `run`, and `cycle` the commands that are repeated forever at its end, if any.
pub fn compose(comment: &str, setup: &str, commands: &[String], cycle: &[String]) -> String {
    let mut lines = vec![format!("# {comment}"), format!("run {setup}")];
    let blocks = |commands: &[String]| {
        commands.iter().flat_map(|command| [String::new(), command.clone()]).collect::<Vec<_>>()
    };
    lines.extend(blocks(commands));
    if !cycle.is_empty() {
        lines.extend(["", "# And again and again:", "round"].map(str::to_owned));
        lines.extend(blocks(cycle));
        lines.extend(["", "again"].map(str::to_owned));
    }
    lines.join("\n") + "\n"
}

fn command(world: &World, choice: Choice) -> String {
    match choice {
        Choice::Start(_) => unreachable!("a world has started before the first choice"),
        Choice::Acquire(node, Mode::Exclusive) => format!("acquire {node}"),
        Choice::Acquire(node, Mode::Shared) => format!("acquire {node} shared"),
        Choice::Release(node) => format!("release {node}"),
        Choice::Withdraw(node) => format!("withdraw {node}"),
        Choice::Deliver(position) => message(world, "deliver", position),
        Choice::Drop(position) => message(world, "drop", position),
        Choice::Duplicate(position) => message(world, "duplicate", position),
        Choice::Crash(node) => format!("crash {node}"),
        Choice::Detect { node, failed } => format!("detect {node} {failed}"),
        Choice::Forget(node) => format!("forget {node}"),
    }
}

/// The command that names a message by its text, or by its number if the text would find another
/// message. On FIFO channels it is always the first message, so the command names none.
fn message(world: &World, verb: &str, position: ChannelPosition) -> String {
    let ChannelPosition { from, to, .. } = position;
    let command = format!("{verb} {from} {to}");
    if world.channel() == Channel::Fifo {
        return command;
    }
    let mut letters: Vec<_> = world.under_way().collect();
    letters.retain(|(other, _)| (other.from, other.to) == (from, to));
    letters.sort_by_key(|(_, letter)| letter.id);
    let at = letters.iter().position(|(other, _)| *other == position).unwrap_or_default();
    let texts: Vec<_> = letters.iter().map(|(_, letter)| plain(&letter.body)).collect();
    let found = MessageChoice::read(&texts[at]).find(&texts);
    match found {
        _ if texts.len() == 1 => command,
        Some(found) if found == at => format!("{command} {}", texts[at]),
        _ => format!("{command} {}", at + 1),
    }
}
