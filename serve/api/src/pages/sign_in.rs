//! Signing in and out. A browser sends a token once and gets a session instead, in a cookie that scripts cannot read and
//! other sites cannot send.

use crate::caller::role_of;
use crate::cluster::Cluster;
use crate::error::ApiError;
use crate::limits::SESSION;
use crate::pages::frame::{Refused, public_page, see_other};
use crate::secret::hash_of_secret;
use crate::viewer::{FORWARDED_PROTO, SESSION_COOKIE, Viewer, session_of};
use axum::Form;
use axum::extract::{Query, State};
use axum::http::header::{HOST, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use plot::{Block, Page};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct NextQuery {
    /// Page to go to afterwards.
    next: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct SignIn {
    token: String,
    next: Option<String>,
}

pub(super) async fn show(Query(query): Query<NextQuery>) -> Response {
    form(StatusCode::OK, "Sign in with the token of an operator or a tenant.", query.next.as_deref())
}

pub(super) async fn sign_in(
    State(cluster): State<Arc<Cluster>>,
    headers: HeaderMap,
    Form(sent): Form<SignIn>,
) -> Result<Response, Refused> {
    check_origin(&headers)?;
    let token = hash_of_secret(sent.token.trim());
    if role_of(&cluster, &token).is_none() {
        return Ok(form(StatusCode::UNAUTHORIZED, "The token is unknown.", sent.next.as_deref()));
    }
    if Viewer::of_token(&cluster, token.clone()).is_err() {
        let why = "Pages are for operators and tenants; this token is of neither.";
        return Ok(form(StatusCode::FORBIDDEN, why, sent.next.as_deref()));
    }
    // A session that the browser had before ends.
    if let Some(before) = session_of(&headers) {
        cluster.visits.end(before);
    }
    let secret = cluster
        .visits
        .begin(&token)
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error))?;
    let next = sent.next.as_deref().filter(|next| is_own_page(next)).unwrap_or("/");
    Ok(with_cookie(see_other(next), &headers, &secret, SESSION.as_secs()))
}

pub(super) async fn sign_out(
    State(cluster): State<Arc<Cluster>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    check_origin(&headers)?;
    if let Some(secret) = session_of(&headers) {
        cluster.visits.end(secret);
        cluster.wake();
    }
    Ok(with_cookie(see_other("/sign-in"), &headers, "", 0))
}

fn form(status: StatusCode, lead: &str, next: Option<&str>) -> Response {
    let mut form = plot::Form::new("/sign-in", "Sign in").secret("token", "Token");
    if let Some(next) = next.filter(|next| is_own_page(next)) {
        form = form.hidden("next", next);
    }
    let hint = "The first operator's token is in the file `operator.token` of the controller's folder. Operators issue others with \
                `tailwright ctl token NAME --for-tenant TENANT` or `--for-operator` and hand them on";
    let page =
        Page::new("Tailwright controller").lead(lead).section("", [form.into(), Block::paragraph(hint)]);
    let answer = public_page(status, &page.footer(format!("tailwright {}", env!("CARGO_PKG_VERSION"))));
    answer.into_response()
}

/// Returns true for an address that cannot lead to another site.
fn is_own_page(address: &str) -> bool {
    let mut bytes = address.bytes();
    let is_absolute = bytes.next() == Some(b'/');
    is_absolute
        && !matches!(bytes.next(), Some(b'/' | b'\\'))
        && address.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Refuses forms of other sites. Browsers say where a form comes from; programs need not.
fn check_origin(headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_own = match (text("sec-fetch-site"), text(ORIGIN.as_str())) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let authority = origin.split_once("://").map(|(_, authority)| authority);
            authority.is_some_and(|authority| {
                text(HOST.as_str()).is_some_and(|host| host.eq_ignore_ascii_case(authority))
            })
        }
        (None, None) => true,
    };
    if is_own { Ok(()) } else { Err(ApiError::forbidden("the form is of another site")) }
}

fn with_cookie(mut answer: Response, headers: &HeaderMap, secret: &str, age_s: u64) -> Response {
    // A proxy with TLS in front says so, and so does the service's own; without TLS a browser would not keep a `Secure` cookie.
    let is_secure = headers.get(FORWARDED_PROTO).is_some_and(|proto| proto == "https");
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie =
        format!("{SESSION_COOKIE}={secret}; Path=/; Max-Age={age_s}; HttpOnly; SameSite=Strict{secure}");
    answer.headers_mut().insert(SET_COOKIE, HeaderValue::from_str(&cookie).expect("hexadecimal"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_pages_are_gone_to() {
        for own in ["/", "/workload?tenant=a&name=b%2F", "/decisions"] {
            assert!(is_own_page(own), "{own}");
        }
        for other in
            ["", "//evil", "/\\evil", "https://evil", "/a\r\nb: c", "/ü", "/\\/evil", "javascript:alert(1)"]
        {
            assert!(!is_own_page(other), "{other}");
        }
    }

    #[test]
    fn forms_of_other_sites_are_refused() {
        let sent = |pairs: &[(&'static str, &'static str)]| {
            let headers = pairs.iter().map(|(name, value)| {
                (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            check_origin(&headers.collect::<HeaderMap>()).is_ok()
        };
        assert!(sent(&[]) && sent(&[("host", "a:1"), ("origin", "http://a:1")]));
        assert!(sent(&[("sec-fetch-site", "same-origin"), ("origin", "https://public"), ("host", "a:1")]));
        assert!(!sent(&[("host", "a:1"), ("origin", "http://a:2")]));
        assert!(!sent(&[("host", "a:1"), ("origin", "null")]));
        assert!(!sent(&[("sec-fetch-site", "same-site"), ("host", "a:1"), ("origin", "http://a:1")]));
    }
}
