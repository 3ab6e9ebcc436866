//! From which state, and by which step, each state was first reached.
//!
//! The states that a shard finds in a round come in the order of the states that lead to them. So
//! the distance from one source to the next is small, and most states take two bytes.

/// The most states of a block. To find one of them, those before it are read.
const MOST_IN_BLOCK: usize = 1024;

/// The source and the step of every state but the first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    blocks: Vec<Block>,
    states: u32,
    bytes: usize,
}

/// States with consecutive numbers whose sources do not descend.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    /// The number of states in all blocks before.
    begin: u32,
    /// The source of the first state.
    source: u32,
    /// For each state the distance from the source before, and the position of the step, seven bits
    /// to a byte.
    steps: Box<[u8]>,
}

impl Ways {
    /// The number of states.
    pub(super) fn len(&self) -> u32 {
        self.states
    }

    /// Append states. Their sources must not descend.
    pub(super) fn extend(&mut self, sources: &[u32], ordinals: &[u32]) {
        let blocks = sources.chunks(MOST_IN_BLOCK).zip(ordinals.chunks(MOST_IN_BLOCK));
        for (sources, ordinals) in blocks {
            let (mut steps, mut before) = (Vec::new(), sources[0]);
            for (source, ordinal) in sources.iter().zip(ordinals) {
                push(&mut steps, *source - before);
                push(&mut steps, *ordinal);
                before = *source;
            }
            let steps = steps.into_boxed_slice();
            self.bytes += steps.len() + size_of::<Block>();
            self.blocks.push(Block { begin: self.states, source: sources[0], steps });
            self.states += sources.len() as u32;
        }
    }

    /// The source of a state, and the position of the step among those of the source.
    pub(super) fn get(&self, state: u32) -> (u32, u32) {
        let mut steps = self.from(state);
        steps.next().unwrap_or_default()
    }

    /// The source and the step of each state from this one on.
    pub(super) fn from(&self, state: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let first = self.blocks.partition_point(|block| block.begin <= state).saturating_sub(1);
        let skipped = self.blocks.get(first).map_or(0, |block| state - block.begin);
        self.blocks[first..].iter().flat_map(Block::iter).skip(skipped as usize)
    }

    /// For each block the source of its first state, its states, and the bytes of its steps.
    pub(super) fn heads(&self) -> Vec<u32> {
        let ends = self.blocks.iter().skip(1).map(|block| block.begin).chain([self.states]);
        let heads = self.blocks.iter().zip(ends);
        let head = |(block, end): (&Block, u32)| {
            [block.source, end - block.begin, block.steps.len() as u32]
        };
        heads.flat_map(head).collect()
    }

    /// The steps of each block.
    pub(super) fn steps(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().map(|block| &*block.steps)
    }

    /// The bytes of the steps of a block, if a block can have that number.
    pub(super) fn checked(bytes: u32) -> Option<usize> {
        // Each number takes five bytes at most.
        usize::try_from(bytes).ok().filter(|bytes| *bytes <= MOST_IN_BLOCK * 10)
    }

    /// Append a block as it was; `None` if that is impossible.
    pub(super) fn restore(&mut self, source: u32, states: u32, steps: Vec<u8>) -> Option<()> {
        let all = self.states.checked_add(states)?;
        self.bytes += steps.len() + size_of::<Block>();
        let steps = steps.into_boxed_slice();
        self.blocks.push(Block { begin: self.states, source, steps });
        self.states = all;
        Some(())
    }

    /// The memory that this takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Block {
    fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (mut rest, mut source) = (&*self.steps, self.source);
        std::iter::from_fn(move || {
            let distance = pull(&mut rest)?;
            source += distance;
            Some((source, pull(&mut rest)?))
        })
    }
}

fn push(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn pull(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_appended_is_found() {
        let mut ways = Ways::default();
        let rounds: Vec<Vec<(u32, u32)>> = vec![
            vec![(0, 0)],
            (0..3000).map(|n| (n * n, n % 300)).collect(),
            vec![(5, 1), (5, u32::MAX), (u32::MAX, 0)],
        ];
        for round in &rounds {
            let (sources, ordinals): (Vec<u32>, Vec<u32>) = round.iter().copied().unzip();
            ways.extend(&sources, &ordinals);
        }
        let all = rounds.concat();
        assert_eq!(ways.len() as usize, all.len());
        assert!((0..).zip(&all).all(|(state, step)| ways.get(state) == *step));
        for state in [0, 1, 1023, 1024, 1025, 3003] {
            assert!(ways.from(state).eq(all[state as usize..].iter().copied()), "{state}");
        }
        assert_eq!(ways.from(3004).count(), 0);
    }
}
