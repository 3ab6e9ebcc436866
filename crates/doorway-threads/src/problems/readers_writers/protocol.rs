//! The protocol of readers and writers: which thread waits for which.
//!
//! Every process goes through a turnstile, in the order in which they come, and holds it until it
//! is inside. The first reader takes the room for all readers, and the last one gives it back; a
//! writer takes it for itself. So readers that come one after another are inside together, and no
//! process overtakes a waiting writer.

use crate::algorithms::prelude::*;

shared! {
    /// Passed by one process at a time on the way in.
    TURNSTILE: turnstile = 1;
    /// Taken by a writer, or by the first reader.
    ROOM: room = 1;
    /// Taken by the process that changes the number of readers.
    COUNTING: counting = 1;
    /// The number of readers inside.
    READERS: readers = 0;
}

places! {
    outside: Reader, Writer;
    waiting: ReaderQueues, StartCount, Count, CountIn { readers }, TakeRoom, EndCount, LetPass;
    waiting: WriterQueues, AwaitRoom, LetOthersPass;
    inside: Read, Write;
    leaving: StartCountOut, CountAgain, CountOut { readers }, GiveRoom, EndCountOut;
}

/// The protocol of readers and writers, for `WRITERS` processes that write while all others read.
#[derive(Clone, Copy, Debug)]
pub enum Turnstile<const WRITERS: usize> {}

impl<const WRITERS: usize> Algorithm for Turnstile<WRITERS> {
    type At = At;

    const INFO: Info = Info {
        name: "readers-writers",
        origin: "after Courtois, Heymans and Parnas 1971",
        fewest: 1,
        registers: "3 semaphores, 1 number",
        primitive: Primitive::Semaphore,
        claims: Claims::FIFO,
        ..Info::LOCK
    };
    const SHARED: &'static [RegisterArray] = SHARED;

    fn outside(me: Process) -> At {
        if me.i < WRITERS { At::Writer } else { At::Reader }
    }

    fn together(inside: &[At]) -> bool {
        inside.len() <= 1 || inside.iter().all(|at| *at == At::Read)
    }

    fn step(at: At, _: Process, memory: &mut impl Memory) -> At {
        match at {
            At::Reader | At::ReaderQueues if memory.down(TURNSTILE) => At::StartCount,
            At::Reader | At::ReaderQueues => At::ReaderQueues,
            At::StartCount if memory.down(COUNTING) => At::Count,
            At::StartCount => At::StartCount,
            At::Count => At::CountIn { readers: memory.read(READERS) },
            At::CountIn { readers } => {
                memory.write(READERS, readers.wrapping_add(1));
                if readers == 0 { At::TakeRoom } else { At::EndCount }
            }
            At::TakeRoom if memory.down(ROOM) => At::EndCount,
            At::TakeRoom => At::TakeRoom,
            At::EndCount => {
                memory.up(COUNTING);
                At::LetPass
            }
            At::LetPass => {
                memory.up(TURNSTILE);
                At::Read
            }
            At::Read | At::StartCountOut if memory.down(COUNTING) => At::CountAgain,
            At::Read | At::StartCountOut => At::StartCountOut,
            At::CountAgain => At::CountOut { readers: memory.read(READERS) },
            At::CountOut { readers } => {
                memory.write(READERS, readers.wrapping_sub(1));
                if readers == 1 { At::GiveRoom } else { At::EndCountOut }
            }
            At::GiveRoom => {
                memory.up(ROOM);
                At::EndCountOut
            }
            At::EndCountOut => {
                memory.up(COUNTING);
                At::Reader
            }

            At::Writer | At::WriterQueues if memory.down(TURNSTILE) => At::AwaitRoom,
            At::Writer | At::WriterQueues => At::WriterQueues,
            At::AwaitRoom if memory.down(ROOM) => At::LetOthersPass,
            At::AwaitRoom => At::AwaitRoom,
            At::LetOthersPass => {
                memory.up(TURNSTILE);
                At::Write
            }
            At::Write => {
                memory.up(ROOM);
                At::Writer
            }
        }
    }
}
