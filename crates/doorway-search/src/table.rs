//! A set of fingerprints, each with a number if that is needed: open addressing, eight or twelve
//! bytes a slot.

/// A hash table of fingerprints.
#[derive(Debug)]
pub(super) struct Table {
    /// The slots: for each the two halves of a fingerprint, and the number if there are numbers.
    /// The fingerprint 0 marks an empty slot.
    words: Vec<u32>,
    /// The number of words of a slot.
    stride: usize,
    used: usize,
}

/// The number of slots of a new table.
const FIRST: usize = 16;

impl Table {
    /// A table of fingerprints with numbers. Between a half and three quarters of its slots are in
    /// use.
    pub(super) fn numbered() -> Self {
        Self { words: vec![0; FIRST * 3], stride: 3, used: 0 }
    }

    /// A table of fingerprints alone. Between three and four fifths of its slots are in use, so a
    /// fingerprint takes at most 13.3 bytes.
    pub(super) fn plain() -> Self {
        Self { words: vec![0; FIRST * 2], stride: 2, used: 0 }
    }

    fn is_numbered(&self) -> bool {
        self.stride == 3
    }

    fn slots(&self) -> usize {
        self.words.len() / self.stride
    }

    /// How many of these slots may be in use, and how many slots come next.
    fn policy(&self, slots: usize) -> (usize, usize) {
        if self.is_numbered() {
            (slots / 4 * 3, slots + slots / 2)
        } else {
            (slots / 5 * 4, slots + slots / 3)
        }
    }

    /// Make room for `more` fingerprints, so that no slot moves while they are put in.
    pub(super) fn reserve(&mut self, more: usize) {
        let mut slots = self.slots();
        while self.policy(slots).0 <= self.used + more {
            slots = self.policy(slots).1;
        }
        if slots == self.slots() {
            return;
        }
        let old = std::mem::replace(&mut self.words, vec![0; slots * self.stride]);
        for slot in old.chunks_exact(self.stride) {
            let print = join(slot[0], slot[1]);
            if print != 0 {
                let (Ok(at) | Err(at)) = self.seek(print);
                self.words[at * self.stride..][..self.stride].copy_from_slice(slot);
            }
        }
    }

    /// The number of a fingerprint that is there; 0 if the table has no numbers.
    pub(super) fn find(&self, print: u64) -> Option<u32> {
        let at = self.seek(print).ok()?;
        Some(if self.is_numbered() { self.words[at * 3 + 2] } else { 0 })
    }

    /// Read the slot where a fingerprint would be. Reading the slots of many fingerprints before
    /// looking up the first waits for the memory once, not once for each.
    pub(super) fn glance(&self, print: u64) -> u32 {
        self.words[self.home(print) * self.stride]
    }

    /// Put a fingerprint in with a number, unless it is there: `Ok` has the slot of a known one,
    /// `Err` that of a new one.
    pub(super) fn insert(&mut self, print: u64, number: u32) -> Result<usize, usize> {
        self.seek(print).inspect_err(|&at| {
            let slot = &mut self.words[at * self.stride..][..self.stride];
            (slot[0], slot[1]) = (print as u32, (print >> 32) as u32);
            if let Some(place) = slot.get_mut(2) {
                *place = number;
            }
            self.used += 1;
        })
    }

    /// The number in a slot of a table with numbers.
    pub(super) fn number(&mut self, place: usize) -> &mut u32 {
        &mut self.words[place * 3 + 2]
    }

    /// The slot where the search for a fingerprint begins, chosen by the high bits for any number
    /// of slots.
    fn home(&self, print: u64) -> usize {
        ((u128::from(print) * self.slots() as u128) >> 64) as usize
    }

    /// The slot of a fingerprint: `Ok` if it is there, `Err` if it would go there.
    fn seek(&self, sought: u64) -> Result<usize, usize> {
        let mut at = self.home(sought) * self.stride;
        loop {
            match join(self.words[at], self.words[at + 1]) {
                0 => return Err(at / self.stride),
                there if there == sought => return Ok(at / self.stride),
                _ => at = if at + self.stride == self.words.len() { 0 } else { at + self.stride },
            }
        }
    }

    /// All slots, word by word.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Take over all slots of a table of the same kind.
    pub(super) fn restore(&mut self, words: Vec<u32>) {
        let slots = words.chunks_exact(self.stride);
        self.used = slots.filter(|slot| join(slot[0], slot[1]) != 0).count();
        self.words = words;
    }

    /// The memory that the table takes, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.words.capacity() * 4) as u64
    }
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_that_were_put_in_are_found_and_no_others() {
        let mut table = Table::numbered();
        let mut plain = Table::plain();
        let mix = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for n in 0..10_000 {
            table.reserve(1);
            assert!(table.insert(mix(n), n as u32).is_err());
            assert!(table.insert(mix(n), 0).is_ok());
            plain.reserve(1);
            assert!(plain.insert(mix(n), 7).is_err());
            assert!(plain.insert(mix(n), 7).is_ok());
        }
        assert!((0..10_000).all(|n| table.find(mix(n)) == Some(n as u32)));
        assert!((10_000..20_000).all(|n| table.find(mix(n)).is_none()));
        assert!((0..10_000).all(|n| plain.find(mix(n)) == Some(0)));
        assert!((10_000..20_000).all(|n| plain.find(mix(n)).is_none()));
        assert!(plain.bytes() <= 10_000 * 40 / 3, "{} bytes", plain.bytes());
    }

    #[test]
    fn neighbours_that_collide_are_told_apart() {
        let mut table = Table::numbered();
        let high = u64::MAX - 20;
        for n in 0..9 {
            table.reserve(1);
            assert!(table.insert(high + n, n as u32).is_err());
        }
        assert!((0..9).all(|n| table.find(high + n) == Some(n as u32)));
        assert_eq!(table.find(high + 9), None);
    }
}
