//! What may happen to a link, how often, and which mistakes are planted.

/// How often each thing may still happen.
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

/// Mistakes that whoever drives the two halves could make, or that they could contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bug {
    /// What came before is delivered again.
    DuplicateTaken,
    /// What comes too early is delivered.
    GapTaken,
    /// After a reconnect one message is skipped.
    ResentTooLate,
    /// After a reconnect nothing is written again.
    NotResent,
    /// Messages for the peer's last life go to the next one.
    OutboxKept,
    /// What was received in the peer's last life counts in the next one.
    InboxKept,
    /// Whatever comes is acknowledged, delivered or not.
    AcknowledgedUnseen,
    /// The reader of a replaced connection goes on.
    StaleRead,
    /// The hello alone resumes the link.
    ResumedByHello,
}

impl Bug {
    pub(crate) const ALL: &[Self] = &[
        Self::DuplicateTaken,
        Self::GapTaken,
        Self::ResentTooLate,
        Self::NotResent,
        Self::OutboxKept,
        Self::InboxKept,
        Self::AcknowledgedUnseen,
        Self::StaleRead,
        Self::ResumedByHello,
    ];
}

/// What may happen next. Ends are 0, who dials, and 1; connections and frames are indices.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    Send(usize),
    Dial,
    Write(usize, usize),
    Beat(usize, usize),
    /// A frame arrives: the first one unless one is overtaken.
    Arrive(usize, usize, usize),
    Lose(usize, usize, usize),
    Double(usize, usize, usize),
    /// An end gives a connection up, or learns that the other has.
    Close(usize, usize),
    Restart(usize),
}
