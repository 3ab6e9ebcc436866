//! The JSON gateway of etcd: the same calls as requests of HTTP, for curl and for clients without
//! gRPC.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::ORIGIN;
use hyper::{Method, Request, Response};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::connection::Connection;
use super::grpc::{self, Answer, MESSAGE};
use super::messages::AuthenticateRequest;
use super::status::{Code, Status};
use super::wire::Message;

/// How long the body of a request may take to arrive.
const BODY: Duration = Duration::from_secs(30);

/// What the paths of the gateway begin with. The others are those of etcd 3.2 and 3.3.
const PREFIXES: [&str; 3] = ["/v3/", "/v3beta/", "/v3alpha/"];

/// Answer a request.
pub(super) async fn answer(
    connection: &Connection,
    request: Request<Incoming>,
) -> Response<Answer> {
    match carry_out(connection, request).await {
        Ok(value) => grpc::json(200, value.to_string().into_bytes()),
        Err(status) => {
            let Status { code, text } = &status;
            let body = json!({"error": text, "code": *code as u32, "message": text});
            grpc::json(status.http(), body.to_string().into_bytes())
        }
    }
}

async fn carry_out(connection: &Connection, request: Request<Incoming>) -> Result<Value, Status> {
    let (head, body) = request.into_parts();
    let path = PREFIXES.iter().find_map(|prefix| head.uri.path().strip_prefix(prefix));
    let Some(path) = path else {
        let text = format!(
            "there is nothing at {}: this is the port for etcd clients, which serves gRPC and the \
             paths of the JSON gateway below /v3/",
            head.uri.path()
        );
        return Err(Status::new(Code::NotFound, text));
    };
    if head.method != Method::POST {
        return Err(Status::unimplemented("the paths of the gateway are for POST"));
    }
    if head.headers.contains_key(ORIGIN) {
        // Otherwise a page of another site could use the certificate of the browser's user.
        let text = "requests of web pages are not served here";
        return Err(Status::new(Code::PermissionDenied, text));
    }
    let body = timeout(BODY, whole(body)).await;
    let body = body.map_err(|_| Status::invalid("the request did not arrive in time"))??;
    let body = if body.is_empty() { b"{}".to_vec() } else { body };
    let value: Value = serde_json::from_slice(&body)
        .map_err(|why| Status::invalid(format!("the body is not JSON: {why}")))?;
    if path == "auth/authenticate" {
        let request = AuthenticateRequest::from_json(&value)?;
        return Ok(Value::Object(connection.log_in(&request)?.to_json()));
    }
    let calls = connection.calls(&head.headers)?;
    match path {
        "kv/range" => one(&value, async |it| calls.range(it).await).await,
        "kv/put" => one(&value, async |it| calls.put(it).await).await,
        "kv/deleterange" => one(&value, async |it| calls.delete_range(it).await).await,
        "kv/txn" => one(&value, async |it| calls.txn(it).await).await,
        "lease/grant" => one(&value, async |it| calls.lease_grant(it).await).await,
        "lease/revoke" | "kv/lease/revoke" => {
            one(&value, async |it| calls.lease_revoke(it).await).await
        }
        "lease/timetolive" | "kv/lease/timetolive" => {
            one(&value, async |it| calls.lease_time_to_live(it).await).await
        }
        // The gateway makes a stream of it, and each of its messages is a `result`.
        "lease/keepalive" => {
            let result = one(&value, async |it| calls.lease_keep_alive(it).await).await?;
            Ok(json!({"result": result}))
        }
        "lock/lock" => one(&value, async |it| calls.lock(it).await).await,
        "lock/unlock" => one(&value, async |it| calls.unlock(it).await).await,
        "election/campaign" => one(&value, async |it| calls.campaign(it).await).await,
        "election/proclaim" => one(&value, async |it| calls.proclaim(it).await).await,
        "election/leader" => one(&value, async |it| calls.leader(it).await).await,
        "election/resign" => one(&value, async |it| calls.resign(it).await).await,
        other => Err(Status::unimplemented(format!(
            "/v3/{other} is not served; docs/etcd.md lists the paths"
        ))),
    }
}

async fn one<M: Message, A: Message>(
    value: &Value,
    answer: impl AsyncFnOnce(M) -> Result<A, Status>,
) -> Result<Value, Status> {
    let request = M::from_json(value)?;
    Ok(Value::Object(answer(request).await?.to_json()))
}

/// The whole body of a request.
async fn whole(mut body: Incoming) -> Result<Vec<u8>, Status> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| Status::invalid("the body of the request was cut off"))?;
        bytes.extend(frame.into_data().unwrap_or_default());
        if bytes.len() > MESSAGE {
            let text = format!("the body of a request may have {MESSAGE} bytes at most");
            return Err(Status::new(Code::ResourceExhausted, text));
        }
    }
    Ok(bytes)
}
