//! Carries out the requests of a connection.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use doorway_node::members::BoxedFuture;
use doorway_protocol::{Code, MembersRequest, Refusal, Reply, Request};
use doorway_sessions::clock::ms;
use doorway_sessions::outbox::Outbox;
use doorway_sessions::principal::Principal;
use doorway_sessions::refusals::refusal;
use tokio::task::{AbortHandle, JoinSet};

use crate::members::audit::Operator;
use crate::service::{OnceAsk, OpenConnection, Service, TakenWindow};

/// How many questions of one connection may be open at once.
const QUESTIONS: usize = 256;

/// The requests of a connection, with the questions that could not be answered at once.
pub(super) struct Requests {
    service: Service,
    principal: Arc<Principal>,
    /// The address of a client that came over TCP.
    from: Option<IpAddr>,
    outbox: Arc<Outbox>,
    /// The open questions; they end with the connection.
    questions: JoinSet<()>,
    asked: BTreeMap<u64, AbortHandle>,
}

impl Requests {
    pub(super) fn new(
        service: &Service,
        principal: Arc<Principal>,
        from: Option<IpAddr>,
        outbox: Arc<Outbox>,
    ) -> Self {
        Self {
            service: service.clone(),
            principal,
            from,
            outbox,
            questions: JoinSet::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Carry out a request. Its reply goes to the outbox, at once or later. True if the request was
    /// passed on to the sessions.
    pub(super) fn handle(&mut self, connected: &OpenConnection, request: Request) -> bool {
        match request {
            Request::Status(number) => {
                self.outbox.tell(&Reply::Status(number, Box::new(self.service.status())));
            }
            Request::LastHolders(number, lock) => {
                match self.service.last_holders(&self.principal(connected), &lock) {
                    Ok(holders) => self.outbox.tell(&Reply::LastHolders(number, holders)),
                    Err(refusal) => self.refuse(number, refusal),
                }
            }
            Request::List { number, prefix, after } => {
                let locks = self.service.list(&self.principal(connected), &prefix, after.as_ref());
                self.outbox.tell(&Reply::Locks(number, locks));
            }
            Request::Evidence(number) => {
                if let Err(refusal) = self.service.look_for_holder(connected, number) {
                    self.refuse(number, refusal);
                }
            }
            Request::Withdraw(number) if self.withdraw(number) => {}
            Request::Inspect(..)
            | Request::Break(..)
            | Request::AwaitFree(..)
            | Request::Drain(..)
            | Request::Ledger(..)
            | Request::Members(..)
            | Request::Once { .. }
            | Request::Windows(..) => self.ask(connected, request),
            // Everything that concerns a session.
            other => {
                self.service.request(connected, other);
                return true;
            }
        }
        false
    }

    /// The client, with the rights that it has now: the settings may have been reloaded.
    fn principal(&self, connected: &OpenConnection) -> Arc<Principal> {
        connected.principal().unwrap_or_else(|| Arc::clone(&self.principal))
    }

    fn refuse(&self, number: u64, refusal: Refusal) {
        self.outbox.tell(&Reply::Refused(number, refusal));
    }

    /// Answer a question that may have to ask other nodes, or wait.
    fn ask(&mut self, connected: &OpenConnection, request: Request) {
        let (service, principal) = (self.service.clone(), self.principal(connected));
        let from = self.from;
        match request {
            Request::Inspect(number, lock) => self.answer(number, async move {
                let report = service.inspect(&principal, &lock).await;
                report.map(|report| Reply::Lock(number, Box::new(report)))
            }),
            Request::Break(number, lock, fence) => self.answer(number, async move {
                let operator = Operator { principal, from };
                service.break_for(&operator, &lock, fence).await.map(|()| Reply::Done(number))
            }),
            Request::AwaitFree(number, lock) => self.answer(number, async move {
                service.await_free(&principal, &lock).await.map(|()| Reply::Done(number))
            }),
            Request::Ledger(number) => self.answer(number, async move {
                service.try_disk().await;
                Ok(Reply::Ledger(number, service.ledger_trouble()))
            }),
            Request::Drain(number, ms) => self.answer(number, async move {
                let within = (ms > 0).then(|| Duration::from_millis(ms));
                service.leave(&principal, within).await.map(|()| Reply::Done(number))
            }),
            Request::Members(number, MembersRequest::Log(after)) => {
                self.answer(number, async move {
                    let entries = service.audit(&principal, after);
                    entries.map(|entries| Reply::Audit(number, entries))
                });
            }
            Request::Members(number, MembersRequest::Arranged) => self.answer(number, async move {
                Ok(Reply::Arranged(number, service.node().arrangements()))
            }),
            Request::Members(number, request) => self.answer(number, async move {
                let report = service.members(&Operator { principal, from }, request).await;
                report.map(|report| Reply::Members(number, Box::new(report)))
            }),
            Request::Once { number, lock, period_ms, key, who } => {
                let (period, remote) = (Duration::from_millis(period_ms), from.is_some());
                let ask = OnceAsk { lock, period, key, who, remote };
                self.answer(number, async move {
                    let taken = service.take_window(&principal, ask).await;
                    taken.map(|TakenWindow { lock, fence, left }| Reply::Window {
                        number,
                        lock,
                        fence,
                        left_ms: ms(left),
                    })
                });
            }
            Request::Windows(number, lock) => self.answer(number, async move {
                let windows = service.windows(&principal, &lock).await;
                windows.map(|windows| Reply::Locks(number, windows))
            }),
            _ => debug_assert!(false, "the others are handled before"),
        }
    }

    /// Answer a question at once if that is possible, otherwise when the answer is known.
    fn answer<F>(&mut self, number: u64, answer: F)
    where
        F: Future<Output = Result<Reply, Refusal>> + Send + 'static,
    {
        self.answer_by(number, Box::pin(answer));
    }

    fn answer_by(&mut self, number: u64, mut answer: BoxedFuture<'static, Result<Reply, Refusal>>) {
        let tell = move |outbox: &Outbox, answer: Result<Reply, Refusal>| {
            outbox.tell(&answer.unwrap_or_else(|refusal| Reply::Refused(number, refusal)));
        };
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            return tell(&self.outbox, answer);
        }
        while self.questions.try_join_next().is_some() {}
        self.asked.retain(|_, task| !task.is_finished());
        if self.asked.contains_key(&number) {
            let text = format!("another question with the number {number} is open");
            return self.refuse(number, refusal(Code::Invalid, text));
        }
        if self.asked.len() >= QUESTIONS {
            let text = format!(
                "the connection has {QUESTIONS} open questions, the limit; wait for answers"
            );
            return self.refuse(number, refusal(Code::Busy, text));
        }
        let outbox = Arc::clone(&self.outbox);
        let task = self.questions.spawn(async move { tell(&outbox, answer.await) });
        self.asked.insert(number, task);
    }

    /// Withdraw a question. False if none with this number is open.
    fn withdraw(&mut self, number: u64) -> bool {
        let open = self.asked.remove(&number).filter(|task| !task.is_finished());
        let Some(task) = open else { return false };
        task.abort();
        self.refuse(number, refusal(Code::Gone, "the question was withdrawn"));
        true
    }
}
