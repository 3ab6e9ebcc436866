//! The routes of the node itself.

use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use doorway_protocol::{LedgerTrouble, MembersReport, MembersRequest};
use serde::Serialize;
use utoipa::ToSchema;

use super::api::{Api, Problems};
use super::gate::Caller;
use super::problem::{Kind, Problem};
use super::schemas::Health;
use crate::service::FullStatus;

/// The content type of the metrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The status of a node, and how the rules for locks arrange the members.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct StatusView {
    #[serde(flatten)]
    status: FullStatus,
    /// How the members are arranged for the locks of each rule that arranges them, one line for
    /// each, as in ``locks `orders/*`: maekawa, quorums grid``. Empty if no rule does.
    arranged: Vec<String>,
}

/// Get the status of the node.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "status", tag = "node",
    responses((status = 200, description = "The status of the node.", body = StatusView), Problems),
)]
pub(crate) async fn status(State(api): State<Api>) -> axum::Json<StatusView> {
    let (status, arranged) = (api.service.full_status(), api.service.node().arrangements());
    axum::Json(StatusView { status, arranged })
}

/// Get the members of a group that agrees on them.
///
/// The response lists the machines of the group with their role and state, as this node sees them.
/// If the members of the group are fixed in its settings, the response is 422.
#[utoipa::path(
    get, path = "/v1/members", operation_id = "members", tag = "node",
    responses(
        (status = 200, description = "The members of the group.", body = MembersReport),
        Problems,
    ),
)]
pub(crate) async fn members(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
) -> Result<axum::Json<MembersReport>, Problem> {
    let report = api.service.members(&caller.operator(), MembersRequest::Show).await?;
    Ok(axum::Json(report))
}

/// Tell whether the node serves.
///
/// 503 means that it does not. Over TCP this needs no token and no certificate, so that a load
/// balancer can ask. A client that proves who it is also gets the view, and with 503 the reason:
/// the node is stopping, or waits for clients that held locks before it crashed, or cannot write
/// its ledger, or cannot reach enough other members, or its group is not founded yet.
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = "node",
    responses((status = 200, description = "The node serves.", body = Health), Problems),
)]
pub(crate) async fn health(
    State(api): State<Api>,
    caller: Option<Extension<Caller>>,
) -> Result<axum::Json<Health>, Problem> {
    match (serving(&api), caller) {
        (Ok(view), Some(_)) => Ok(axum::Json(Health { serving: true, view: Some(view) })),
        (Ok(_), None) => Ok(axum::Json(Health { serving: true, view: None })),
        (Err(reason), Some(_)) => Err(Problem::new(Kind::Unavailable, reason)),
        (Err(_), None) => Err(Problem::new(Kind::Unavailable, "the node does not serve now")),
    }
}

/// The view in which the node serves, or the reason why it does not.
fn serving(api: &Api) -> Result<u64, String> {
    let status = api.service.status();
    if api.service.is_stopping() {
        return Err("the node is stopping".to_owned());
    }
    if let Some(time) = status.reclaiming_ms {
        return Err(format!(
            "the node waits, for {time} ms at most, for clients that held locks before it crashed"
        ));
    }
    if let Some(LedgerTrouble { error, remedy, .. }) = api.service.ledger_trouble() {
        return Err(format!("the ledger of sessions cannot be written: {error}; {remedy}"));
    }
    if let Some(trouble) = api.service.members_report().and_then(|report| report.trouble) {
        return Err(trouble);
    }
    status.view.ok_or_else(|| {
        let away: Vec<&str> = status.away.iter().map(|member| member.node.as_str()).collect();
        let away = if away.is_empty() { "none".to_owned() } else { away.join(", ") };
        format!("the members have not agreed on a view; members away: {away}")
    })
}

/// Get metrics for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "node",
    responses(
        (status = 200, description = "The metrics, in the OpenMetrics text format.",
         content_type = "application/openmetrics-text", body = String),
        Problems,
    ),
)]
pub(crate) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPEN_METRICS)], api.metrics.text())
}
