//! The words of the HTTP door that are not the protocol's.

use doorway_protocol::Fence;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::{IntoParams, ToSchema};

/// How long a lease lives if nothing is said, in milliseconds.
const TTL_MS: u32 = 10_000;

/// How long a request may be kept waiting, in milliseconds.
pub(crate) const LONGEST_MS: u32 = 600_000;

/// The lock.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "it only describes the path, which is taken apart elsewhere")]
pub(crate) struct Which {
    /// Its name: 1 to 200 bytes of UTF-8, percent-encoded.
    #[param(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^%\u0000-\u001F\u007F-\u009F][^\u0000-\u001F\u007F-\u009F]*$"
    )]
    name: String,
}

/// What is asked for.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Acquire {
    /// A text that the client makes up for this request and sends again when it has to ask again:
    /// then it gets the same grant, or keeps its place. Without one, asking again is another
    /// request.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) request_id: Option<String>,
    /// How long the lease lives without being renewed, in milliseconds. The node may shorten it,
    /// and makes it half a second at least.
    #[schema(minimum = 0, maximum = 4_294_967_295_u64)]
    #[serde(deserialize_with = "whole")]
    pub(crate) ttl_ms: u32,
    /// How long this request may take to be answered, in milliseconds. With 0 nobody is
    /// waited for. Who gave a `request_id` and was not answered in time keeps its place for
    /// `ttl_ms`.
    #[schema(minimum = 0, maximum = 600_000)]
    #[serde(deserialize_with = "whole")]
    pub(crate) wait_ms: u32,
    /// Together with others who share it?
    pub(crate) shared: bool,
    /// Of how many permits one is wanted. The node refuses another number than it has, and together
    /// with `shared`.
    #[schema(minimum = 1, maximum = 64)]
    #[serde(deserialize_with = "whole_or_none")]
    pub(crate) permits: Option<u32>,
    /// What the client does, for people who ask who holds the lock; 200 bytes of it are kept.
    pub(crate) label: String,
}

impl Default for Acquire {
    fn default() -> Self {
        Self {
            request_id: None,
            ttl_ms: TTL_MS,
            wait_ms: 0,
            shared: false,
            permits: None,
            label: String::new(),
        }
    }
}

/// A grant.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Lease {
    /// The lock.
    pub(crate) lock: String,
    /// The fence of the grant, as a text of digits: it is a number of up to 63 bits, of which many
    /// readers of JSON keep only 53.
    #[schema(value_type = String, pattern = "^[0-9]{1,19}$")]
    pub(crate) fence: Fence,
    /// The view in which the grant was made.
    pub(crate) view: u64,
    /// The session that holds it at this node.
    pub(crate) session: u64,
    /// How long the lease lives without being renewed, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// In how many milliseconds it ends, counted from when the node wrote this.
    pub(crate) expires_in_ms: u64,
}

/// Which grant to keep, and for how long.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew {
    /// The fence of the grant.
    #[schema(value_type = String, pattern = "^[1-9][0-9]{0,17}$")]
    pub(crate) fence: Fence,
    /// Another time for the lease to live; without it stays as it was.
    #[serde(default, deserialize_with = "whole_or_none")]
    #[schema(minimum = 0, maximum = 4_294_967_295_u64)]
    pub(crate) ttl_ms: Option<u32>,
}

/// Which grant is meant.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    /// The fence of the grant.
    #[schema(value_type = String, pattern = "^[1-9][0-9]{0,17}$")]
    pub(crate) fence: Fence,
}

/// Which request is meant.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Withdraw {
    /// What the client made up for it.
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) request_id: String,
}

/// Nothing with that fence is held any more.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Released {
    /// Was it held until now?
    pub(crate) released: bool,
}

/// Nothing is waited for or held by that request any more.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Withdrawn {
    /// Did it wait, or hold the lock, until now?
    pub(crate) withdrawn: bool,
}

/// The lock was taken from whoever held it with that fence.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Broken {
    /// Yes.
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
}

/// Which locks to list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct Listed {
    /// How their names begin.
    pub(crate) prefix: String,
    /// The last name of the page before.
    #[param(max_length = 200, pattern = r"^[^\u0000-\u001F\u007F-\u009F]*$")]
    pub(crate) after: String,
}

/// Which events to hear of.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct Heard {
    /// The lock, or with a `*` at the end how names begin; all if it is missing.
    pub(crate) lock: Option<String>,
}

/// Something happened to a grant of this node.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct News {
    /// The lock.
    pub(crate) lock: String,
    /// The fence of the grant, as a text of digits.
    #[schema(value_type = String, pattern = "^[0-9]{1,19}$")]
    pub(crate) fence: Fence,
    /// The session that has or had it.
    pub(crate) session: u64,
    /// What the client says of itself.
    pub(crate) client: String,
    /// When, in milliseconds since 1970.
    pub(crate) at_ms: u64,
}

/// So many events came faster than they were read.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Missed {
    /// How many.
    pub(crate) missed: u64,
}

/// A whole number, also one that is written as `1.0`, as some languages do.
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
    Err(format!("{number} is no whole number from 0 to {}", u32::MAX))
}
