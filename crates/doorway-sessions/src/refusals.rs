//! Why a request is refused, in words.

use doorway_protocol::{Code, Fence, Name, Refusal};

use super::names::RESERVED;

/// A refusal with this code and these words.
pub fn refusal(code: Code, text: impl Into<String>) -> Refusal {
    Refusal { code, text: text.into() }
}

/// The reason why nothing can be done with a session: it has ended.
pub fn gone() -> Refusal {
    refusal(Code::Gone, "the session has ended; open a new one")
}

/// The reason why a client cannot claim what it held: it does not say which node gave its session.
pub(super) fn unnamed() -> Refusal {
    let text = "the node has lost its list of sessions, and cannot tell whether this one was its \
                own: clients of version 0.1.0 do not say which node opened their session; update \
                the client";
    refusal(Code::Gone, text)
}

/// The reason why a request was refused: the node is stopping.
pub fn stopping() -> Refusal {
    refusal(Code::Unavailable, "the node is stopping; ask again when it is back")
}

/// The reason why a request was refused: somebody has drained the node.
pub(super) fn drained() -> Refusal {
    let text = "this node was drained: it grants nothing any more, and ends when nothing is held";
    refusal(Code::Unavailable, text)
}

/// The reason why a request gets no lock: its client has withdrawn it.
pub fn withdrawn() -> Refusal {
    refusal(Code::Gone, "the request was withdrawn")
}

/// The reason why something that the ledger must know was refused.
pub fn unwritten(error: &str) -> Refusal {
    refusal(Code::Unavailable, format!("the ledger of sessions cannot be written: {error}"))
}

/// The reason why a grant cannot be renewed.
pub(super) fn not_held(lock: &Name, fence: Fence) -> Refusal {
    refusal(Code::Gone, format!("`{lock}` is not held any more with fence {fence}"))
}

/// The reason why something was refused: a limit of the settings is reached.
pub fn limit(what: &str, name: &str, limit: usize) -> Refusal {
    refusal(Code::Busy, format!("{what}, which is the limit (`{name}` = {limit})"))
}

/// The reason why something was refused: the system allows no more descriptors.
pub fn no_files() -> Refusal {
    let text =
        "the node has as many files open as the system allows: raise LimitNOFILE of its unit";
    refusal(Code::Busy, text)
}

/// Refuse a name that only the daemon itself may use.
pub fn check_name(lock: &Name) -> Result<(), Refusal> {
    if !lock.as_str().starts_with(RESERVED) {
        return Ok(());
    }
    let text = format!("`{lock}`: names of locks must not begin with `%`, which is reserved");
    Err(refusal(Code::Invalid, text))
}
