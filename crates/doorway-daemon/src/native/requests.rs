//! Carries out the requests of a connection.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use doorway_protocol::{Code, Refusal, Reply, Request};
use tokio::task::{AbortHandle, JoinSet};

use crate::principal::Principal;
use crate::service::outbox::Outbox;
use crate::service::{Service, Session, refusal};

/// How many questions of one connection may be open at once.
const QUESTIONS: usize = 256;

/// The requests of a connection, with the questions that could not be answered at once.
pub(super) struct Requests {
    service: Service,
    principal: Arc<Principal>,
    session: Option<Arc<Session>>,
    outbox: Arc<Outbox>,
    /// The open questions; they end with the connection.
    questions: JoinSet<()>,
    asked: BTreeMap<u64, AbortHandle>,
}

impl Requests {
    pub(super) fn new(
        service: &Service,
        principal: Principal,
        session: Option<Arc<Session>>,
        outbox: Arc<Outbox>,
    ) -> Self {
        Self {
            service: service.clone(),
            principal: Arc::new(principal),
            session,
            outbox,
            questions: JoinSet::new(),
            asked: BTreeMap::new(),
        }
    }

    /// Carry out a request. Its reply goes to the outbox, at once or later.
    pub(super) fn handle(&mut self, request: Request) {
        let service = &self.service;
        let reply = match request {
            Request::Acquire(number, ask) => {
                let Some(session) = &self.session else { return self.refuse(number, visitor()) };
                return service.ask(session, number, ask);
            }
            Request::Withdraw(number) => return self.withdraw(number),
            Request::Release(number, lock, fence) => {
                let released = match &self.session {
                    Some(session) => service.release(session, &lock, fence),
                    None => service.release_loose(&self.principal, &lock, fence),
                };
                Reply::Released(number, released)
            }
            Request::Renew(number, lock, fence) => {
                match service.renew(&self.principal, &lock, fence) {
                    Ok(()) => Reply::Done(number),
                    Err(refusal) => Reply::Refused(number, refusal),
                }
            }
            Request::Alive(number) => Reply::Alive(number),
            Request::Status(number) => Reply::Status(number, Box::new(service.status())),
            Request::List { number, prefix, after } => {
                Reply::Locks(number, service.list(&self.principal, &prefix, after.as_ref()))
            }
            Request::Bye => {
                self.session.iter().for_each(|session| service.close(session));
                return self.outbox.close();
            }
            other => return self.ask(other),
        };
        self.outbox.tell(&reply);
    }

    fn refuse(&self, number: u64, refusal: Refusal) {
        self.outbox.tell(&Reply::Refused(number, refusal));
    }

    /// Answer a question that may have to ask other nodes, or wait.
    fn ask(&mut self, request: Request) {
        let (service, principal) = (self.service.clone(), Arc::clone(&self.principal));
        match request {
            Request::Inspect(number, lock) => self.answer(number, async move {
                let report = service.inspect(&principal, &lock).await;
                report.map(|report| Reply::Lock(number, Box::new(report)))
            }),
            Request::Break(number, lock, fence) => self.answer(number, async move {
                service.break_lock(&principal, &lock, fence).await.map(|()| Reply::Done(number))
            }),
            Request::AwaitFree(number, lock) => self.answer(number, async move {
                service.await_free(&principal, &lock).await.map(|()| Reply::Done(number))
            }),
            _ => debug_assert!(false, "the others are handled before"),
        }
    }

    /// Answer a question at once if that is possible, otherwise when the answer is known.
    fn answer<F>(&mut self, number: u64, answer: F)
    where
        F: Future<Output = Result<Reply, Refusal>> + Send + 'static,
    {
        let mut answer = Box::pin(answer);
        let tell = move |outbox: &Outbox, answer: Result<Reply, Refusal>| {
            outbox.tell(&answer.unwrap_or_else(|refusal| Reply::Refused(number, refusal)));
        };
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(answer) = Pin::new(&mut answer).poll(&mut context) {
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

    fn withdraw(&mut self, number: u64) {
        if let Some(task) = self.asked.remove(&number)
            && !task.is_finished()
        {
            task.abort();
            let text = "the question was withdrawn";
            return self.refuse(number, refusal(Code::Gone, text));
        }
        if let Some(session) = &self.session
            && let Err(refusal) = self.service.withdraw(session, number)
        {
            self.refuse(number, refusal);
        }
    }
}

fn visitor() -> Refusal {
    refusal(Code::Invalid, "this connection has no session: open one to acquire locks")
}
