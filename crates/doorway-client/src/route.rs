//! Which node to connect to next, and when.

use std::time::Duration;

use doorway_protocol::{Backoff, Moment};

use crate::endpoint::Endpoint;
use crate::endpoints::Endpoints;

/// Which of several nodes to connect to next, and when, for the driver of a
/// [`SessionMachine`](crate::SessionMachine).
///
/// If a node cannot be reached, the next one is tried at once. If none of them can be reached,
/// there is a delay before the next round, which grows. A connection that ends before the node has
/// served the client for a while counts like a failure, so a client that finds something else at an
/// endpoint does not connect again and again without a pause.
#[derive(Clone, Debug)]
pub struct Route {
    endpoints: Endpoints,
    /// The endpoint of the connection, or of the next attempt.
    current: usize,
    /// How many attempts have failed since a node last served us.
    failures: usize,
    /// How many endpoints in a row have failed without a delay.
    round: usize,
    /// When to try again.
    retry: Moment,
    backoff: Backoff,
    /// Since when the node has served us on this connection.
    served_since: Option<Moment>,
}

impl Route {
    /// If the node has served us for this long, the next delay is short again.
    const STEADY: Duration = Duration::from_secs(1);

    /// A route that begins with the first endpoint, at once; `backoff` has the delays.
    pub fn new(endpoints: Endpoints, backoff: Backoff) -> Self {
        let (current, failures, round, retry) = (0, 0, 0, Moment(0));
        Self { endpoints, current, failures, round, retry, backoff, served_since: None }
    }

    /// The endpoints of the node, all of which the route tries in turn.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The endpoint of the connection, or of the next attempt to connect.
    pub fn endpoint(&self) -> &Endpoint {
        self.endpoints.get(self.current)
    }

    /// When to try to connect next.
    pub fn due(&self) -> Moment {
        self.retry
    }

    /// How often all endpoints have failed since a node last served this client.
    pub fn rounds(&self) -> usize {
        self.failures / self.endpoints.count()
    }

    /// The node has welcomed the client. Calling this again has no effect.
    pub fn serves(&mut self, now: Moment) {
        self.served_since.get_or_insert(now);
        (self.failures, self.round) = (0, 0);
    }

    /// Has the node welcomed the client on this connection? Then [`Route::serves`] has no effect.
    pub fn is_served(&self) -> bool {
        self.served_since.is_some()
    }

    /// The node cannot be reached, or does not serve the client. If `stay` is true, no other node
    /// will do.
    pub fn failed(&mut self, now: Moment, stay: bool) {
        self.served_since = None;
        self.failures += 1;
        self.round += 1;
        self.current =
            if stay { self.current } else { (self.current + 1) % self.endpoints.count() };
        self.retry = now;
        if stay || self.round >= self.endpoints.count() {
            self.round = 0;
            self.retry = now.after(self.backoff.next_delay());
        }
    }

    /// The connection has ended. The node that served the client until then is tried first.
    pub fn ended(&mut self, now: Moment, stay: bool) {
        match self.served_since.take() {
            Some(since) if now.since(since) >= Self::STEADY => {
                self.backoff.reset();
                self.retry = now;
            }
            Some(_) => self.retry = now.after(self.backoff.next_delay()),
            None => self.failed(now, stay),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn route(endpoints: &str) -> Route {
        let backoff = Backoff::with_seed(8 * MS, 80 * MS, 1);
        Route::new(Endpoints::parse(endpoints).unwrap(), backoff)
    }

    fn at(ms: u64) -> Moment {
        Moment(ms * 1_000_000)
    }

    #[test]
    fn every_node_is_tried_before_the_first_delay() {
        let mut route = route("@a,@b");
        assert_eq!((route.due(), route.rounds()), (at(0), 0));
        route.failed(at(5), false);
        assert_eq!((route.endpoint().to_string().as_str(), route.due()), ("@b", at(5)));
        route.failed(at(6), false);
        assert_eq!((route.endpoint().to_string().as_str(), route.rounds()), ("@a", 1));
        assert!(route.due() >= at(10) && route.due() <= at(14), "{:?}", route.due());
    }

    #[test]
    fn a_client_that_holds_something_stays_with_its_node() {
        let mut route = route("@a,@b");
        route.failed(at(0), true);
        assert_eq!(route.endpoint().to_string(), "@a");
        assert!(route.due() > at(0));
    }

    #[test]
    fn something_else_that_listens_there_is_left_in_peace() {
        let mut route = route("@a");
        let mut attempts = 0;
        let mut now = at(0);
        while now < at(1000) {
            attempts += 1;
            now = now.after(MS).max(route.due());
            route.ended(now, false); // It accepts the connection, and closes it.
            now = route.due();
        }
        assert!(attempts < 40, "{attempts} attempts in a second");
        let mut attempts = 0;
        while now < at(2000) {
            attempts += 1;
            route.serves(now); // It even greets.
            route.ended(now.after(MS), false);
            now = route.due();
        }
        assert!(attempts < 40, "{attempts} attempts in a second");
    }

    #[test]
    fn a_node_that_served_for_a_while_is_tried_again_at_once() {
        let mut route = route("@a,@b");
        route.failed(at(0), false);
        route.serves(at(10));
        route.serves(at(20));
        route.ended(at(1010), false);
        assert_eq!((route.endpoint().to_string().as_str(), route.due()), ("@b", at(1010)));
        route.failed(at(1011), false);
        assert_eq!((route.endpoint().to_string().as_str(), route.due()), ("@a", at(1011)));
    }
}
