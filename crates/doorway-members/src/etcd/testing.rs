//! Requests that only tests make.

use std::sync::Arc;
use std::time::Duration;

use data_encoding::BASE64;
use serde_json::{Value, json};

use super::layout::Keys;
use super::line::{Access, Line};
use super::store::EtcdAccess;

/// The key of a group's record.
pub(crate) fn record_key(group: &str) -> String {
    Keys::new(group).record
}

/// Send a request to etcd.
pub(crate) async fn post(access: &EtcdAccess, path: &str, body: &str) -> Result<Value, String> {
    let EtcdAccess { addresses, login, .. } = access.clone();
    let mut line = Line::new(&Arc::new(Access::new(addresses, None, login)));
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let limit = Duration::from_secs(20);
    line.call(&format!("/v3/{path}"), &body, limit).await.map_err(|error| error.why)
}

/// Send a request about a key, or about all keys that begin like one that ends with `/`. Returns
/// the value of the key.
pub(crate) async fn call(
    access: &EtcdAccess,
    path: &str,
    key: &str,
    value: Option<&[u8]>,
) -> Result<Vec<u8>, String> {
    let mut body = json!({ "key": BASE64.encode(key.as_bytes()) });
    if let Some(value) = value {
        body["value"] = BASE64.encode(value).into();
    }
    if let Some(prefix) = key.strip_suffix('/') {
        body["range_end"] = BASE64.encode(format!("{prefix}0").as_bytes()).into();
    }
    let answer = post(access, path, &body.to_string()).await?;
    let value = answer["kvs"][0]["value"].as_str().unwrap_or_default();
    BASE64.decode(value.as_bytes()).map_err(|error| error.to_string())
}
