//! The accounts of a run: what each request cost, how long it waited, and how often it was
//! overtaken.
//!
//! Each message is charged to the request that caused it when it is sent. Dividing all messages by
//! all entries instead would charge the cost of requests that are still open at the end to those
//! that are done.

use std::collections::VecDeque;

use doorway_core::NodeId;

use super::line::Line;

/// The number of a request, in the order of asking; `NOBODY` for messages that no request caused.
pub(super) type RequestId = u32;
pub(super) const NOBODY: RequestId = u32::MAX;

/// A request and what it cost.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) node: NodeId,
    /// When the client arrived.
    asked: u64,
    /// When the algorithm was asked.
    acquired: u64,
    pub(super) messages: u32,
    pub(super) bytes: u32,
    /// How many entries there were before this request was made.
    entries_before: u64,
    /// How many requests were waiting before it.
    ahead: u32,
    /// Was it done while the accounts were open?
    counted: bool,
}

/// Sum, count and maximum of a measured time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    sum: u128,
    count: u64,
    most: u64,
}

impl Times {
    fn add(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.count += 1;
        self.most = self.most.max(value);
    }

    /// The mean in units of `unit` ticks, if anything was measured.
    pub(super) fn mean(self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / unit)
    }
}

/// What is measured from the end of the warm-up to the last counted entry.
#[derive(Clone, Debug)]
pub(super) struct Measurements {
    since: u64,
    pub(super) until: u64,
    pub(super) entries: u64,
    pub(super) entries_of: Vec<u32>,
    /// Messages received by each node.
    pub(super) handled: Vec<u64>,
    /// Messages and bytes that no request caused.
    pub(super) unclaimed: (u64, u64),
    pub(super) sync_delay: Times,
    pub(super) response: Times,
    pub(super) overtakes_max: u64,
    /// The integral over time of the number of waiting clients.
    pub(super) waiting_time: u128,
}

impl Measurements {
    fn new(size: usize, since: u64) -> Self {
        Self {
            since,
            until: since,
            entries: 0,
            entries_of: vec![0; size],
            handled: vec![0; size],
            unclaimed: (0, 0),
            sync_delay: Times::default(),
            response: Times::default(),
            overtakes_max: 0,
            waiting_time: 0,
        }
    }

    /// The length of the measurement, in ticks.
    pub(super) fn time(&self) -> u64 {
        self.until - self.since
    }
}

/// Everything that is counted.
#[derive(Clone, Debug)]
pub(super) struct Accounts {
    pub(super) requests: Vec<Request>,
    /// The newest request of each node.
    newest: Vec<RequestId>,
    /// Requests in the order in which they were done, until the accounts are closed.
    done: Vec<RequestId>,
    /// How many requests are done before anything is measured.
    warmup: usize,
    closed: bool,
    pub(super) line: Line,
    entries: u64,
    /// How many clients wait until their node may ask for them.
    backlog: u64,
    /// When permits became free while a node was waiting, until they are taken.
    vacated: VecDeque<u64>,
    pub(super) measured: Measurements,
}

impl Accounts {
    pub(super) fn new(size: usize, warmup: u64) -> Self {
        Self {
            requests: Vec::new(),
            newest: vec![NOBODY; size],
            done: Vec::new(),
            warmup: warmup as usize,
            closed: false,
            line: Line::new(size),
            entries: 0,
            backlog: 0,
            vacated: VecDeque::new(),
            measured: Measurements::new(size, 0),
        }
    }

    /// `node` asks its algorithm now for a client that arrived at `asked`.
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
        // A request that was ahead and is no longer has entered. All other entries since then are
        // overtakes.
        let since = self.entries - request.entries_before;
        let overtakes = since.saturating_sub(u64::from(request.ahead.saturating_sub(ahead)));
        let handed_over = self.vacated.pop_front().filter(|at| request.acquired <= *at);
        self.entries += 1;
        if !self.closed {
            let measured = &mut self.measured;
            measured.overtakes_max = measured.overtakes_max.max(overtakes);
            measured.response.add(now - request.asked);
            if let Some(vacated) = handed_over {
                measured.sync_delay.add(now - vacated);
            }
            measured.entries += 1;
            measured.entries_of[node.index()] += 1;
        }
        id
    }

    /// A request is done. `full` says whether all permits were held until now.
    pub(super) fn leave(&mut self, id: RequestId, full: bool, now: u64) {
        self.pass_time(now);
        if full && self.line.length() as usize > self.vacated.len() {
            self.vacated.push_back(now);
        }
        if !self.closed {
            self.done.push(id);
            if self.done.len() == self.warmup {
                self.measured = Measurements::new(self.newest.len(), now);
            }
        }
    }

    /// A node crashed, or its client gave up. If it was waiting, it leaves the line, and the
    /// requests behind it have one fewer ahead.
    pub(super) fn quit(&mut self, node: NodeId, waiting: bool, now: u64) {
        self.pass_time(now);
        if waiting {
            for behind in self.line.behind(node) {
                self.requests[self.newest[behind.index()] as usize].ahead -= 1;
            }
            self.line.leave(node);
        }
    }

    /// Is this the newest request of its node?
    pub(super) fn is_newest(&self, id: RequestId) -> bool {
        self.newest[self.requests[id as usize].node.index()] == id
    }

    /// The number of clients that wait until their node may ask for them changes by `change`.
    pub(super) fn keep_waiting(&mut self, change: i64, now: u64) {
        self.pass_time(now);
        self.backlog = self.backlog.saturating_add_signed(change);
    }

    /// A message has arrived at `node`.
    pub(super) fn handle(&mut self, node: NodeId) {
        self.measured.handled[node.index()] += u64::from(!self.closed);
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
            None if self.closed => {}
            None => {
                let (messages, sum) = &mut self.measured.unclaimed;
                (*messages, *sum) = (*messages + 1, *sum + u64::from(bytes));
            }
        }
        id
    }

    /// Close the accounts. Only requests that are done by now are counted, but messages may still
    /// be charged to them.
    pub(super) fn close(&mut self, now: u64) {
        self.pass_time(now);
        for id in &self.done {
            self.requests[*id as usize].counted = true;
        }
        self.closed = true;
    }

    /// How many requests are done, including those of the warm-up.
    pub(super) fn done(&self) -> u64 {
        self.done.len() as u64
    }

    /// The requests that count, in the order in which they were done.
    pub(super) fn counted(&self) -> &[RequestId] {
        self.done.get(self.warmup..).unwrap_or(&[])
    }

    /// Was this request done when the accounts were closed?
    pub(super) fn is_counted(&self, id: RequestId) -> bool {
        self.requests.get(id as usize).is_some_and(|request| request.counted)
    }

    /// The longest time that a client waited, or has been waiting.
    pub(super) fn longest_wait(&self) -> u64 {
        let open = self.line.standing().map(|node| {
            let request = &self.requests[self.newest[node.index()] as usize];
            self.measured.until.saturating_sub(request.asked)
        });
        open.max().unwrap_or(0).max(self.measured.response.most)
    }

    /// Bring the measurements over time up to `now`.
    pub(super) fn pass_time(&mut self, now: u64) {
        if !self.closed {
            let passed = now - self.measured.until;
            let waiting = u64::from(self.line.length()) + self.backlog;
            self.measured.waiting_time += u128::from(passed) * u128::from(waiting);
            self.measured.until = now;
        }
    }
}
