//! The routes of the node itself.

use axum::extract::{Extension, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use doorway_protocol::{MembersReport, MembersRequest};
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
    api.service.try_disk().await;
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
/// balancer can ask. A client that proves who it is also gets the view and the members that are
/// away, and with 503 the reason: the node is stopping, or waits for clients that held locks before
/// it crashed, or cannot write its ledger, or cannot reach enough other members, or its group is
/// not founded yet.
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = "node",
    responses((status = 200, description = "The node serves.", body = Health), Problems),
)]
pub(crate) async fn health(
    State(api): State<Api>,
    caller: Option<Extension<Caller>>,
) -> Result<axum::Json<Health>, Problem> {
    api.service.try_disk().await;
    match (api.service.serving(), caller) {
        (Ok((view, away)), Some(_)) => {
            Ok(axum::Json(Health { serving: true, view: Some(view), away: Some(away) }))
        }
        (Ok(_), None) => Ok(axum::Json(Health { serving: true, view: None, away: None })),
        (Err(reason), Some(_)) => Err(Problem::new(Kind::Unavailable, reason)),
        (Err(_), None) => Err(Problem::new(Kind::Unavailable, "the node does not serve now")),
    }
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
    api.service.try_disk().await;
    ([(CONTENT_TYPE, OPEN_METRICS)], api.metrics.text())
}
