//! Responses.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::refusal::Refusal;

/// Body of a response: text, or an event stream.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Media type of JSON.
pub const JSON: &str = "application/json";

/// Media type of event streams (WHATWG HTML, section 9.2).
pub const EVENTS: &str = "text/event-stream";

/// Media type of Prometheus' text format.
pub const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Media type of OpenMetrics (1.0, section "Overall Structure").
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A complete response.
#[derive(Debug)]
pub struct Reply {
    /// Status.
    pub status: StatusCode,
    /// Media type.
    pub kind: &'static str,
    /// Body.
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

    /// Converts to HTTP.
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
    // State of a run is outdated once it is sent.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_SNIFF.0, NO_SNIFF.1);
    response
}
