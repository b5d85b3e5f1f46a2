//! Answers.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::refusal::Refusal;

/// The body of an answer: a text, or events as they happen.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// JSON's media type.
pub const JSON: &str = "application/json";

/// That of streams of events (WHATWG HTML, section 9.2).
pub const EVENTS: &str = "text/event-stream";

/// That of metrics as Prometheus has always read them.
pub const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// That of OpenMetrics (1.0, section "Overall Structure").
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An answer that is all there.
#[derive(Debug)]
pub struct Reply {
    /// Its status.
    pub status: StatusCode,
    /// Its media type.
    pub kind: &'static str,
    /// Its text.
    pub text: Bytes,
}

impl Reply {
    /// 200, with a value as JSON.
    ///
    /// # Errors
    /// 500 when it cannot be written, which is a fault of the program.
    pub fn json(value: &impl Serialize) -> Result<Reply, Refusal> {
        let text = serde_json::to_vec(value).map_err(|error| {
            let error = format!("the answer cannot be written: {error}");
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
        })?;
        Ok(Reply {
            status: StatusCode::OK,
            kind: JSON,
            text: text.into(),
        })
    }

    /// As a response.
    pub fn into_response(self) -> Response<Body> {
        response(self.status, self.kind, Full::new(self.text).boxed_unsync())
    }
}

/// A response with the headers that all have.
pub fn response(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    const NO_SNIFF: (HeaderName, HeaderValue) = (
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Answers about a run are outdated as soon as they are sent.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_SNIFF.0, NO_SNIFF.1);
    response
}
