//! Why the nodes of a deadlock wait: whose answers they miss, and who waits in a circle.

use std::collections::BTreeMap;

use super::moment::Moment;
use super::view::{ViolationView, WaitView};
use crate::{Choice, Violation, World};

/// The nodes to which a request has sent something, each with the kind of its last answer since.
pub(super) type NodeAnswers = BTreeMap<u32, Option<String>>;

impl Moment {
    /// The deadlock of this moment, if it is one, and why each of its nodes waits.
    pub(super) fn stuck(&self) -> Option<ViolationView> {
        let violation = self.world.stuck()?;
        let mut view = deadlock(&self.world)?;
        let Violation::Stuck(nodes) = violation else { return Some(view) };
        let waits = nodes.iter().map(|node| wait(node.0 + 1, &self.asked[node.index()]));
        view.waits = waits.collect();
        view.circle = circle(&view.waits);
        Some(view)
    }
}

/// The deadlock of a world, if it is one. If clients of other nodes can still ask, it says that
/// nothing else can happen.
pub(super) fn deadlock(world: &World) -> Option<ViolationView> {
    let mut view = ViolationView::of(&world.stuck()?);
    let may_ask = world.choices().iter().any(|choice| matches!(choice, Choice::Acquire(..)));
    if may_ask {
        let nodes: Vec<String> = view.nodes.iter().map(ToString::to_string).collect();
        let (of, wait) = if let [_] = nodes[..] { ("node", "waits") } else { ("nodes", "wait") };
        let nodes = nodes.join(", ");
        view.text = format!("{of} {nodes} {wait}, and nothing but new requests can happen");
    }
    Some(view)
}

/// Why a node waits that has asked these nodes.
fn wait(node: u32, asked: &NodeAnswers) -> WaitView {
    let on: Vec<u32> =
        asked.iter().filter(|(_, answer)| answer.is_none()).map(|(node, _)| *node).collect();
    let heard = asked.iter().filter_map(|(node, answer)| Some((answer.as_deref()?, *node)));
    let mut answers: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (answer, node) in heard {
        answers.entry(answer).or_default().push(node);
    }
    let answers: Vec<String> =
        answers.iter().map(|(answer, nodes)| format!("{answer} from {}", list(nodes))).collect();
    let answers = answers.join(" and ");
    let text = match (on.is_empty(), answers.is_empty()) {
        (true, true) => format!("node {node} waits for a message, and has sent none"),
        (true, false) => format!("node {node} waits, and the last answers to it were {answers}"),
        (false, true) => format!("node {node} waits for an answer from {}", list(&on)),
        (false, false) => {
            format!("node {node} waits for an answer from {}, and has {answers}", list(&on))
        }
    };
    WaitView { node, on, text }
}

/// Numbers as people list them: "2, 3 and 4".
fn list(nodes: &[u32]) -> String {
    let words: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Nodes that wait for each other in a circle, beginning with the lowest; empty if there are none.
fn circle(waits: &[WaitView]) -> Vec<u32> {
    let next: BTreeMap<u32, &[u32]> =
        waits.iter().map(|wait| (wait.node, wait.on.as_slice())).collect();
    // A node on a circle can be reached from itself; the shortest way back is the circle.
    for start in next.keys() {
        let mut ways = vec![vec![*start]];
        let mut seen = vec![*start];
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let last = way[way.len() - 1];
                for node in next.get(&last).copied().unwrap_or_default() {
                    if node == start {
                        return way;
                    }
                    if !seen.contains(node) {
                        seen.push(*node);
                        longer.push([way.as_slice(), &[*node]].concat());
                    }
                }
            }
            ways = longer;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stories::SCRIPTS;
    use crate::story::Story;

    fn stuck(name: &str) -> ViolationView {
        let script = SCRIPTS.iter().find(|script| script.name == name).unwrap();
        let story = Story::read(script.text).unwrap().story;
        story.view(Vec::new()).stuck.unwrap()
    }

    fn texts(view: &ViolationView) -> Vec<&str> {
        view.waits.iter().map(|wait| wait.text.as_str()).collect()
    }

    #[test]
    fn a_deadlock_says_whose_answers_are_missing() {
        let two = stuck("maekawa-sequential-self-first/circle");
        let answers = ["node 1 waits for an answer from 2", "node 2 waits for an answer from 1"];
        assert_eq!(texts(&two), answers);
        assert_eq!(two.circle, [1, 2]);
        let printed = stuck("maekawa-printed/displaced-3");
        assert_eq!(
            texts(&printed),
            [
                "node 1 waits for an answer from 2, and has Locked from 3",
                "node 2 waits for an answer from 3"
            ]
        );
        assert_eq!(printed.circle, [0; 0], "node 3 waits for nobody");
        let scanned = stuck("raymond-k-scanned/waits-for-ever");
        let last = "node 1 waits, and the last answers to it were Reply from 2 and 3";
        assert_eq!(texts(&scanned), [last]);
    }

    #[test]
    fn a_lost_request_is_one_without_an_answer_and_a_new_request_begins_afresh() {
        let mut story = Story::begin("ricart-agrawala n=3").unwrap();
        for word in ["a1", "d1-2", "d1-3", "d2-1", "d3-1", "r1", "a1", "x1-2", "d1-3", "d3-1"] {
            story.step(word).unwrap();
        }
        let view = story.view(Vec::new()).stuck.unwrap();
        assert_eq!(texts(&view), ["node 1 waits for an answer from 2, and has Reply from 3"]);
    }

    #[test]
    fn a_deadlock_says_if_other_clients_can_still_ask() {
        let mut story = Story::begin("suzuki-kasami n=3").unwrap();
        for word in ["a2", "x2-1", "x2-3"] {
            story.step(word).unwrap();
        }
        let text = |story: &Story| story.view(Vec::new()).stuck.unwrap().text;
        assert_eq!(text(&story), "node 2 waits, and nothing but new requests can happen");
        assert!(story.next().iter().any(|choice| choice.text == "asks"));
        let two = stuck("maekawa-sequential-self-first/circle");
        assert_eq!(two.text, "nodes 1, 2 wait and nothing can happen any more");
    }

    #[test]
    fn the_shortest_circle_is_found_and_what_leads_to_it_is_left_out() {
        let wait = |node, on: &[u32]| WaitView { node, on: on.to_vec(), text: String::new() };
        let waits = [wait(1, &[2]), wait(2, &[3, 4]), wait(3, &[4]), wait(4, &[2])];
        assert_eq!(circle(&waits), [2, 4]);
        assert_eq!(circle(&waits[..3]), [0; 0]);
    }
}
