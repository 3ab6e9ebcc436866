//! A search that was stopped, kept in a file, and continued.
//!
//! The file has what the search knows: the fingerprints, how each state was first reached, and the
//! graph if it is recorded. It has no rows: what the numbers in a row stand for, only the process
//! knows that made them. The rows of the states that are still open are made anew, by the steps
//! that lead to them. That visits only the states on these paths.

use std::io::{self, Read, Write};

use crc32fast::Hasher;

use super::layer::{Layer, Part};
use super::ways::Ways;
use super::{Scope, Search, shard};
use crate::graph::Graph;
use crate::model::{Model, NOT_FOLLOWED, Successors, Tag};

/// The first bytes of a file. The number of its format follows, as one digit.
const MAGIC: &[u8; 15] = b"doorway search ";

/// The number of the format that is written. Format 1 had another checksum.
const FORMAT: u8 = b'2';

/// Why a search cannot be continued from a file.
#[derive(Debug)]
pub enum KeptError {
    /// The file cannot be read.
    Io(io::Error),
    /// The file has no search, or is damaged.
    Damaged,
    /// The file has the format of another version of Doorway; this is its number.
    Format(char),
    /// The file has the search of something else; this is what it says it is.
    Other(String),
}

impl std::fmt::Display for KeptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Damaged => f.write_str("it has no search, or it is damaged"),
            Self::Format(number) => write!(
                f,
                "another version of Doorway wrote it, in format {number}; this version reads \
                 format {}",
                char::from(FORMAT)
            ),
            Self::Other(what) => write!(f, "it has another search: {what}"),
        }
    }
}

impl std::error::Error for KeptError {}

impl From<io::Error> for KeptError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Damaged } else { Self::Io(error) }
    }
}

impl<'m> Search<'m> {
    /// Write a search that has stopped. `title` says in one line what is searched; a search is
    /// continued only under the title that it was kept with.
    pub fn keep(&self, title: &str, out: &mut dyn Write) -> io::Result<()> {
        let mut out = Writer { out, sum: Hasher::new() };
        out.bytes(MAGIC)?;
        out.bytes(&[FORMAT])?;
        out.numbers(title.chars().map(u32::from).collect::<Vec<_>>().into_iter())?;
        let progress = self.progress;
        for number in [progress.states, progress.steps, progress.bytes] {
            out.bytes(&number.to_le_bytes())?;
        }
        out.numbers([progress.depth, self.expanded, self.scope.record.into()].into_iter())?;
        out.numbers(self.layers.iter().copied())?;
        for table in &self.shards {
            out.numbers(table.words().iter().copied())?;
        }
        out.numbers(self.ways.heads().into_iter())?;
        self.ways.steps().try_for_each(|steps| out.bytes(steps))?;
        let (ends, targets, tags) = self.graph.parts();
        out.numbers(ends.iter().copied())?;
        out.numbers(targets.iter().copied())?;
        out.numbers(tags.iter().map(|tag| tag.to_bits().into()))?;
        let sum = out.sum.clone().finalize();
        out.bytes(&sum.to_le_bytes())?;
        out.out.flush()
    }

    /// Read a search that was [kept](Self::keep), of the same model and under the same title.
    pub fn continued(
        model: &'m dyn Model,
        scope: Scope,
        title: &str,
        input: &mut dyn Read,
    ) -> Result<Self, KeptError> {
        let mut input = Reader { input, sum: Hasher::new() };
        let (mut magic, mut format) = ([0; MAGIC.len()], [0]);
        input.bytes(&mut magic)?;
        input.bytes(&mut format)?;
        match format {
            _ if magic != *MAGIC => return Err(KeptError::Damaged),
            [FORMAT] => {}
            [other] => return Err(KeptError::Format(char::from(other))),
        }
        let said = input.numbers()?.into_iter().map(char::from_u32).collect::<Option<String>>();
        let said = said.ok_or(KeptError::Damaged)?;
        if said != title {
            return Err(KeptError::Other(said));
        }
        let mut search = Self::new(model, scope);
        let progress = &mut search.progress;
        for number in [&mut progress.states, &mut progress.steps, &mut progress.bytes] {
            let mut bytes = [0; 8];
            input.bytes(&mut bytes)?;
            *number = u64::from_le_bytes(bytes);
        }
        let [depth, expanded, record] = input.numbers()?[..] else {
            return Err(KeptError::Damaged);
        };
        if (record != 0) != scope.record {
            return Err(KeptError::Damaged);
        }
        (search.progress.depth, search.expanded) = (depth, expanded);
        search.layers = input.numbers()?;
        for table in &mut search.shards {
            table.restore(input.numbers()?);
        }
        for [source, states, length] in input.numbers()?.as_chunks().0 {
            let mut steps = vec![0; Ways::checked(*length).ok_or(KeptError::Damaged)?];
            input.bytes(&mut steps)?;
            search.ways.restore(*source, *states, steps).ok_or(KeptError::Damaged)?;
        }
        let (ends, targets) = (input.numbers()?, input.numbers()?);
        let tags = input.numbers()?.into_iter().map(|bits| Tag::from_bits(bits as u16));
        search.graph = Graph::of_parts(ends, targets, tags.collect());
        let sum = input.sum.clone().finalize();
        let mut said = [0; 4];
        input.bytes(&mut said)?;
        if u32::from_le_bytes(said) != sum {
            return Err(KeptError::Damaged);
        }
        search.open = Some(search.rebuild().ok_or(KeptError::Damaged)?);
        Ok(search)
    }

    /// Make the rows of the states that are not expanded yet: the rest of the layer, and what was
    /// found of the next one. `None` if the steps lead to other states than they did.
    fn rebuild(&self) -> Option<(Layer, Layer)> {
        let all = self.ways.len();
        let ends: Vec<u32> =
            [0, 1].into_iter().chain(self.layers.iter().copied()).chain([all]).collect();
        let layers: Vec<(u32, u32)> = ends.iter().copied().zip(ends[1..].iter().copied()).collect();
        // The states on the paths to the open ones, found backwards.
        let mut needed = vec![false; all as usize];
        needed.get_mut(self.expanded as usize..)?.fill(true);
        for &(begin, end) in layers[1..].iter().rev() {
            for (state, (source, _)) in (begin..end).zip(self.ways.from(begin)) {
                needed[source as usize] |= needed[state as usize];
            }
        }
        let (rows, print) = self.model.first();
        let first = Part { begin: 0, rows, prints: vec![print.max(1)] };
        let mut here = (vec![0], first);
        let mut before = (Vec::new(), Part::default());
        for &(begin, end) in &layers[1..] {
            let steps = (begin..end).zip(self.ways.from(begin));
            let next = self.follow(&here, steps.filter(|(state, _)| needed[*state as usize]))?;
            before = std::mem::replace(&mut here, next);
        }
        let (numbers, mut layer) = before;
        let done = numbers.partition_point(|number| *number < self.expanded);
        layer.rows.drain(..done * self.model.width());
        layer.prints.drain(..done);
        layer.begin = self.expanded;
        Some((Layer::of(layer), Layer::of(here.1)))
    }

    /// The numbers and rows of the states to which these steps lead, given those of the states
    /// before. A step is the number of the state, its source and the position of the step.
    fn follow(
        &self,
        before: &(Vec<u32>, Part),
        steps: impl Iterator<Item = (u32, (u32, u32))>,
    ) -> Option<(Vec<u32>, Part)> {
        let width = self.model.width();
        let mut steps: Vec<_> = steps.collect();
        let found: Vec<u32> = steps.iter().map(|(state, _)| *state).collect();
        let begin = found.first().copied().unwrap_or(self.ways.len());
        let (rows, prints) = (vec![0; found.len() * width], vec![0; found.len()]);
        let mut part = Part { begin, rows, prints };
        steps.sort_unstable_by_key(|(_, step)| *step);
        let mut successors = Successors::default();
        for of_source in steps.chunk_by(|(_, one), (_, other)| one.0 == other.0) {
            let at = before.0.binary_search(&of_source[0].1.0).ok()?;
            let row = &before.1.rows[at * width..(at + 1) * width];
            successors.clear();
            self.model.expand(row, before.1.prints[at], &mut successors);
            let mut all = (0..).zip(successors.iter(width));
            for (state, (_, ordinal)) in of_source {
                let (_, (print, _, row)) = all.find(|(at, _)| at == ordinal)?;
                // Without the graph the table has no numbers.
                let is_it = |number: &u32| number == state || !self.scope.record;
                self.shards[shard(print)].find(print).filter(is_it)?;
                let at = found.binary_search(state).ok().filter(|_| print != NOT_FOLLOWED)?;
                part.rows[at * width..(at + 1) * width].copy_from_slice(row);
                part.prints[at] = print;
            }
        }
        Some((found, part))
    }
}

impl Layer {
    fn of(part: Part) -> Self {
        Self { parts: if part.prints.is_empty() { Vec::new() } else { vec![part] } }
    }
}

/// The most numbers that are converted at a time.
const PIECE: usize = 1 << 14;

struct Writer<'w> {
    out: &'w mut dyn Write,
    sum: Hasher,
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.out.write_all(bytes)
    }

    /// Write the number of numbers, and the numbers.
    fn numbers(&mut self, mut numbers: impl ExactSizeIterator<Item = u32>) -> io::Result<()> {
        self.bytes(&(numbers.len() as u64).to_le_bytes())?;
        while numbers.len() > 0 {
            let piece = numbers.by_ref().take(PIECE);
            let bytes: Vec<u8> = piece.flat_map(u32::to_le_bytes).collect();
            self.bytes(&bytes)?;
        }
        Ok(())
    }
}

struct Reader<'r> {
    input: &'r mut dyn Read,
    sum: Hasher,
}

impl Reader<'_> {
    fn bytes(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        self.input.read_exact(bytes)?;
        self.sum.update(bytes);
        Ok(())
    }

    /// Read what [`Writer::numbers`] has written. Memory is taken only for numbers that are there.
    fn numbers(&mut self) -> io::Result<Vec<u32>> {
        let mut length = [0; 8];
        self.bytes(&mut length)?;
        let mut left = u64::from_le_bytes(length);
        let mut numbers = Vec::new();
        let mut bytes = Vec::new();
        while left > 0 {
            let piece = left.min(PIECE as u64) as usize;
            bytes.resize(piece * 4, 0);
            self.bytes(&mut bytes)?;
            let words = bytes.chunks_exact(4);
            numbers.extend(words.map(|word| u32::from_le_bytes(word.try_into().unwrap_or([0; 4]))));
            left -= piece as u64;
        }
        Ok(numbers)
    }
}
