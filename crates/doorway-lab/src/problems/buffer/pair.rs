//! One producer and one consumer: [`doorway_core::buffer`] as it ships.

use doorway_core::buffer::{Consumer, Message, Producer};

use crate::problems::exchange::{Envelope, Exchange, Faults, LocalAction, Outgoing};

/// The producer's number among the processes.
const PRODUCER: usize = 0;
/// The consumer's number.
const CONSUMER: usize = 1;

/// A producer and a consumer, for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) capacity: u64,
    pub(super) faults: Faults,
}

/// Both sides. A producer that has just started again does not know yet how far the consumer is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sides {
    pub(super) producer: Option<Producer<u8>>,
    pub(super) consumer: Consumer<u8>,
}

/// What an item with this number contains. The contents repeat, after more items than can be under
/// way, so that an item in the place of another is noticed.
pub(super) fn contents(number: u64, capacity: u64) -> u8 {
    (number % period(capacity)) as u8
}

/// After how many items the contents repeat.
pub(super) fn period(capacity: u64) -> u64 {
    2 * capacity + 1
}

/// Consume the next item, and see whether it is the right one.
pub(super) fn consume(consumer: &mut Consumer<u8>, capacity: u64) -> Result<u64, String> {
    let item = consumer.consume();
    let number = consumer.consumed();
    if item != Some(contents(number, capacity)) {
        return Err(format!("item {number} is not the one that was produced"));
    }
    Ok(number)
}

/// Whether an item would change nothing at the consumer.
pub(super) fn is_stale(consumer: &Consumer<u8>, number: u64) -> bool {
    consumer.clone().item(number, 0) == Ok(false)
}

impl Pair {
    /// What is true of a producer and a consumer at any time.
    fn bounds(&self, producer: &Producer<u8>, consumer: &Consumer<u8>) -> Result<(), String> {
        let (produced, consumed) = (producer.produced(), consumer.consumed());
        if producer.known_consumed() > consumed || consumer.known_produced() > produced {
            return Err("an image is ahead of its counter".into());
        }
        if produced - consumed > self.capacity {
            let items = produced - consumed;
            return Err(format!("the buffer has {items} items and room for {}", self.capacity));
        }
        Ok(())
    }

    fn to_consumer(message: Message<u8>) -> Envelope<Message<u8>> {
        Envelope { from: PRODUCER, to: CONSUMER, body: message }
    }

    fn to_producer(message: Message<u8>) -> Envelope<Message<u8>> {
        Envelope { from: CONSUMER, to: PRODUCER, body: message }
    }
}

impl Exchange for Pair {
    type State = Sides;
    type Body = Message<u8>;

    fn names(&self) -> Vec<String> {
        vec!["producer".into(), "consumer".into()]
    }

    fn faults(&self) -> Faults {
        self.faults
    }

    fn first(&self) -> (Sides, Vec<Envelope<Message<u8>>>) {
        let producer = Some(Producer::new(self.capacity));
        (Sides { producer, consumer: Consumer::new(self.capacity) }, Vec::new())
    }

    fn local_actions(&self, Sides { producer, consumer }: &Sides) -> Vec<(usize, LocalAction)> {
        let mut actions = Vec::new();
        let Faults { again, crash, .. } = self.faults;
        if let Some(producer) = producer {
            actions.extend((producer.free() > 0).then_some((PRODUCER, LocalAction::Produce)));
            let open = producer.unconfirmed().next().is_some();
            actions.extend((again && open).then_some((PRODUCER, LocalAction::SendAgain)));
        }
        let there = consumer.known_produced() > consumer.consumed();
        actions.extend(there.then_some((CONSUMER, LocalAction::Consume(0))));
        actions.extend(again.then_some((CONSUMER, LocalAction::SendAgain)));
        if crash {
            actions.extend([(PRODUCER, LocalAction::Crash), (CONSUMER, LocalAction::Crash)]);
        }
        actions
    }

    fn act(
        &self,
        sides: &mut Sides,
        process: usize,
        action: LocalAction,
        out: &mut Outgoing<Message<u8>>,
    ) -> Result<String, String> {
        let Sides { producer, consumer } = sides;
        Ok(match (process, action, producer.as_mut()) {
            (PRODUCER, LocalAction::Produce, Some(producer)) => {
                let number = producer.produced() + 1;
                let item = producer.produce(contents(number, self.capacity));
                out.mail.extend(item.ok().map(Self::to_consumer));
                format!("produces item {number}")
            }
            (PRODUCER, LocalAction::SendAgain, Some(producer)) => {
                out.mail.extend(producer.unconfirmed().map(Self::to_consumer));
                "sends again what is not known to be consumed".into()
            }
            (CONSUMER, LocalAction::Consume(_), _) => {
                let number = consume(consumer, self.capacity)?;
                out.mail.push(Self::to_producer(consumer.credit()));
                format!("consumes item {number}")
            }
            (CONSUMER, LocalAction::SendAgain, _) => {
                out.mail.push(Self::to_producer(consumer.credit()));
                "sends its credit again".into()
            }
            // A new connection: both begin again with what was consumed, which was written down.
            (_, LocalAction::Crash, survivor) => {
                out.cut = true;
                *consumer = Consumer::resume(self.capacity, consumer.consumed());
                out.mail.push(Self::to_producer(consumer.credit()));
                match survivor {
                    Some(survivor) if process == CONSUMER => {
                        out.mail.extend(survivor.unconfirmed().map(Self::to_consumer));
                    }
                    _ => *producer = None,
                }
                "crashes and starts again".into()
            }
            _ => return Err("a process did what it cannot do".into()),
        })
    }

    fn receive(
        &self,
        Sides { producer, consumer }: &mut Sides,
        envelope: Envelope<Message<u8>>,
        _out: &mut Outgoing<Message<u8>>,
    ) -> Result<(), String> {
        match (envelope.body, producer) {
            (Message::Item(number, item), _) => {
                consumer.item(number, item).map_err(|why| format!("the consumer refused {why}"))?;
            }
            (Message::Credit(consumed), Some(producer)) => {
                producer.credit(consumed).map_err(|why| format!("the producer refused {why}"))?;
            }
            (Message::Credit(consumed), producer @ None) => {
                *producer = Some(Producer::resume(self.capacity, consumed));
            }
        }
        Ok(())
    }

    fn check(&self, Sides { producer, consumer }: &Sides) -> Result<(), String> {
        producer.as_ref().map_or(Ok(()), |producer| self.bounds(producer, consumer))
    }

    fn is_done(&self, Sides { producer, .. }: &Sides) -> bool {
        producer.as_ref().is_some_and(|producer| producer.unconfirmed().next().is_none())
    }

    fn settle(&self, sides: &mut Sides, mail: &mut Vec<Envelope<Message<u8>>>, rebase: bool) {
        let Sides { producer, consumer } = sides;
        let image = producer.as_ref().map(Producer::known_consumed);
        mail.retain(|envelope| match envelope.body {
            Message::Item(number, _) => !is_stale(consumer, number),
            Message::Credit(consumed) => image.is_none_or(|image| consumed > image),
        });
        // Before a producer knows where to go on, only the counter of the consumer matters.
        let least = image.unwrap_or_else(|| consumer.consumed());
        let base = least - least % period(self.capacity);
        if !rebase || base == 0 {
            return;
        }
        for producer in producer.iter_mut() {
            producer.rebase(base);
        }
        consumer.rebase(base);
        for envelope in mail {
            match &mut envelope.body {
                Message::Item(number, _) | Message::Credit(number) => *number -= base,
            }
        }
    }
}
