//! The routes of the node itself.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use doorway_protocol::NodeStatus;

use super::api::{Api, Problems};
use super::problem::{Kind, Problem};
use super::words::Health;

/// What Prometheus is told to expect.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The node, as it is now.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "status", tag = "node",
    responses((status = 200, description = "The node.", body = NodeStatus), Problems),
)]
pub(crate) async fn status(State(api): State<Api>) -> axum::Json<NodeStatus> {
    axum::Json(api.service.status())
}

/// Does the node serve?
///
/// 503 says why not: it stops, or waits for those who held locks before it crashed, or cannot agree
/// with enough other members.
#[utoipa::path(
    get, path = "/health", operation_id = "health", tag = "node",
    responses((status = 200, description = "It serves.", body = Health), Problems),
)]
pub(crate) async fn health(State(api): State<Api>) -> Result<axum::Json<Health>, Problem> {
    let status = api.service.status();
    let unavailable = |text: String| Err(Problem::new(Kind::Unavailable, text));
    if api.service.is_stopping() {
        return unavailable("the node stops".to_owned());
    }
    if let Some(time) = status.reclaiming_ms {
        return unavailable(format!(
            "the node waits, for {time} ms at most, for those who held locks before it crashed"
        ));
    }
    let Some(view) = status.view else {
        let away: Vec<&str> = status.away.iter().map(|member| member.node.as_str()).collect();
        let away = if away.is_empty() { "nobody".to_owned() } else { away.join(", ") };
        return unavailable(format!("no view runs; away: {away}"));
    };
    Ok(axum::Json(Health { serving: true, view }))
}

/// Numbers for Prometheus.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "node",
    responses(
        (status = 200, description = "The numbers, in the text format of OpenMetrics.",
         content_type = "application/openmetrics-text", body = String),
        Problems,
    ),
)]
pub(crate) async fn metrics(State(api): State<Api>) -> impl IntoResponse {
    ([(CONTENT_TYPE, OPEN_METRICS)], api.metrics.text())
}
