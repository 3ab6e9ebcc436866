//! Which groups of each algorithm are checked for the table of docs/checked.md: the largest that
//! can be exhausted.

use doorway_core::algorithms::ALL;
use doorway_core::tree::{Tree, TreeShape};
use doorway_core::{
    Channel, Graph, Group, GroupError, Info, Mode, Needs, NodeId, Shape, Wiring, quorums,
};

use super::{Case, History, Property, Report, Verdict};
use crate::FOREVER;
use crate::erased::AnyAlgorithm;
use crate::numbers::grouped;

/// A group to be checked, and which of its nodes make how many requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// How many nodes there are.
    pub size: usize,
    /// How many requests each asking node makes; [`FOREVER`] if it never stops.
    pub times: u32,
    /// How many nodes ask.
    pub askers: usize,
    /// How many nodes before the first asking node do not ask.
    pub idle: usize,
    /// Do all but the last ask for shared mode?
    pub reading: bool,
    /// May waiting clients give up?
    pub withdrawing: bool,
    /// Do channels keep order, although the algorithm does not need that?
    pub fifo: bool,
}

impl Attempt {
    const fn all(size: usize, times: u32) -> Self {
        Self { size, times, askers: size, idle: 0, reading: false, withdrawing: false, fifo: false }
    }

    const fn some(size: usize, idle: usize, askers: usize) -> Self {
        Self { askers, idle, ..Self::all(size, 1) }
    }

    /// The channels of the case.
    pub fn channel(&self, info: &Info) -> Channel {
        if self.fifo { Channel::Fifo } else { info.channel }
    }

    /// The case of an algorithm, whose search stops after `limit` worlds.
    pub fn case(&self, algorithm: AnyAlgorithm, limit: u64) -> Result<Case, GroupError> {
        Ok(self.case_of(algorithm, self.group(algorithm.info())?, limit))
    }

    /// The case of an algorithm in this group, whose search stops after `limit` worlds.
    fn case_of(&self, algorithm: AnyAlgorithm, group: Group, limit: u64) -> Case {
        let withdrawing = self.withdrawing;
        let mut case = Case { withdrawing, limit, ..Case::new(algorithm, group, self.times) };
        for (node, asks) in case.acquires.iter_mut().enumerate() {
            if !(self.idle..self.idle + self.askers).contains(&node) {
                *asks = (0, Mode::Exclusive);
            }
        }
        case.channel = self.channel(algorithm.info());
        if self.reading {
            case.acquires[..self.size - 1].iter_mut().for_each(|(_, mode)| *mode = Mode::Shared);
        }
        case
    }

    /// The group with its defaults, except for two things: an algorithm with permits gets two, and
    /// seven nodes with quorums get those of Maekawa's figure.
    fn group(&self, info: &Info) -> Result<Group, GroupError> {
        let plane = info.needs == Needs::Quorums && self.size == 7;
        let shape = Shape {
            permits: info.permits.then_some(2),
            quorums: plane.then(|| quorums::Kind::ProjectivePlane.into()),
            ..Shape::default()
        };
        info.group(self.size, &shape)
    }

    /// Which nodes make how many requests, in words.
    pub fn requests(&self) -> String {
        let times = match self.times {
            FOREVER => "for ever".to_owned(),
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            times => format!("{times} times"),
        };
        if self.reading {
            return format!("{times}, one writes");
        }
        if self.askers == self.size {
            return times;
        }
        let node = |at: usize| NodeId(at as u32);
        let (first, last) = (node(self.idle), node(self.idle + self.askers - 1));
        format!("{times} ({first} to {last})")
    }
}

/// The rows of the table, in the order of the number of nodes. Each row lists attempts from the
/// largest to the smallest, and the first one that can be exhausted is shown, with those before it.
pub fn plan(info: &Info) -> Vec<Vec<Attempt>> {
    let mut rows = vec![
        vec![Attempt::all(2, FOREVER)],
        vec![Attempt::all(3, FOREVER)],
        vec![Attempt::all(4, FOREVER)],
        vec![Attempt::all(5, FOREVER)],
        vec![Attempt::all(3, 3), Attempt::all(3, 2), Attempt::all(3, 1)],
        vec![
            Attempt::all(4, 2),
            Attempt::all(4, 1),
            Attempt::some(4, 0, 3),
            Attempt::some(4, 0, 2),
        ],
    ];
    if info.needs == Needs::Quorums {
        rows.push(vec![Attempt::some(7, 1, 4)]);
    }
    if info.permits && info.refuted.is_none() {
        // Over channels that keep order there are few enough worlds.
        rows.push(vec![Attempt { fifo: true, ..Attempt::all(3, 2) }]);
    }
    if info.shared {
        let reading = |size, times| Attempt { reading: true, ..Attempt::all(size, times) };
        rows.push(vec![reading(3, FOREVER)]);
        rows.push(vec![reading(4, FOREVER)]);
        rows.push(vec![reading(3, 3), reading(3, 2)]);
        rows.push(vec![reading(4, 1)]);
    }
    rows.sort_by_key(|row| row[0].size);
    rows
}

/// The rows of the table of worlds in which waiting clients may give up. There are none for an
/// algorithm that cannot withdraw a request.
pub fn withdrawals(info: &Info) -> Vec<Vec<Attempt>> {
    let rows = [
        vec![Attempt::all(2, FOREVER)],
        vec![Attempt::all(2, 3), Attempt::all(2, 2)],
        vec![Attempt::all(3, FOREVER)],
        vec![Attempt::all(3, 2), Attempt::all(3, 1), Attempt::some(3, 0, 2)],
    ];
    let withdrawing = |attempt| Attempt { withdrawing: true, ..attempt };
    let rows = rows.into_iter().filter(|_| info.withdraws && info.refuted.is_none());
    rows.map(|row| row.into_iter().map(withdrawing).collect()).collect()
}

/// An arrangement of the members, and the group in which it is checked.
#[derive(Clone, Debug)]
pub struct CheckedArrangement {
    /// The name of the algorithm.
    pub algorithm: &'static str,
    /// The arrangement as options of the command, or in words.
    pub title: &'static str,
    /// The group.
    pub attempt: Attempt,
    shape: Shape,
    coordinator: Option<NodeId>,
    /// The parents in a tree that is made by hand; the root is its own parent.
    parents: Option<Vec<NodeId>>,
}

impl CheckedArrangement {
    fn new(algorithm: &'static str, title: &'static str, attempt: Attempt, shape: Shape) -> Self {
        Self { algorithm, title, attempt, shape, coordinator: None, parents: None }
    }

    /// The case of the group, whose search stops after `limit` worlds.
    pub fn case(&self, limit: u64) -> Result<Case, GroupError> {
        let found = AnyAlgorithm::named(self.algorithm);
        let algorithm = found.ok_or_else(|| GroupError::new("no such algorithm"))?;
        let mut group = algorithm.info().group(self.attempt.size, &self.shape)?;
        if let Some(coordinator) = self.coordinator {
            group = group.with_coordinator(coordinator)?;
        }
        if let Some(parents) = &self.parents {
            let tree = Tree::from_parents(parents.clone())?;
            if algorithm.info().needs == Needs::Graph {
                let initiators = group.initiators().clone();
                group = group.with_graph(Graph::of_tree(&tree), initiators)?;
            }
            group = group.with_tree(tree)?;
            if self.shape.wiring == Some(Wiring::Tree) {
                group = group.with_wiring(Wiring::Tree);
            }
        }
        Ok(self.attempt.case_of(algorithm, group, limit))
    }
}

/// Examples of every kind of arrangement that a rule of the lock service can choose and that the
/// groups of [`plan`] do not have. They are in the order of the list of algorithms, and those of an
/// algorithm in the order of the number of nodes.
pub fn arrangements() -> Vec<CheckedArrangement> {
    let mut all: Vec<_> = [on_quorums(), on_votes(), on_trees(), on_links(), with_seats()].concat();
    let (four, shape) = (Attempt::all(4, FOREVER), Shape::default());
    let central = CheckedArrangement::new("central", "coordinator: node 2", four, shape);
    all.push(CheckedArrangement { coordinator: Some(NodeId(1)), ..central });
    let place = |name| ALL.iter().position(|entry| entry.info.name == name);
    all.sort_by_key(|arranged| (place(arranged.algorithm), arranged.attempt.size));
    all
}

fn on_quorums() -> Vec<CheckedArrangement> {
    let made = |algorithm, title: &'static str, attempt, weights: Option<&[u32]>| {
        let plan = title.split(' ').nth(1).unwrap_or_default().parse();
        let quorums = Some(plan.expect("the title names quorums"));
        let shape = Shape { quorums, weights: weights.map(<[u32]>::to_vec), ..Shape::default() };
        CheckedArrangement::new(algorithm, title, attempt, shape)
    };
    let by_hand = "--quorums 1,2;2,3;1,2,3;2,4";
    let weighted = "--quorums weighted --weights 3,2,2,1";
    let once = Attempt::all(4, 1);
    let three_of_six = Attempt::some(6, 0, 3);
    // A triangle has other quorums in the second turn than in the first.
    let twice = Attempt { times: 2, ..Attempt::some(6, 0, 2) };
    let mut all = vec![
        made("maekawa", "--quorums degenerate-plane", once, None),
        made("maekawa", "--quorums weighted", once, None),
        made("maekawa", weighted, once, Some(&[3, 2, 2, 1])),
        made("maekawa", "--quorums cyclic", three_of_six, None),
        made("maekawa", "--quorums majority", three_of_six, None),
        made("maekawa", "--quorums triangle", twice, None),
        made("maekawa", "--quorums triangle:1", twice, None),
        made("maekawa", "--quorums triangle:2", twice, None),
    ];
    for algorithm in
        ["maekawa", "maekawa-eager", "maekawa-unordered", "maekawa-sequential", "maekawa-cyclic"]
    {
        all.push(made(algorithm, "--quorums grid", once, None));
        all.push(made(algorithm, by_hand, once, None));
    }
    all
}

fn on_votes() -> Vec<CheckedArrangement> {
    let made = |title, weights: &[u32]| {
        let shape = Shape { weights: Some(weights.to_vec()), ..Shape::default() };
        CheckedArrangement::new("weighted-majority", title, Attempt::all(3, 1), shape)
    };
    vec![made("--weights 0,1,2", &[0, 1, 2]), made("--weights 3,1,1", &[3, 1, 1])]
}

fn on_trees() -> Vec<CheckedArrangement> {
    let made = |algorithm, title, attempt, tree| {
        let wiring = (algorithm != "raymond-tree").then_some(Wiring::Tree);
        let shape = Shape { tree, wiring, ..Shape::default() };
        CheckedArrangement::new(algorithm, title, attempt, shape)
    };
    let forever = |size| Attempt::all(size, FOREVER);
    let mut all = Vec::new();
    for (tree, on_a_tree, title) in [
        (TreeShape::Chain, "--topology tree --tree chain", "--tree chain"),
        (TreeShape::Star, "--topology tree --tree star", "--tree star"),
    ] {
        all.push(made("raymond-tree", title, forever(5), Some(tree)));
        all.push(made("suzuki-kasami", on_a_tree, forever(4), Some(tree)));
        all.push(made("raymond-echo", on_a_tree, forever(4), Some(tree)));
    }
    // With four nodes, three children for each node would be the star, and with five the tree that
    // `raymond-tree` has by default.
    let (title, on_a_tree) = ("--tree balanced:3", "--topology tree --tree balanced:3");
    let tree = Some(TreeShape::Balanced(3));
    all.push(made("raymond-tree", title, forever(6), tree));
    all.push(made("suzuki-kasami", on_a_tree, Attempt::some(5, 2, 3), tree));
    all.push(made("raymond-echo", on_a_tree, forever(5), tree));
    // Trees that no option of the command makes.
    let by_hand = |algorithm, title, attempt, parents: &[u32]| {
        let parents = parents.iter().copied().map(NodeId).collect();
        let made = made(algorithm, title, attempt, None);
        CheckedArrangement { parents: Some(parents), ..made }
    };
    all.extend([
        by_hand("raymond-tree", "tree: b=a, c=b, d=b, e=c, f=d", forever(6), &[0, 0, 1, 1, 2, 3]),
        by_hand(
            "suzuki-kasami",
            "topology: tree, tree: b=a, c=b, d=b, e=c, f=d",
            Attempt::some(6, 2, 3),
            &[0, 0, 1, 1, 2, 3],
        ),
        by_hand("raymond-echo", "topology: tree, tree: b=a, c=b, d=b", forever(4), &[0, 0, 1, 1]),
    ]);
    all
}

/// Links that are not those of the default.
fn on_links() -> Vec<CheckedArrangement> {
    let made = |algorithm, title, wiring| {
        let shape = Shape { wiring: Some(wiring), ..Shape::default() };
        CheckedArrangement::new(algorithm, title, Attempt::all(4, FOREVER), shape)
    };
    vec![
        made("suzuki-kasami", "--topology ring", Wiring::Ring),
        made("raymond-echo", "--topology mesh", Wiring::Mesh),
    ]
}

fn with_seats() -> Vec<CheckedArrangement> {
    let made = |title, seats| {
        let shape = Shape { permits: Some(3), seats: Some(seats), ..Shape::default() };
        CheckedArrangement::new("raymond-k", title, Attempt::all(3, 1), shape)
    };
    vec![made("--permits 3 --seats 1", 1), made("--permits 3 --seats 2", 2)]
}

/// The properties that need a history, with the groups in which they are checked.
pub fn histories() -> impl Iterator<Item = (History, Attempt)> {
    let groups = [Attempt::all(2, 2), Attempt::all(3, 1)];
    History::ALL.into_iter().flat_map(move |(_, what)| groups.map(|group| (what, group)))
}

/// Why nodes that ask for ever lead to infinitely many settled worlds: the number that grows.
///
/// `None` does not mean that the settled worlds are finitely many. It means that no number is known
/// to grow, which is proof only where the search has visited them all.
pub fn why_endless(info: &Info, attempt: &Attempt) -> Option<&'static str> {
    const ENTERS: &str = "infinitely many: a node enters without the answer of a slow node, so the \
                          messages in the channel to that node grow in number";
    const GIVES_UP: &str = "infinitely many: a client asks and gives up before any message \
                            arrives, so the messages in a channel grow in number";
    const LAGS: &str = "infinitely many: the clock of a node that is not asked falls behind, and \
                        the distance to the other clocks grows";
    if attempt.times != FOREVER {
        return None;
    }
    match (info.name, attempt.size) {
        ("raymond-k" | "weighted-majority", _) | ("raymond-k-scanned", 2) | ("majority", 3..) => {
            Some(ENTERS)
        }
        ("lamport" | "majority", _) if attempt.withdrawing => Some(GIVES_UP),
        ("maekawa" | "maekawa-eager", 3..) if attempt.withdrawing => Some(LAGS),
        ("maekawa-printed" | "maekawa-slides-printed", 3) | ("carvalho-roucairol", 4..) => {
            Some(LAGS)
        }
        _ => None,
    }
}

/// Why nodes that ask for ever have infinitely many settled worlds if one pass of `ricart-agrawala`
/// makes the token of this algorithm; `None` if they have finitely many.
pub fn why_endless_after_one_pass(name: &str, size: usize) -> Option<&'static str> {
    let asks_all = matches!(name, "ricart-agrawala-token" | "suzuki-kasami");
    (asks_all && size > 2).then_some(
        "requests pile up on their way to a node that does not know of the token yet, and the \
         first of them that arrives tells it",
    )
}

/// The counts at the end of a row, and why the search did not end, if it did not: because of
/// infinitely many worlds, or because there is more than this limit.
pub fn counts(
    info: &Info,
    attempt: &Attempt,
    report: &Report,
    seconds: f64,
    limit: &str,
) -> Vec<String> {
    let progress = report.progress;
    let why = match (&report.verdict, why_endless(info, attempt)) {
        (Verdict::Holds | Verdict::Violated { .. }, _) => String::new(),
        (Verdict::Unconfirmed { .. }, _) => "`settle` is wrong".to_owned(),
        (Verdict::NotExhausted, Some(why)) => why.to_owned(),
        (Verdict::NotExhausted, None) => format!("more than {limit}"),
    };
    vec![
        grouped(progress.states),
        grouped(progress.steps),
        progress.depth.to_string(),
        format!("{seconds:.2}"),
        format!("{:.1}", progress.bytes as f64 / 1e6),
        why,
    ]
}

/// The first cells of a row: the algorithm, the number of nodes, and what they ask.
pub fn head(info: &Info, attempt: &Attempt) -> [String; 3] {
    [format!("`{}`", info.name), attempt.size.to_string(), attempt.requests()]
}

/// A row of the table up to its counts: which group was checked, what is known about each property,
/// how often a node is overtaken, and how many messages a run has.
pub fn cells(info: &Info, attempt: &Attempt, report: &Report) -> Vec<String> {
    use Property::{Exclusion, Refusal, Starvation, Stuck};
    let channel = if attempt.channel(info) == Channel::Fifo { "fifo" } else { "unordered" };
    let known = [Exclusion, Refusal, Stuck, Starvation].map(|property| match &report.verdict {
        Verdict::Holds => "holds".to_owned(),
        Verdict::NotExhausted => "not exhausted".to_owned(),
        Verdict::Unconfirmed { .. } => "unconfirmed".to_owned(),
        Verdict::Violated { trace, cycle, violation } => {
            let broken = Property::violated_by(violation) == property;
            let steps = trace.len() + cycle.len();
            if broken { format!("**no**, {steps}") } else { String::new() }
        }
    });
    let overtaken = report.waiting.map(|waiting| {
        waiting.overtaken.map_or_else(|| "any number".to_owned(), |most| most.to_string())
    });
    let messages = report.waiting.and_then(|waiting| waiting.messages).map(|(least, most)| {
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    });
    let head = head(info, attempt).into_iter().chain([channel.to_owned()]);
    head.chain(known).chain([overtaken, messages].map(Option::unwrap_or_default)).collect()
}
