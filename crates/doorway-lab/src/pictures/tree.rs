//! A tree whose edges point to the token, each time that an edge has turned.

use std::collections::{BTreeMap, BTreeSet};

use doorway_core::NodeId;

use crate::Trace;
use crate::canvas::{Canvas, Point, Px, text_width};
use crate::diagram::sentences;
use crate::values::Value;

/// The most nodes and the most moments of a picture.
const MOST_NODES: usize = 40;
const MOST_FRAMES: usize = 30;

const RADIUS: f64 = 11.0;
/// The distance of neighbouring leaves, and of two levels of the tree.
const ACROSS: f64 = 46.0;
const DOWN: f64 = 52.0;
const MARGIN: f64 = 24.0;
const GAP: f64 = 34.0;

/// What a node knows about where the token is: the neighbour towards it, or itself.
type Pointers = Vec<NodeId>;

/// A moment: the pointers, the requests that nodes keep, and what has just happened.
struct Frame {
    text: String,
    pointers: Pointers,
    queues: Vec<String>,
    /// The nodes whose pointers have turned since the last moment.
    turned: BTreeSet<NodeId>,
}

/// The picture of the tree of a script as SVG. The nodes of its algorithm must have pointers.
pub fn tree(trace: &Trace) -> Result<String, String> {
    if trace.begin.is_empty() {
        let why = "this run does not tell the states of its nodes, as a recording never does";
        return Err(format!("there is no tree to draw: {why}"));
    }
    if trace.begin.len() > MOST_NODES {
        let size = trace.begin.len();
        return Err(format!("a picture of a tree has at most {MOST_NODES} nodes, not {size}"));
    }
    let frames = frames(trace).ok_or(
        "there is no tree to draw: the nodes of this algorithm do not point to the token; \
         raymond-tree, raymond-echo and naimi-trehel do",
    )?;
    let places = places(&frames[0].pointers);
    let most = |of: fn(&Point) -> f64| places.iter().map(of).fold(0.0, f64::max);
    let (inner, height) = (most(|p| p.0) + 2.0 * RADIUS, most(|p| p.1) + 2.0 * RADIUS + 40.0);
    let captions = frames.iter().map(|frame| text_width(&frame.text, 12.0));
    let width = captions.fold(inner, f64::max).min(inner.max(260.0));
    let shown = frames.len().min(MOST_FRAMES);
    let per_row = ((shown as f64 * 1.3).sqrt().ceil() as usize).clamp(1, shown);
    let mut canvas = Canvas::default();
    canvas.text("text title", (MARGIN, MARGIN + 10.0), &trace.title);
    let left_out = frames.len() - shown;
    let more = if left_out > 0 { format!("; {left_out} more are left out") } else { String::new() };
    let key = format!(
        "an edge shows whom a node asks; filled: a node that asks nobody; coloured: it has just turned{more}"
    );
    canvas.text("soft", (MARGIN, MARGIN + 30.0), &key);
    for (index, frame) in frames.iter().take(shown).enumerate() {
        let left = MARGIN + (index % per_row) as f64 * (width + GAP);
        let top = MARGIN + 52.0 + (index / per_row) as f64 * (height + GAP);
        draw(&mut canvas, frame, &places, (left, top), width);
    }
    let right = MARGIN + per_row as f64 * (width + GAP) - GAP;
    let right =
        right.max(MARGIN + text_width(&key, 12.0)).max(MARGIN + text_width(&trace.title, 16.0));
    let bottom = MARGIN + 52.0 + shown.div_ceil(per_row) as f64 * (height + GAP) - GAP;
    let description = "The tree after each event that turned an edge.";
    Ok(canvas.finish((right + MARGIN, bottom + MARGIN), &trace.title, description))
}

/// The moments at which pointers turned, the first state first. `None` if nodes have no pointers.
fn frames(trace: &Trace) -> Option<Vec<Frame>> {
    let read = |node: usize, text: &str| {
        let value = Value::read(text);
        let fields: BTreeMap<&str, &Value> = value.fields().into_iter().collect();
        let pointer = fields.get("holder").or_else(|| fields.get("father"))?;
        let pointer = match pointer.to_string().parse::<usize>() {
            Ok(number) => NodeId::at(number.checked_sub(1)?),
            Err(_) => NodeId::at(node),
        };
        let queue = fields.get("queue").or_else(|| fields.get("next"));
        Some((pointer, queue.map_or_else(String::new, ToString::to_string)))
    };
    let begin: Option<Vec<_>> =
        trace.begin.iter().enumerate().map(|(node, text)| read(node, text)).collect();
    let (mut pointers, mut queues): (Pointers, Vec<String>) = begin?.into_iter().unzip();
    let frame = |text: String, pointers: &Pointers, queues: &[String], turned| Frame {
        text,
        pointers: pointers.clone(),
        queues: queues.to_vec(),
        turned,
    };
    let mut frames = vec![frame("at the start".to_owned(), &pointers, &queues, BTreeSet::new())];
    let said = sentences(trace);
    let mut since = 0;
    for (index, text) in &trace.states {
        let node = trace.events.get(*index)?.node;
        let (pointer, queue) = read(node.index(), text)?;
        queues[node.index()] = queue;
        if pointers[node.index()] != pointer {
            pointers[node.index()] = pointer;
            // The first event of the step is what made the node act.
            let first = said.get(since..=*index).and_then(|all| all.first());
            let text = first.cloned().unwrap_or_default();
            frames.push(frame(text, &pointers, &queues, BTreeSet::from([node])));
        }
        since = index + 1;
    }
    Some(frames)
}

/// Where each node stands: leaves side by side, and other nodes in the middle above theirs.
fn places(pointers: &Pointers) -> Vec<Point> {
    let size = pointers.len();
    let mut neighbours = vec![Vec::new(); size];
    for (node, to) in pointers.iter().enumerate().filter(|(node, to)| to.index() != *node) {
        neighbours[node].push(to.index());
        neighbours[to.index()].push(node);
    }
    let mut places = vec![None; size];
    let mut next_leaf = 0.0;
    // A graph that is not connected is drawn tree by tree.
    for root in 0..size {
        if places[root].is_none() {
            place(root, 0, &neighbours, &mut places, &mut next_leaf);
        }
    }
    let at = |place: Option<(f64, usize)>| {
        let (x, level) = place.unwrap_or_default();
        (x * ACROSS, level as f64 * DOWN)
    };
    places.into_iter().map(at).collect()
}

fn place(
    node: usize,
    level: usize,
    neighbours: &[Vec<usize>],
    places: &mut [Option<(f64, usize)>],
    next_leaf: &mut f64,
) -> f64 {
    places[node] = Some((0.0, level));
    let mut below = Vec::new();
    for other in &neighbours[node] {
        if places[*other].is_none() {
            below.push(place(*other, level + 1, neighbours, places, next_leaf));
        }
    }
    let x = if let (Some(first), Some(last)) = (below.first(), below.last()) {
        f64::midpoint(*first, *last)
    } else {
        *next_leaf += 1.0;
        *next_leaf - 1.0
    };
    places[node] = Some((x, level));
    x
}

fn draw(canvas: &mut Canvas, frame: &Frame, places: &[Point], (left, top): Point, width: f64) {
    let at = |node: usize| {
        let (x, y) = places[node];
        (left + RADIUS + x, top + RADIUS + y)
    };
    for (node, to) in frame.pointers.iter().enumerate() {
        let turned = frame.turned.contains(&NodeId::at(node));
        // While the token is in transit, both ends of its edge point to each other.
        let in_transit = frame.pointers[to.index()].index() == node;
        if to.index() == node || (in_transit && !turned) {
            continue;
        }
        let (from, to) = (at(node), at(to.index()));
        arrow(canvas, if turned { "arrow c1" } else { "arrow c6" }, from, to);
        if in_transit {
            let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
            canvas.circle("inside", middle, 5.0);
        }
    }
    for (node, to) in frame.pointers.iter().enumerate() {
        let (x, y) = at(node);
        let token = to.index() == node;
        canvas.circle(if token { "inside" } else { "knock lane" }, (x, y), RADIUS);
        let text = if token { "mid knock" } else { "mid text" };
        canvas.text(text, (x, y + 4.0), &(node + 1).to_string());
        let queue = frame.queues[node].as_str();
        if !queue.is_empty() && queue != "[]" {
            canvas.text("soft halo", (x + RADIUS + 3.0, y - 3.0), queue);
        }
    }
    let lowest = places.iter().map(|place| place.1).fold(0.0, f64::max) + 2.0 * RADIUS;
    let room = (width / 6.1) as usize;
    let text: String = if frame.text.chars().count() > room {
        frame.text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
    } else {
        frame.text.clone()
    };
    canvas.text("text", (left, top + lowest + 32.0), &text);
}

/// An arrow between the rims of two nodes.
fn arrow(canvas: &mut Canvas, class: &str, from: Point, to: Point) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (ux, uy) = (dx / length, dy / length);
    let start = (from.0 + ux * RADIUS, from.1 + uy * RADIUS);
    let end = (to.0 - ux * (RADIUS + 2.0), to.1 - uy * (RADIUS + 2.0));
    canvas.line(class, start, end);
    let back = (end.0 - ux * 7.0, end.1 - uy * 7.0);
    let side = |sign: f64| (back.0 - sign * uy * 3.5, back.1 + sign * ux * 3.5);
    let ((x1, y1), (x2, y2)) = (side(1.0), side(-1.0));
    let head = format!("M{} {}L{} {}L{} {}Z", Px(end.0), Px(end.1), Px(x1), Px(y1), Px(x2), Px(y2));
    canvas.path(class, &head, "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    fn trace(text: &str) -> Trace {
        script::run(text).unwrap().trace
    }

    #[test]
    fn an_edge_turns_when_the_token_passes_it() {
        let trace = trace("run raymond-tree n=3 tree=chain\nacquire 3\nstabilize\n");
        let frames = frames(&trace).unwrap();
        let pointers: Vec<Vec<u32>> = frames
            .iter()
            .map(|frame| frame.pointers.iter().map(|node| node.0 + 1).collect())
            .collect();
        // The token leaves node 1, passes node 2, and arrives at node 3.
        assert_eq!(pointers.first().unwrap(), &[1, 1, 2]);
        assert_eq!(pointers.last().unwrap(), &[2, 3, 3]);
        assert_eq!(frames.len(), 4, "{pointers:?}");
        assert!(tree(&trace).unwrap().contains("node 3 receives Privilege from node 2"));
    }

    #[test]
    fn only_algorithms_with_pointers_have_a_tree() {
        let plain = trace("run ricart-agrawala n=2\nacquire 1\n");
        assert!(tree(&plain).unwrap_err().contains("raymond-tree"));
        assert!(tree(&Trace::new("nothing", 2)).unwrap_err().contains("a recording never does"));
        let reversal = trace("run naimi-trehel n=4\nacquire 3\nstabilize\n");
        assert!(tree(&reversal).is_ok());
    }
}
