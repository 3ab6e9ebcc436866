//! How often a waiting process is overtaken, and in which cycles it might wait for ever.

use super::components::components;
use super::graph::Graph;
use super::model::Tag;

/// How one process may wait.
#[derive(Debug)]
pub struct WaitAnalysis {
    /// The most steps that overtake the process while it waits; `None` if there is no bound.
    pub overtaken: Option<u32>,
    /// The strongly connected sets of states with a cycle, in all of which the process waits.
    pub rounds: Vec<Vec<u32>>,
}

const WITHOUT_END: u32 = u32::MAX;
const THIS_COMPONENT: u32 = u32::MAX - 1;

impl WaitAnalysis {
    /// Analyse a process that waits in the states of `waits` and is overtaken by the steps of
    /// `overtakes`.
    pub fn of(graph: &Graph, waits: impl Fn(u32) -> bool, overtakes: impl Fn(Tag) -> bool) -> Self {
        // The most overtaking steps from each state on, while the process waits.
        let mut most = vec![0; graph.states() as usize];
        let mut rounds = Vec::new();
        let mut longest = 0;
        components(graph, &waits, |members| {
            for member in members {
                most[*member as usize] = THIS_COMPONENT;
            }
            let (mut ahead, mut round) = (0, false);
            for (_, target, tag) in members.iter().flat_map(|member| graph.steps(*member)) {
                let passed = u32::from(overtakes(tag));
                let beyond = if waits(target) { most[target as usize] } else { 0 };
                round |= beyond == THIS_COMPONENT;
                let count = match beyond {
                    WITHOUT_END => WITHOUT_END,
                    THIS_COMPONENT => passed * WITHOUT_END,
                    // The step that ends the wait lets the process itself in, so it overtakes
                    // nobody.
                    beyond => beyond + if waits(target) { passed } else { 0 },
                };
                ahead = ahead.max(count);
            }
            for member in members {
                most[*member as usize] = ahead;
            }
            longest = longest.max(ahead);
            if round {
                rounds.push(members.to_vec());
            }
        });
        Self { overtaken: (longest != WITHOUT_END).then_some(longest), rounds }
    }
}
