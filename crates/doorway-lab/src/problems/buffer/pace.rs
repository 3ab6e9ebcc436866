//! How fast items pass through a buffer whose messages take a time, by its capacity.

use std::collections::VecDeque;

use doorway_core::buffer::{Consumer, Message, Producer};

/// The number of items that pass in a time, if every message takes one unit of time, and producing
/// and consuming take `work` units each: at most `1 / work`, and at most the capacity in each round
/// trip.
///
/// The messages are those of [`doorway_core::buffer`], which says when an item may be produced.
pub fn items_per_delay(capacity: u64, work: f64, time: f64) -> f64 {
    let (mut producer, mut consumer) = (Producer::new(capacity), Consumer::new(capacity));
    // When each ITEM and each CREDIT arrives.
    let (mut coming, mut going) = (VecDeque::<(f64, u64)>::new(), VecDeque::<(f64, u64)>::new());
    let (mut ready, mut idle, mut now) = (0.0_f64, 0.0_f64, 0.0_f64);
    while now < time {
        // The next event: the producer is ready and has room, an item or a credit arrives, or the
        // consumer is idle and has an item.
        let may = producer.free() > 0;
        let there = consumer.known_produced() > consumer.consumed();
        let next = [
            may.then_some(ready),
            coming.front().map(|(at, _)| *at),
            going.front().map(|(at, _)| *at),
            there.then_some(idle),
        ];
        let least = next.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        now = now.max(least);
        if next[1] == Some(least) {
            let Some((_, number)) = coming.pop_front() else { break };
            if consumer.item(number, ()).is_err() {
                break;
            }
        } else if next[2] == Some(least) {
            let Some((_, consumed)) = going.pop_front() else { break };
            if producer.credit(consumed).is_err() {
                break;
            }
        } else if next[3] == Some(least) {
            consumer.consume();
            idle = now + work;
            if let Message::Credit(consumed) = consumer.credit() {
                going.push_back((idle + 1.0, consumed));
            }
        } else if let Ok(Message::Item(number, ())) = producer.produce(()) {
            ready = now + work;
            coming.push_back((ready + 1.0, number));
        }
    }
    consumer.consumed() as f64 / now
}
