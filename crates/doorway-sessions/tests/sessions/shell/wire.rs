//! The node's end of a connection.

use std::collections::BTreeMap;

use doorway_protocol::{Claims, Frames, Greeting, Hello, Name, Opening, Reply, Request, put};

/// A connection: what was received and is not a whole frame yet, and what is to be written.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Wire {
    pub(super) pid: u32,
    frames: Frames,
    begun: bool,
    /// The hello, while its claims come.
    hello: Option<(Box<Hello>, Vec<Claims>)>,
    said_hello: bool,
    pub(super) greeted: bool,
    pub(super) out: Vec<u8>,
    pub(super) closing: bool,
    /// The locks that the client waits to see free, by the numbers of its requests.
    pub(super) questions: BTreeMap<u64, Name>,
}

/// What a client has said.
pub(super) enum ClientMessage {
    Hello(Box<Hello>, Vec<Claims>),
    Request(Request),
}

impl Wire {
    pub(super) fn new(pid: u32) -> Self {
        Self { pid, ..Self::default() }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.frames.feed(bytes);
    }

    /// The next thing that the client has said, if all of it is here.
    pub(super) fn next(&mut self) -> Option<ClientMessage> {
        if !self.begun {
            self.begun = self.frames.magic().expect("a client sends MAGIC first");
        }
        if !self.begun {
            return None;
        }
        if self.said_hello {
            return self
                .frames
                .take()
                .expect("a client sends requests")
                .map(ClientMessage::Request);
        }
        if self.hello.is_none() {
            let hello: Hello = self.frames.take().expect("a client sends its hello first")?;
            self.hello = Some((Box::new(hello), Vec::new()));
        }
        let more = |hello: &Hello, claims: &[Claims]| match (&hello.opening, claims.last()) {
            (_, Some(last)) => last.more,
            (Opening::Resume { more, .. }, None) => *more,
            _ => false,
        };
        while let Some((hello, claims)) = &mut self.hello
            && more(hello, claims)
        {
            claims.push(self.frames.take().expect("a client sends its claims")?);
        }
        self.said_hello = true;
        self.hello.take().map(|(hello, claims)| ClientMessage::Hello(hello, claims))
    }

    pub(super) fn tell(&mut self, reply: &Reply) {
        if !self.closing {
            put(reply, &mut self.out);
        }
    }

    /// Greet the client. What it was told before comes after the greeting.
    pub(super) fn greet(&mut self, greeting: &Greeting, then: &[Reply]) {
        let mut told = std::mem::take(&mut self.out);
        put(greeting, &mut self.out);
        if greeting.is_ok() {
            for reply in then {
                put(reply, &mut self.out);
            }
            self.out.append(&mut told);
        }
        self.greeted = true;
    }

    /// Answer the questions about locks that are free.
    pub(super) fn answer_questions(&mut self, is_free: impl Fn(&Name) -> bool) {
        let Self { questions, out, .. } = self;
        questions.retain(|number, lock| !(is_free(lock) && put(&Reply::Done(*number), out)));
    }
}
