//! All routes, and the `OpenAPI` document that describes them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use serde_json::json;
use utoipa::openapi::link::Link;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::gate::{self, Gate};
use super::problem::{Kind, Problem};
use super::schemas::{GrantEvent, MissedEvents, OrderText, ViewEvent};
use super::{events, extract, group, locks, node, page, terraform};
use crate::listen::Doors;
use crate::metrics::Metrics;
use crate::service::Service;
use crate::settings::Settings;

/// The state that all routes share.
#[derive(Clone)]
pub(crate) struct Api(Arc<ApiContext>);

pub(crate) struct ApiContext {
    pub(crate) service: Service,
    pub(crate) gate: Gate,
    pub(crate) metrics: Metrics,
}

impl Deref for Api {
    type Target = ApiContext;

    fn deref(&self) -> &ApiContext {
        &self.0
    }
}

/// The routes of a service.
pub(crate) fn router(service: &Service, settings: &Settings, doors: &Doors) -> Router {
    let api = Api(Arc::new(ApiContext {
        service: service.clone(),
        gate: Gate::new(settings, doors),
        metrics: Metrics::new(service, doors.certificates.clone()),
    }));
    let (router, described) = described().split_for_parts();
    let document: Arc<str> = written(described).into();
    let json = HeaderValue::from_static("application/json");
    let serve = move || {
        let document = document.to_string();
        std::future::ready(([(CONTENT_TYPE, json.clone())], document))
    };
    let router = if settings.page { router.merge(page::routes()) } else { router };
    router
        .route("/openapi.json", get(serve))
        .method_not_allowed_fallback(no_such_method)
        .fallback(no_such_path)
        .layer(DefaultBodyLimit::max(extract::MOST))
        .layer(from_fn_with_state(api.clone(), gate::pass))
        .with_state(api)
}

/// The `OpenAPI` document of the routes, as JSON.
pub(crate) fn document() -> String {
    written(described().split_for_parts().1)
}

fn written(mut document: utoipa::openapi::OpenApi) -> String {
    link(&mut document);
    document.to_pretty_json().expect("an OpenAPI document can be written as JSON")
}

/// Link the response of `acquire` to the operations on the grant.
fn link(document: &mut utoipa::openapi::OpenApi) {
    let acquire = document.paths.paths.get_mut("/v1/locks/{name}/acquire");
    let post = acquire.and_then(|path| path.post.as_mut());
    let held = post.and_then(|post| post.responses.responses.get_mut("200"));
    let Some(RefOr::T(held)) = held else { return };
    for operation in ["renew", "release", "break"] {
        let link = Link::builder()
            .operation_id(operation)
            .parameter("name", "$request.path.name")
            .request_body(Some(json!({ "fence": "$response.body#/fence" })));
        held.links.insert(operation.to_owned(), RefOr::T(link.build()));
    }
}

fn described() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(locks::acquire))
        .routes(routes!(locks::renew))
        .routes(routes!(locks::release))
        .routes(routes!(locks::withdraw))
        .routes(routes!(locks::break_lock))
        .routes(routes!(terraform::lock, terraform::unlock))
        .routes(routes!(group::inspect))
        .routes(routes!(group::list))
        .routes(routes!(group::record))
        .routes(routes!(group::group))
        .routes(routes!(events::events))
        .routes(routes!(node::status))
        .routes(routes!(node::members))
        .routes(routes!(node::health))
        .routes(routes!(node::metrics))
}

async fn no_such_path() -> Problem {
    Problem::new(Kind::NotFound, "there is nothing at this path; /openapi.json lists all paths")
}

async fn no_such_method() -> Problem {
    Problem::invalid(
        "this path does not have this method; /openapi.json lists all paths with their methods",
    )
    .with(StatusCode::METHOD_NOT_ALLOWED)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Doorway",
        description = "Locks for programs on one machine and on several. In a path the name of a \
                       lock is percent-encoded, a `/` in it as `%2F`."
    ),
    components(schemas(Problem, GrantEvent, ViewEvent, MissedEvents, OrderText)),
    security((), ("token" = []), ("basic" = [])),
    modifiers(&Token),
)]
struct Document;

/// Adds the ways in which clients over TCP show their token.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let http = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "Required over TCP, unless the client shows a certificate. Not required on a Unix \
                 socket, or for /health.",
            ))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(http));
        let http = HttpBuilder::new()
            .scheme(HttpAuthScheme::Basic)
            .description(Some(
                "For programs that cannot send a bearer token, such as Terraform: the user is the \
                 name of the client, and the password is its token.",
            ))
            .build();
        components.add_security_scheme("basic", SecurityScheme::Http(http));
    }
}

/// The error responses that every route may give.
pub(crate) struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let all = [
            ("400", "The request is malformed."),
            ("401", "A token or a client certificate is missing."),
            ("403", "The client does not have the right to do this."),
            ("404", "The grant does not exist any more, or there is nothing at this path."),
            ("405", "The path does not have this method."),
            ("408", "The body took too long to arrive."),
            ("409", "The lock was not free in time."),
            ("413", "The body is too long."),
            ("415", "The content type is not application/json."),
            (
                "422",
                "The lock does not support this mode or number of permits, or the request_id was \
                 used for a different request.",
            ),
            ("429", "A limit of the node is reached."),
            (
                "503",
                "The node does not serve at the moment, or the group cannot know whether the lock \
                 is free.",
            ),
        ];
        let response = |text| {
            let content = Content::new(Some(Ref::from_schema_name("Problem")));
            let response = ResponseBuilder::new().description(text);
            RefOr::T(response.content("application/json", content).build())
        };
        all.into_iter().map(|(status, text)| (status.to_owned(), response(text))).collect()
    }
}
