//! Why a request is refused, in words.

use doorway_node::AcquireError;
use doorway_protocol::{Code, Name, Refusal};

use super::permits;

pub(crate) fn refusal(code: Code, text: impl Into<String>) -> Refusal {
    Refusal { code, text: text.into() }
}

pub(crate) fn gone() -> Refusal {
    refusal(Code::Gone, "the session is over; open a new one")
}

pub(crate) fn stopping() -> Refusal {
    refusal(Code::Unavailable, "the node stops; ask again when it is back")
}

pub(crate) fn lost() -> Refusal {
    refusal(Code::Broken, "the lock was granted and lost in the same moment; ask again")
}

pub(crate) fn withdrawn() -> Refusal {
    refusal(Code::Gone, "the request was withdrawn")
}

pub(crate) fn not_free(lock: &Name) -> Refusal {
    refusal(Code::NotFree, format!("`{lock}` is not free"))
}

/// A limit of the settings is reached.
pub(crate) fn limit(what: &str, name: &str, limit: usize) -> Refusal {
    refusal(Code::Busy, format!("{what}, which is the limit (`{name}` = {limit})"))
}

/// Names that begin like this are the daemon's own.
pub(crate) fn check_name(lock: &Name) -> Result<(), Refusal> {
    if !lock.as_str().starts_with(permits::RESERVED) {
        return Ok(());
    }
    let text = format!("`{lock}`: names of locks must not begin with `%`, which is reserved");
    Err(refusal(Code::Invalid, text))
}

/// What the node says, in words that name the lock as its client does.
pub(crate) fn of_node(error: AcquireError, lock: &Name) -> Refusal {
    let code = match &error {
        AcquireError::Name(_) => Code::Invalid,
        AcquireError::TimedOut => Code::NotFree,
        AcquireError::NotShared { .. } => Code::NotServed,
        AcquireError::Busy(_) | AcquireError::Backlog { .. } => Code::Busy,
        AcquireError::Broken(_) => Code::Broken,
        // The node has stopped, or has a reason that is newer than this service.
        _ => Code::Unavailable,
    };
    let text = match error {
        AcquireError::TimedOut => format!("`{lock}` was not free in time"),
        AcquireError::NotShared { algorithm, .. } => format!(
            "`{lock}` cannot be shared: {algorithm} serves exclusive locks only. Locks that can be \
             shared are configured with the algorithm `readers-writers`"
        ),
        other => other.to_string(),
    };
    refusal(code, text)
}
