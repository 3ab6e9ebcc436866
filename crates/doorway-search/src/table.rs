//! A set of fingerprints, each with a number: open addressing, twelve bytes a slot.

/// A slot: the two halves of a fingerprint, and a number. The fingerprint 0 marks an empty slot.
type Slot = [u32; 3];

const EMPTY: Slot = [0; 3];

/// A hash table of fingerprints. Between a half and three quarters of its slots are in use.
#[derive(Debug)]
pub(super) struct Table {
    slots: Vec<Slot>,
    used: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Self { slots: vec![EMPTY; 16], used: 0 }
    }

    /// Make room for `more` fingerprints, so that no slot moves while they are put in.
    pub(super) fn reserve(&mut self, more: usize) {
        let room = |slots: usize| slots / 4 * 3;
        if self.used + more < room(self.slots.len()) {
            return;
        }
        let mut size = self.slots.len();
        while room(size) <= self.used + more {
            size += size / 2;
        }
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; size]);
        for slot in old.into_iter().filter(|slot| print(*slot) != 0) {
            let (Ok(at) | Err(at)) = self.seek(print(slot));
            self.slots[at] = slot;
        }
    }

    /// The number of a fingerprint.
    pub(super) fn find(&self, print: u64) -> Option<u32> {
        self.seek(print).ok().map(|at| self.slots[at][2])
    }

    /// Read the slot where a fingerprint would be. Reading the slots of many fingerprints before
    /// looking up the first waits for the memory once, not once for each.
    pub(super) fn glance(&self, print: u64) -> u32 {
        self.slots[self.home(print)][0]
    }

    /// Put a fingerprint in with a number, unless it is there: `Ok` has the slot of a known one,
    /// `Err` that of a new one.
    pub(super) fn insert(&mut self, print: u64, number: u32) -> Result<usize, usize> {
        self.seek(print).inspect_err(|&at| {
            self.slots[at] = [print as u32, (print >> 32) as u32, number];
            self.used += 1;
        })
    }

    /// The number in a slot.
    pub(super) fn number(&mut self, place: usize) -> &mut u32 {
        &mut self.slots[place][2]
    }

    /// The slot where the search for a fingerprint begins, chosen by the high bits for any number
    /// of slots.
    fn home(&self, print: u64) -> usize {
        ((u128::from(print) * self.slots.len() as u128) >> 64) as usize
    }

    /// The slot of a fingerprint: `Ok` if it is there, `Err` if it would go there.
    fn seek(&self, sought: u64) -> Result<usize, usize> {
        let mut at = self.home(sought);
        loop {
            match print(self.slots[at]) {
                0 => return Err(at),
                there if there == sought => return Ok(at),
                _ => at = if at + 1 == self.slots.len() { 0 } else { at + 1 },
            }
        }
    }

    /// The memory that the table takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.slots.capacity() * size_of::<Slot>()) as u64
    }
}

fn print([low, high, _]: Slot) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_that_were_put_in_are_found_and_no_others() {
        let mut table = Table::new();
        let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for n in 0..10_000 {
            table.reserve(1);
            assert!(table.insert(mix(n), n as u32).is_err());
            assert!(table.insert(mix(n), 0).is_ok());
        }
        assert!((0..10_000).all(|n| table.find(mix(n)) == Some(n as u32)));
        assert!((10_000..20_000).all(|n| table.find(mix(n)).is_none()));
    }

    #[test]
    fn neighbours_that_collide_are_told_apart() {
        let mut table = Table::new();
        let high = u64::MAX - 20;
        for n in 0..9 {
            table.reserve(1);
            assert!(table.insert(high + n, n as u32).is_err());
        }
        assert!((0..9).all(|n| table.find(high + n) == Some(n as u32)));
        assert_eq!(table.find(high + 9), None);
    }
}
