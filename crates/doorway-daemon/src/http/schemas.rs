//! The bodies, parameters and events of the HTTP API that `doorway-protocol` does not define.

use doorway_protocol::{Absent, Fence};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The default time to live of a lease, in milliseconds.
const TTL_MS: u32 = 10_000;

/// The longest time that a request may wait for a lock, in milliseconds.
pub(crate) const LONGEST_MS: u32 = 600_000;

/// The lock that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it only describes the path, which is taken apart elsewhere")]
pub(crate) struct LockPath {
    /// The name of the lock: 1 to 200 bytes of UTF-8, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^%\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$"
    )]
    name: String,
}

/// A request for a lock.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AcquireRequest {
    /// An idempotency key that the client chooses for this request. A client that repeats a request
    /// with the same `request_id` gets the same grant, or keeps its place in the queue. Without
    /// one, each request is a new one.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) request_id: Option<String>,
    /// The time to live of the lease, in milliseconds: it ends unless it is renewed within this
    /// time. The node may shorten it, and raises it to 500 if it is less. With null the lock is
    /// held until it is released or broken, if `limits.endless` of the node allows that.
    #[schema(minimum = 0, maximum = 4_294_967_295_u64)]
    #[serde(deserialize_with = "whole_or_none")]
    pub(crate) ttl_ms: Option<u32>,
    /// How long to wait for the lock, in milliseconds. With 0 the request does not wait. A request
    /// with a `request_id` that was not granted in time keeps its place in the queue for `ttl_ms`,
    /// or for 10 seconds if that is null.
    #[schema(minimum = 0, maximum = 600_000)]
    #[serde(deserialize_with = "whole")]
    pub(crate) wait_ms: u32,
    /// True to hold the lock in shared mode, together with other holders in shared mode.
    pub(crate) shared: bool,
    /// The number of holders that the lock allows at once (a counting semaphore). All requests for
    /// a lock must give the same number. It cannot be combined with `shared`.
    #[schema(minimum = 1, maximum = 64)]
    #[serde(deserialize_with = "whole_or_none")]
    pub(crate) permits: Option<u32>,
    /// What the client does, shown to people who ask who holds the lock. The node keeps 200 bytes.
    pub(crate) label: String,
}

impl Default for AcquireRequest {
    fn default() -> Self {
        Self {
            request_id: None,
            ttl_ms: Some(TTL_MS),
            wait_ms: 0,
            shared: false,
            permits: None,
            label: String::new(),
        }
    }
}

/// A grant, held by a lease.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Lease {
    /// The name of the lock.
    pub(crate) lock: String,
    /// The fence of the grant: a number of up to 63 bits. It is a string of digits because many
    /// JSON readers keep only 53 bits of a number.
    #[schema(value_type = String, pattern = "^[0-9]{1,19}$")]
    pub(crate) fence: Fence,
    /// The number of the view in which the grant was made.
    pub(crate) view: u64,
    /// The number of the session that holds the grant at this node.
    pub(crate) session: u64,
    /// The time to live of the lease, in milliseconds; null if it is without end.
    pub(crate) ttl_ms: Option<u64>,
    /// The time until the lease ends, in milliseconds from when the node wrote this response; null
    /// if it is without end.
    pub(crate) expires_in_ms: Option<u64>,
}

/// A request to renew the lease of a grant.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenewRequest {
    /// The fence of the grant.
    #[schema(value_type = String, pattern = "^[1-9][0-9]{0,17}$")]
    pub(crate) fence: Fence,
    /// A new time to live for the lease, in milliseconds. Without it the time to live stays the
    /// same.
    #[serde(default, deserialize_with = "whole_or_none")]
    #[schema(minimum = 0, maximum = 4_294_967_295_u64)]
    pub(crate) ttl_ms: Option<u32>,
}

/// A grant, named by its fence.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FenceRequest {
    /// The fence of the grant.
    #[schema(value_type = String, pattern = "^[1-9][0-9]{0,17}$")]
    pub(crate) fence: Fence,
}

/// A request, named by its `request_id`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithdrawRequest {
    /// The `request_id` that the client chose for the request.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) request_id: String,
}

/// The grant with that fence is not held any more.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReleaseResponse {
    /// True if the lock was still held with this fence.
    pub(crate) released: bool,
}

/// The request does not wait and holds nothing any more.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WithdrawResponse {
    /// True if the request was still waiting or held the lock.
    pub(crate) withdrawn: bool,
}

/// The lock was taken from the client that held it with that fence.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct BreakResponse {
    /// Always true.
    pub(crate) broken: bool,
}

/// The node serves.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always true; a node that does not serve answers with 503.
    pub(crate) serving: bool,
    /// The number of the current view. Absent for a client without token and certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) view: Option<u64>,
    /// The members that cannot be reached; locks that need one of them wait until it is back.
    /// Absent for a client without token and certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) away: Option<Vec<Absent>>,
}

/// Selects the locks of a list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Only locks whose names begin with this.
    pub(crate) prefix: String,
    /// Only locks after this name: the last name of the previous page.
    #[param(max_length = 200, pattern = r"^[^\u0000-\u001F\u007F-\u009F]*$")]
    pub(crate) after: String,
    /// True to list the locks of all members of the group. They are asked for half a second.
    #[serde(deserialize_with = "truth")]
    #[param(value_type = bool)]
    pub(crate) group: bool,
    /// `name` for the order of names, or `wait` for the locks with the longest waits first. The
    /// order `wait` has one page, and cannot be combined with `after`.
    pub(crate) order: OrderText,
}

/// The order of a list of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OrderText {
    /// By name, one page at a time.
    #[default]
    Name,
    /// The longest wait first, then the longest hold.
    Wait,
}

/// Reads `true` or `false` in a query.
fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(D::Error::custom("`group` is `true` or `false`")),
    }
}

/// For how long a lock is recorded.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordRequest {
    /// The time in milliseconds.
    #[schema(minimum = 0, maximum = 60_000)]
    #[serde(deserialize_with = "whole")]
    pub(crate) for_ms: u32,
}

/// Selects the events of a stream.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The name of a lock, or a prefix followed by `*`. Without it, events of all locks are sent.
    pub(crate) lock: Option<String>,
    /// The kinds of events to send, separated by commas: `waiting`, `gave-up`, `granted`,
    /// `released`, `lost` and `view`. Without it, events of all kinds are sent.
    #[param(pattern = "^(waiting|gave-up|granted|released|lost|view)\
                       (,(waiting|gave-up|granted|released|lost|view))*$")]
    pub(crate) kind: Option<String>,
}

/// An event about a grant of this node, or about a request that waits here.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct GrantEvent {
    /// The name of the lock.
    pub(crate) lock: String,
    /// The fence of the grant, as a string of digits. Absent for a request.
    #[schema(value_type = String, pattern = "^[0-9]{1,19}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fence: Option<Fence>,
    /// The number of the session that holds or held the grant, or waits.
    pub(crate) session: u64,
    /// How the client describes itself.
    pub(crate) client: String,
    /// When it happened, in milliseconds since 1970-01-01 UTC.
    pub(crate) at_ms: u64,
}

/// A view begins, or has ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ViewEvent {
    /// The number of the view that runs; null while the members agree on the next view.
    pub(crate) view: Option<u64>,
    /// When it was noticed, in milliseconds since 1970-01-01 UTC.
    pub(crate) at_ms: u64,
}

/// Some events were dropped because the client read too slowly.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct MissedEvents {
    /// The number of dropped events.
    pub(crate) missed: u64,
}

/// Reads a whole number, also one that is written as `1.0`, as some languages do.
fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    checked(&number).map_err(D::Error::custom)
}

fn whole_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    number.as_ref().map(checked).transpose().map_err(D::Error::custom)
}

fn checked(number: &serde_json::Number) -> Result<u32, String> {
    let float = number.as_f64().unwrap_or(-1.0);
    if float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&float) {
        return Ok(float as u32);
    }
    Err(format!("{number} is not a whole number from 0 to {}", u32::MAX))
}
