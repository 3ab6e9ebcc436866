//! Lamport's algorithm as the TLA+ examples specify it, action by action, as a model for the
//! search.
//!
//! Published: `specifications/lamport_mutex/LamportMutex.tla` of `tlaplus/Examples`.
//!
//! A process is one word of 64 bits. From the lowest bit on: its clock, the requests that it knows
//! (`req[p]`), the processes that acknowledged its own (`ack[p]`), whether it is in `crit`, and the
//! channels from it to the others (`network[p]`), each three messages of four bits, the oldest
//! lowest. What a process sends is kept with the process, so that a broadcast changes one word.

use doorway_lab::check::{Model, Successors, Tag};

/// The specification for `N` processes, at most four, with the clocks bounded.
pub(crate) struct LamportMutex<const N: usize> {
    /// States with a clock above this are generated, but not explored further.
    pub max_clock: u64,
    /// Does Enter wait for the acknowledgements of the others, as it must?
    pub enter_needs_acks: bool,
    /// Does Request wait until the request before it is done, as it must?
    pub request_needs_rest: bool,
}

/// Messages: a request is its clock on top of the last of these.
const ACK: u64 = 1;
const RELEASE: u64 = 2;

const FIELD: u64 = 15;
const LARGEST_CLOCK: u64 = FIELD - RELEASE;
const MESSAGE_BITS: u32 = 4;
const CHANNEL_BITS: u32 = 3 * MESSAGE_BITS;
const CHANNEL: u64 = (1 << CHANNEL_BITS) - 1;

/// Where the fields of a process begin; its clock is at 0.
const REQUESTS: usize = 4;
const ACKS: usize = 20;
const INSIDE: usize = 24;
const CHANNELS: usize = 25;

/// The words of all processes, and what each adds to the fingerprint.
struct State<const N: usize> {
    words: [u64; N],
    mixes: [u64; N],
    print: u64,
}

impl<const N: usize> LamportMutex<N> {
    /// The specification as it is published.
    pub(crate) fn new(max_clock: u64) -> Self {
        assert!((2..=4).contains(&N), "a process is one word");
        assert!((1..=LARGEST_CLOCK).contains(&max_clock), "a message has four bits");
        Self { max_clock, enter_needs_acks: true, request_needs_rest: true }
    }

    fn request(&self, state: &State<N>, p: usize, out: &mut Successors) {
        let word = state.words[p];
        if requested(word, p) != 0 && self.request_needs_rest {
            return;
        }
        let mine = with_request(word, p, clock(word)) & !everyone::<N>() | 1 << (ACKS + p);
        state.after(p, broadcast::<N>(mine, RELEASE + clock(word)), out);
    }

    fn enter(&self, state: &State<N>, p: usize, out: &mut Successors) {
        let word = state.words[p];
        let mine = requested(word, p);
        let needed = if self.enter_needs_acks { everyone::<N>() } else { 1 << (ACKS + p) };
        let beats = |q: usize| {
            let other = requested(word, q);
            other == 0 || mine < other || (mine == other && p < q)
        };
        if word & needed == needed && (0..N).all(|q| q == p || beats(q)) {
            state.after(p, Some(word | 1 << INSIDE), out);
        }
    }

    /// Process `p` takes the next message from `q`.
    fn receive(&self, state: &State<N>, p: usize, q: usize, out: &mut Successors) {
        let (word, other) = (state.words[p], state.words[q]);
        let channel = other >> channel_at::<N>(q, p) & CHANNEL;
        let change = channel ^ channel >> MESSAGE_BITS;
        let rest = other ^ change << channel_at::<N>(q, p);
        match channel & FIELD {
            0 => {}
            ACK => state.push(&[(p, word | 1 << (ACKS + q)), (q, rest)], out),
            RELEASE => state.push(&[(p, with_request(word, q, 0)), (q, rest)], out),
            message => {
                let sent = message - RELEASE;
                let later = clock(word).max(sent) + 1;
                let Some(acked) = append::<N>(word, p, q, ACK) else { return out.breaks() };
                if later > self.max_clock {
                    return out.leave();
                }
                let mine = with_request(acked, q, sent) & !FIELD | later;
                state.push(&[(p, mine), (q, rest)], out);
            }
        }
    }
}

impl<const N: usize> Model for LamportMutex<N> {
    fn width(&self) -> usize {
        2 * N
    }

    fn first(&self) -> (Vec<u32>, u64) {
        let words = [1; N];
        let print = State::of(words).print;
        (words.into_iter().flat_map(halves).collect(), print)
    }

    fn expand(&self, row: &[u32], _print: u64, out: &mut Successors) {
        let state = State::of(std::array::from_fn(|p| {
            u64::from(row[2 * p]) | u64::from(row[2 * p + 1]) << 32
        }));
        if state.words.iter().map(|word| word >> INSIDE & 1).sum::<u64>() > 1 {
            out.is_broken();
        }
        for p in 0..N {
            self.request(&state, p, out);
            self.enter(&state, p, out);
            exit(&state, p, out);
            for q in (0..N).filter(|q| *q != p) {
                self.receive(&state, p, q, out);
            }
        }
    }
}

impl<const N: usize> State<N> {
    fn of(words: [u64; N]) -> Self {
        let mixes = std::array::from_fn(|p| mix(p, words[p]));
        let print = mixes.iter().fold(0, |sum: u64, mix| sum.wrapping_add(*mix));
        Self { words, mixes, print }
    }

    /// Add the successor in which `p` is `word`. `None` means that a channel would hold a fourth
    /// message, which is a violation.
    fn after(&self, p: usize, word: Option<u64>, out: &mut Successors) {
        match word {
            Some(word) => self.push(&[(p, word)], out),
            None => out.breaks(),
        }
    }

    /// Add the successor in which these processes have these words.
    fn push(&self, changes: &[(usize, u64)], out: &mut Successors) {
        let mut words = self.words;
        let mut print = self.print;
        for (p, word) in changes {
            words[*p] = *word;
            print = print.wrapping_sub(self.mixes[*p]).wrapping_add(mix(*p, *word));
        }
        let mut row = [0; 8];
        for (pair, word) in row.chunks_exact_mut(2).zip(words) {
            pair.copy_from_slice(&halves(word));
        }
        out.push(&row[..2 * N], print, Tag::default());
    }
}

fn exit<const N: usize>(state: &State<N>, p: usize, out: &mut Successors) {
    let word = state.words[p];
    if word >> INSIDE & 1 == 1 {
        let mine = with_request(word, p, 0) & !everyone::<N>() & !(1 << INSIDE);
        state.after(p, broadcast::<N>(mine, RELEASE), out);
    }
}

fn clock(word: u64) -> u64 {
    word & FIELD
}

/// The clock of the request of `q` that a process knows, 0 if none.
fn requested(word: u64, q: usize) -> u64 {
    word >> (REQUESTS + 4 * q) & FIELD
}

fn with_request(word: u64, q: usize, clock: u64) -> u64 {
    word & !(FIELD << (REQUESTS + 4 * q)) | clock << (REQUESTS + 4 * q)
}

/// The acknowledgements of all processes.
const fn everyone<const N: usize>() -> u64 {
    ((1 << N) - 1) << ACKS
}

/// The lowest bit of the channel from `p` to `q`. The first channel is that to the process after
/// `p`.
fn channel_at<const N: usize>(p: usize, q: usize) -> usize {
    CHANNELS + CHANNEL_BITS as usize * ((q + N - p) % N - 1)
}

/// Send to one, unless the channel holds three messages already.
fn append<const N: usize>(word: u64, p: usize, q: usize, message: u64) -> Option<u64> {
    append_at(word, channel_at::<N>(p, q), message)
}

/// Send to all others, unless one of the channels holds three messages already.
fn broadcast<const N: usize>(word: u64, message: u64) -> Option<u64> {
    let mut channels = (1..N).map(|distance| channel_at::<N>(0, distance));
    channels.try_fold(word, |word, at| append_at(word, at, message))
}

fn append_at(word: u64, at: usize, message: u64) -> Option<u64> {
    let channel = word >> at & CHANNEL;
    let used = (u64::BITS - channel.leading_zeros()).next_multiple_of(MESSAGE_BITS);
    (used < CHANNEL_BITS).then_some(word | message << used << at)
}

fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// What a process adds to the fingerprint, which is the sum over all processes. A step changes one
/// or two terms.
fn mix(p: usize, word: u64) -> u64 {
    // The fractions of the square roots of 2, 3, 5 and 7.
    const KEYS: [u64; 4] = [
        0x6a09_e667_f3bc_c908,
        0xbb67_ae85_84ca_a73b,
        0x3c6e_f372_fe94_f82b,
        0xa54f_f53a_5f1d_36f1,
    ];
    let fold = |one: u64, other: u64| {
        let product = u128::from(one) * u128::from(other);
        product as u64 ^ (product >> 64) as u64
    };
    fold(fold(word ^ KEYS[p], 0x9e37_79b9_7f4a_7c15) ^ KEYS[3 - p], 0xd6e8_feb8_6659_fd93)
}
