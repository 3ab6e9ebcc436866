//! The accounts of a run: what each request cost, how long it waited, and who overtook whom.
//!
//! Each message is charged to the request that caused it, when it is sent. Dividing all messages by
//! all entries would charge the requests still open at the end to those that are done.

use doorway_core::NodeId;

use super::line::Line;

/// The number of a request, in the order of asking; `NOBODY` for what no request caused.
pub(super) type RequestId = u32;
pub(super) const NOBODY: RequestId = u32::MAX;

/// A request and its bill.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) node: NodeId,
    /// When the client came.
    asked: u64,
    /// When the algorithm was told.
    acquired: u64,
    pub(super) messages: u32,
    pub(super) bytes: u32,
    /// How many had entered before this request was made.
    entries_before: u64,
    /// How many stood in line before it.
    ahead: u32,
    /// Was it done before the accounts were closed?
    counted: bool,
}

/// Sum and count of a measured time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: u128,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.count += 1;
    }

    /// The mean in units of `unit` ticks, if anything was measured.
    pub(super) fn value(self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / unit)
    }
}

/// Everything that is counted.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    pub(super) requests: Vec<Request>,
    /// The newest request of each node.
    newest: Vec<RequestId>,
    /// Requests in the order in which they were done.
    pub(super) done: Vec<RequestId>,
    /// How many entries are done before anything is measured.
    warmup: u64,
    /// How many were done, and had entered, when the accounts were closed.
    closed: Option<(usize, u64)>,
    pub(super) line: Line,
    pub(super) entries: u64,
    pub(super) entries_of: Vec<u32>,
    /// Messages received by each node.
    pub(super) handled: Vec<u64>,
    /// Messages and bytes that no request caused.
    pub(super) unclaimed: (u64, u64),
    /// When a place inside became free while someone waited, until the next entry.
    vacated: Option<u64>,
    pub(super) sync_delay: Mean,
    pub(super) response: Mean,
    pub(super) overtakes_max: u64,
    /// The sum over time of how many wait.
    pub(super) waiting_time: u128,
    waiting_since: u64,
}

impl Accounts {
    pub(super) fn new(size: usize, warmup: u64) -> Self {
        Self {
            requests: Vec::new(),
            newest: vec![NOBODY; size],
            done: Vec::new(),
            warmup,
            closed: None,
            line: Line::new(size),
            entries: 0,
            entries_of: vec![0; size],
            handled: vec![0; size],
            unclaimed: (0, 0),
            vacated: None,
            sync_delay: Mean::default(),
            response: Mean::default(),
            overtakes_max: 0,
            waiting_time: 0,
            waiting_since: 0,
        }
    }

    /// `node` asks its algorithm now for a client that came at `asked`.
    pub(super) fn acquire(&mut self, node: NodeId, asked: u64, now: u64) -> RequestId {
        self.pass_time(now);
        let id = self.requests.len() as RequestId;
        self.requests.push(Request {
            node,
            asked,
            acquired: now,
            messages: 0,
            bytes: 0,
            entries_before: self.entries,
            ahead: self.line.length(),
            counted: false,
        });
        self.newest[node.index()] = id;
        self.line.join(node);
        id
    }

    /// `node` enters with its newest request, which is returned.
    pub(super) fn enter(&mut self, node: NodeId, now: u64) -> RequestId {
        self.pass_time(now);
        let id = self.newest[node.index()];
        let ahead = self.line.leave(node);
        let request = &self.requests[id as usize];
        // Who stood ahead and no longer does has entered; all other entries since are overtakes.
        let entries_since = self.entries - request.entries_before;
        let overtakes = entries_since.saturating_sub(u64::from(request.ahead - ahead));
        let handed_over = self.vacated.take().filter(|vacated| request.acquired <= *vacated);
        if self.done.len() as u64 >= self.warmup {
            self.overtakes_max = self.overtakes_max.max(overtakes);
            self.response.add(now - request.asked);
            if let Some(vacated) = handed_over {
                self.sync_delay.add(now - vacated);
            }
        }
        self.entries += 1;
        self.entries_of[node.index()] += 1;
        id
    }

    /// A request is done; `full` if nobody else could have entered before.
    pub(super) fn leave(&mut self, id: RequestId, full: bool, now: u64) {
        self.done.push(id);
        if full && self.line.length() > 0 {
            self.vacated = Some(now);
        }
    }

    /// A node crashed; if it was waiting, it waits no more.
    pub(super) fn crash(&mut self, node: NodeId, waiting: bool, now: u64) {
        self.pass_time(now);
        if waiting {
            self.line.leave(node);
        }
    }

    /// Charge a message to `cause`, or to the newest request of `serves`.
    pub(super) fn charge(
        &mut self,
        cause: RequestId,
        serves: Option<NodeId>,
        bytes: u32,
    ) -> RequestId {
        let beneficiary = serves.map(|node| self.newest[node.index()]).filter(|id| *id != NOBODY);
        let id = beneficiary.unwrap_or(cause);
        match self.requests.get_mut(id as usize) {
            Some(request) => {
                request.messages += 1;
                request.bytes += bytes;
            }
            None => self.unclaimed = (self.unclaimed.0 + 1, self.unclaimed.1 + u64::from(bytes)),
        }
        id
    }

    /// Only what is done by now is counted; it may still be charged.
    pub(super) fn close(&mut self) {
        for id in &self.done {
            self.requests[*id as usize].counted = true;
        }
        self.closed = Some((self.done.len(), self.entries));
    }

    /// The requests that count, in the order in which they were done.
    pub(super) fn counted(&self) -> &[RequestId] {
        &self.done[..self.closed.map_or(self.done.len(), |(done, _)| done)]
    }

    /// Is it among them, and are they final?
    pub(super) fn is_counted(&self, id: RequestId) -> bool {
        self.requests.get(id as usize).is_some_and(|request| request.counted)
    }

    /// How many had entered when the accounts were closed.
    pub(super) fn closed_entries(&self) -> u64 {
        self.closed.map_or(self.entries, |(_, entries)| entries)
    }

    /// Bring the sum of waiting up to `now`.
    pub(super) fn pass_time(&mut self, now: u64) {
        self.waiting_time += u128::from(now - self.waiting_since) * u128::from(self.line.length());
        self.waiting_since = now;
    }
}
