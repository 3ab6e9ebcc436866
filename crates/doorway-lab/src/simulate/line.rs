//! The line of waiting nodes, in the order in which they asked. It counts the nodes ahead of a node
//! in logarithmic time, which tells how often a node was overtaken.

use doorway_core::NodeId;

/// The waiting nodes, in the order in which they asked.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// A Fenwick tree over places: 1 for each place that a node has.
    counts: Vec<u32>,
    /// The node at each place.
    standing: Vec<Option<NodeId>>,
    /// The next free place.
    end: usize,
    /// The place of each node in the line.
    place: Vec<u32>,
    /// How many nodes are in the line.
    length: u32,
}

impl Line {
    /// An empty line for a group of `size` nodes.
    pub(super) fn new(size: usize) -> Self {
        let places = (2 * size).next_power_of_two().max(64);
        Self {
            counts: vec![0; places + 1],
            standing: vec![None; places],
            end: 0,
            place: vec![0; size],
            length: 0,
        }
    }

    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// `node`, which is not in the line, joins at the end.
    pub(super) fn join(&mut self, node: NodeId) {
        if self.end == self.standing.len() {
            self.close_up();
        }
        self.stand(node);
        self.length += 1;
    }

    /// `node` leaves the line. Returns how many nodes are ahead of it.
    pub(super) fn leave(&mut self, node: NodeId) -> u32 {
        let place = self.place[node.index()] as usize;
        self.standing[place] = None;
        self.add(place, u32::MAX);
        self.length -= 1;
        self.before(place)
    }

    /// The nodes in the line, in order.
    pub(super) fn standing(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.standing[..self.end].iter().copied().flatten()
    }

    /// The nodes behind `node`, in order.
    pub(super) fn behind(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let place = self.place[node.index()] as usize;
        self.standing[place + 1..self.end].iter().copied().flatten()
    }

    fn stand(&mut self, node: NodeId) {
        let place = self.end;
        self.end += 1;
        self.standing[place] = Some(node);
        self.place[node.index()] = place as u32;
        self.add(place, 1);
    }

    /// Close the gaps. There are at least twice as many places as nodes, so this is rare.
    fn close_up(&mut self) {
        let nodes: Vec<_> = self.standing.iter_mut().filter_map(Option::take).collect();
        self.counts.fill(0);
        self.end = 0;
        for node in nodes {
            self.stand(node);
        }
    }

    fn add(&mut self, place: usize, change: u32) {
        let mut at = place + 1;
        while at < self.counts.len() {
            self.counts[at] = self.counts[at].wrapping_add(change);
            at += at & at.wrapping_neg();
        }
    }

    fn before(&self, place: usize) -> u32 {
        let mut at = place;
        let mut sum = 0u32;
        while at > 0 {
            sum = sum.wrapping_add(self.counts[at]);
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_ahead_are_counted_through_many_joins_and_leaves() {
        let mut line = Line::new(40);
        let mut model: Vec<NodeId> = Vec::new();
        let mut random = 3u64;
        for _ in 0..5_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let node = NodeId((random >> 33) as u32 % 40);
            if let Some(at) = model.iter().position(|other| *other == node) {
                model.remove(at);
                assert_eq!(line.leave(node) as usize, at);
            } else {
                model.push(node);
                line.join(node);
            }
            assert_eq!(line.standing().collect::<Vec<_>>(), model);
            assert_eq!(line.length() as usize, model.len());
        }
    }
}
