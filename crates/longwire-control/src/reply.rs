//! Responses.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use longwire_client::ErrorBody;
use longwire_topology::Problem;
use serde::Serialize;

use crate::responses::problem_body;

/// Response body: text, or an event stream.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Media type of JSON.
pub const JSON: &str = "application/json";

/// Media type of event streams (WHATWG HTML, section 9.2).
pub const EVENTS: &str = "text/event-stream";

/// Media type of Prometheus' text format.
pub const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Media type of OpenMetrics (OpenMetrics 1.0, section "Overall Structure").
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    /// Media type.
    pub kind: &'static str,
    pub text: Bytes,
}

impl Reply {
    /// Returns a 200 response with JSON.
    ///
    /// # Errors
    /// 500 if serialisation fails, which is a bug.
    pub fn json(value: &impl Serialize) -> Result<Reply, Refusal> {
        let text = serde_json::to_vec(value).map_err(|error| {
            let error = format!("cannot serialise the response: {error}");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
        })?;
        Ok(Reply {
            status: StatusCode::OK,
            kind: JSON,
            text: text.into(),
        })
    }

    /// Converts to an HTTP response.
    pub fn into_response(self) -> Response<Body> {
        response(self.status, self.kind, Full::new(self.text).boxed_unsync())
    }
}

/// Returns a response with the common headers.
pub fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    const NO_SNIFF: (HeaderName, HeaderValue) = (
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // A response is outdated immediately, because the run continues.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_SNIFF.0, NO_SNIFF.1);
    response
}

/// An error response.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    error: String,
    problems: Vec<Problem>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Refusal {
    /// Creates an error with a one-line message.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Refusal {
        Refusal {
            status,
            error: error.into(),
            problems: Vec::new(),
            header: None,
        }
    }

    /// 400: malformed request.
    pub fn bad(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    /// 404: unknown resource.
    pub fn missing(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// 409: the run does not support the request.
    pub fn conflict(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, error)
    }

    /// 400 or 422: the problems of a refused change. 400 if it violates its schema, 422 (RFC 9110,
    /// section 15.5.21) if a value or a name does not suit the run.
    pub fn problems(problems: Vec<Problem>) -> Refusal {
        let status = if problems.iter().any(|problem| problem.is_malformed) {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        let error = match problems.as_slice() {
            [] => "the change was refused".to_owned(),
            [one] => line(one),
            [first, rest @ ..] => format!("{}; and {} more", line(first), rest.len()),
        };
        Refusal {
            problems,
            ..Refusal::new(status, error)
        }
    }

    fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Refusal {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// 401: missing or wrong token.
    pub fn unknown(error: impl Into<String>) -> Refusal {
        let scheme = HeaderValue::from_static("Bearer");
        Refusal::new(StatusCode::UNAUTHORIZED, error).with_header(WWW_AUTHENTICATE, scheme)
    }

    /// 405: the path does not support the method.
    pub fn method(allowed: &[&str]) -> Refusal {
        let allowed = allowed.join(", ");
        let error = format!("this path supports {allowed}");
        let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error);
        match HeaderValue::from_str(&allowed) {
            Ok(allowed) => refusal.with_header(ALLOW, allowed),
            Err(_) => refusal,
        }
    }

    /// 429: rate limit exceeded; `seconds` until the next request.
    pub fn too_many(seconds: u64) -> Refusal {
        let error = "rate limit exceeded (set by --control-limit)";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, error).with_header(RETRY_AFTER, seconds.into())
    }

    /// 503: overload; clients retry after a second.
    pub fn busy(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error).with_header(RETRY_AFTER, 1u16.into())
    }

    /// Returns the status.
    #[cfg(test)]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the error as a line.
    pub fn line(&self) -> &str {
        &self.error
    }

    /// Converts to an HTTP response.
    pub fn into_response(self) -> Response<Body> {
        let body = ErrorBody {
            error: self.error,
            problems: self.problems.into_iter().map(problem_body).collect(),
        };
        // Serialising strings cannot fail.
        let text = serde_json::to_vec(&body).unwrap_or_default();
        let reply = Reply {
            status: self.status,
            kind: JSON,
            text: text.into(),
        };
        let mut response = reply.into_response();
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

fn line(problem: &Problem) -> String {
    match problem.field.as_str() {
        "" => problem.reason.clone(),
        field => format!("{field}: {}", problem.reason),
    }
}
