//! The permission of each route. A route without a row cannot be reached, so none is left unprotected by mistake.

use axum::http::Method;
use axum::http::header::ALLOW;
use axum::response::{IntoResponse as _, Response};
use tenure_api::Code;
use tenure_control::COMMANDS;

use crate::http::response::HttpError;
use crate::tokens::TokenScope;

/// What a caller needs for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoutePermission {
    Public,
    Scope(TokenScope),
    /// A token that may look at leases, or drive a device.
    Device,
}

use RoutePermission::{Public, Scope as Requires};

const READ: RoutePermission = Requires(TokenScope::LeasesRead);
const WRITE: RoutePermission = Requires(TokenScope::LeasesWrite);
const INTENTS: RoutePermission = Requires(TokenScope::IntentsWrite);
pub(crate) const ADMIN: RoutePermission = Requires(TokenScope::Admin);

/// Who may look at a device.
pub(crate) const DEVICE: [TokenScope; 2] = [TokenScope::LeasesRead, TokenScope::ControlWrite];

/// Every route there is. Who may `GET` may `HEAD`.
const ROUTES: &[(Method, &str, RoutePermission)] = &[
    (Method::GET, "/healthz", Public),
    (Method::GET, "/readyz", Public),
    (Method::GET, "/openapi.json", Public),
    (Method::GET, "/metrics", READ),
    (Method::GET, "/v1/leases", READ),
    (Method::POST, "/v1/leases", WRITE),
    (Method::POST, "/v1/leases/batch", WRITE),
    (Method::GET, "/v1/leases/{id}", READ),
    (Method::POST, "/v1/leases/{id}/renew", WRITE),
    (Method::POST, "/v1/leases/{id}/release", WRITE),
    (Method::POST, "/v1/leases/{id}/transfer", WRITE),
    (Method::POST, "/v1/leases/{id}/upgrade", WRITE),
    (Method::POST, "/v1/leases/{id}/downgrade", WRITE),
    (Method::POST, "/v1/leases/{id}/revoke", ADMIN),
    (Method::POST, "/v1/work/claim", WRITE),
    (Method::POST, "/v1/work/renew", WRITE),
    (Method::POST, "/v1/work/release", WRITE),
    (Method::POST, "/v1/work/derive", WRITE),
    (Method::POST, "/v1/work/spend", WRITE),
    (Method::GET, "/v1/work/{lease_id}", READ),
    (Method::GET, "/v1/queue", READ),
    (Method::DELETE, "/v1/queue/{ticket}", WRITE),
    (Method::GET, "/v1/explain", READ),
    (Method::GET, "/v1/events", READ),
    (Method::GET, "/v1/stream", WRITE),
    (Method::POST, "/v1/manifest", WRITE),
    (Method::POST, "/v1/leases/heartbeat", WRITE),
    (Method::POST, "/v1/leases/release", WRITE),
    (Method::POST, "/v1/leases/reconcile", WRITE),
    (Method::GET, "/v1/agents", READ),
    (Method::GET, "/v1/agents/{id}", READ),
    (Method::POST, "/v1/agents/{id}/state", WRITE),
    (Method::POST, "/v1/agents/{id}/touch", WRITE),
    (Method::GET, "/v1/resource/{id}/state", READ),
    (Method::GET, "/v1/contention", READ),
    (Method::POST, "/v1/files/acquire", WRITE),
    (Method::POST, "/v1/files/events", WRITE),
    (Method::POST, "/v1/files/commit", WRITE),
    (Method::POST, "/v1/files/staged", WRITE),
    (Method::GET, "/v1/files", READ),
    (Method::GET, "/v1/files/one", READ),
    (Method::GET, "/v1/files/blame", ADMIN),
    (Method::GET, "/v1/files/reports", READ),
    (Method::GET, "/v1/files/reports/{id}", READ),
    (Method::POST, "/v1/files/reports/{id}/resume", ADMIN),
    (Method::POST, "/v1/files/give", ADMIN),
    (Method::POST, "/v1/files/force-release", ADMIN),
    (Method::POST, "/v1/stop", ADMIN),
    (Method::GET, "/v1/tokens", ADMIN),
    (Method::POST, "/v1/tokens", ADMIN),
    (Method::DELETE, "/v1/tokens/{id}", ADMIN),
    (Method::GET, "/ws", RoutePermission::Device),
    (Method::POST, "/api/v3/intents", INTENTS),
    (Method::GET, "/api/v3/sessions", INTENTS),
    (Method::GET, "/api/v3/sessions/{id}", INTENTS),
    (Method::DELETE, "/api/v3/sessions/{id}", INTENTS),
    (Method::POST, "/api/v3/worker/guard", WRITE),
    (Method::POST, "/api/v3/worker/changes", WRITE),
    (Method::POST, "/api/v3/worker/take", WRITE),
    (Method::POST, "/api/v3/worker/running", WRITE),
    (Method::POST, "/api/v3/worker/finish", WRITE),
    (Method::POST, "/api/v3/worker/keep", WRITE),
    (Method::POST, "/api/v3/worker/wipe", WRITE),
    (Method::POST, "/api/v3/worker/leave", WRITE),
];

/// Every route there is, those of the device included: what they need follows from the table of its commands.
fn all() -> impl Iterator<Item = (Method, &'static str, RoutePermission)> {
    let own = ROUTES.iter().map(|(method, path, permission)| (method.clone(), *path, *permission));
    own.chain(COMMANDS.iter().flat_map(|row| {
        // An upload may show a right of its own instead.
        let must_drive = row.may_change && row.name != "ota.upload";
        let permission =
            if must_drive { Requires(TokenScope::ControlWrite) } else { RoutePermission::Device };
        row.rest.iter().map(move |rest| {
            (
                Method::from_bytes(rest.method.as_bytes()).expect("the table has methods"),
                rest.path,
                permission,
            )
        })
    }))
}

/// The scopes of which this method of this route needs one.
pub(crate) fn scopes_of(method: &Method, route: &str) -> Vec<TokenScope> {
    let found = all().find(|(known, path, _)| known == method && *path == route);
    match found.map(|(_, _, permission)| permission) {
        Some(Requires(scope)) => vec![scope],
        Some(RoutePermission::Device) => DEVICE.to_vec(),
        Some(Public) | None => Vec::new(),
    }
}

#[cfg(test)]
pub(crate) fn routes() -> impl Iterator<Item = (Method, &'static str)> {
    all().map(|(method, path, _)| (method, path))
}

/// What this method of this route needs. Where there is no such method, the answer that says so.
pub(crate) fn permission_of(method: &Method, route: &str) -> Result<RoutePermission, Box<Response>> {
    let method_or_get = if *method == Method::HEAD { &Method::GET } else { method };
    let of_route = || all().filter(|(_, path, _)| *path == route);
    if let Some((_, _, permission)) = of_route().find(|(method, _, _)| method == method_or_get) {
        return Ok(permission);
    }
    let mut allowed = Vec::new();
    for (method, _, _) in of_route() {
        let is_get = method == Method::GET;
        allowed.push(method.as_str().to_owned());
        allowed.extend(is_get.then(|| "HEAD".to_owned()));
    }
    if allowed.is_empty() {
        return Err(Box::new(crate::http::no_such_route().into_response()));
    }
    let detail = "the header Allow says which methods this address takes";
    let response = HttpError::new(Code::MethodNotAllowed, detail).into_response();
    Err(Box::new(([(ALLOW, allowed.join(","))], response).into_response()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Every path of the router, and the methods that it takes, as its `Debug` shows them: axum has no list.
    fn routes() -> Vec<(String, String)> {
        let shown = format!("{:?}", crate::http::routes());
        let (shown, _) = shown.split_once("fallback_router").unwrap();
        let (methods, paths) = shown.split_once("Node { paths: ").unwrap();
        let methods: BTreeMap<_, _> = methods
            .split("RouteId(")
            .skip(1)
            .map(|route| {
                let allowed = route.split_once("allow_header: Bytes(b\"").unwrap().1;
                (route.split_once(')').unwrap().0, allowed.split_once('"').unwrap().0)
            })
            .collect();
        let path_of = |route: &str| route.split('"').nth(1).unwrap().to_owned();
        let paths = paths.split("RouteId(").skip(1);
        paths.map(|route| (path_of(route), methods[route.split_once(')').unwrap().0].to_owned())).collect()
    }

    #[test]
    fn every_route_has_a_permission() {
        let routes = routes();
        assert!(routes.iter().any(|(path, methods)| path == "/v1/leases" && methods == "GET,HEAD,POST"));
        for (path, methods) in routes {
            for method in methods.split(',') {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                assert!(permission_of(&method, &path).is_ok(), "{method} {path} is not in the table");
            }
        }
    }

    #[test]
    fn every_route_has_one_permission_and_only_health_routes_are_public() {
        let mut seen = Vec::new();
        for (method, path, permission) in all() {
            assert!(!seen.contains(&(method.clone(), path)), "{method} {path}");
            seen.push((method.clone(), path));
            let is_open = ["/healthz", "/readyz", "/openapi.json"].contains(&path);
            assert_eq!(permission == Public, is_open, "{method} {path}");
        }
    }

    #[test]
    fn a_route_without_a_permission_is_not_found() {
        let status = |method, path| permission_of(&method, path).unwrap_err().status().as_u16();
        assert_eq!(status(Method::GET, "/v1/forgotten"), 404);
        assert_eq!(status(Method::DELETE, "/v1/leases"), 405);
        assert_eq!(permission_of(&Method::HEAD, "/v1/leases").unwrap(), READ);
    }
}
