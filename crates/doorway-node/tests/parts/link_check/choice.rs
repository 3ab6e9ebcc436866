//! What can happen to a link, how often, and which mistakes are planted.

/// How often each event may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    pub(crate) messages: [u8; 2],
    pub(crate) dials: u8,
    pub(crate) cuts: u8,
    pub(crate) losses: u8,
    pub(crate) doubles: u8,
    pub(crate) swaps: u8,
    pub(crate) restarts: [u8; 2],
}

/// Planted mistakes, in the two ends or in the code that drives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bug {
    /// A message that was delivered before is delivered again.
    DuplicateTaken,
    /// A message that arrives too early is delivered.
    GapTaken,
    /// After a reconnect one message is skipped.
    ResentTooLate,
    /// After a reconnect nothing is written again.
    NotResent,
    /// Messages for one incarnation of the peer go to the next one.
    OutboxKept,
    /// Messages received from one incarnation of the peer count for the next one.
    InboxKept,
    /// Every message is acknowledged, whether it was delivered or not.
    AcknowledgedUnseen,
    /// The reader of a replaced connection goes on.
    StaleRead,
    /// The hello alone completes the handshake.
    ResumedByHello,
}

impl Bug {
    /// Every mistake, with the least number of steps after which it is noticed.
    pub(crate) const ALL: &[(Self, usize)] = &[
        (Self::DuplicateTaken, 9),
        (Self::GapTaken, 8),
        (Self::ResentTooLate, 6),
        (Self::NotResent, 6),
        (Self::OutboxKept, 6),
        (Self::InboxKept, 12),
        (Self::AcknowledgedUnseen, 16),
        (Self::StaleRead, 15),
        (Self::ResumedByHello, 9),
    ];
}

/// What can happen next. End 0 dials, end 1 accepts; connections and frames are indices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    Send(usize),
    Dial,
    Write(usize, usize),
    Beat(usize, usize),
    /// A frame arrives: the first one, unless frames are reordered.
    Arrive(usize, usize, usize),
    Lose(usize, usize, usize),
    Double(usize, usize, usize),
    /// An end closes a connection, or learns that the other has closed it.
    Close(usize, usize),
    Restart(usize),
}
