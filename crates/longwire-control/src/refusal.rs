//! Requests that are refused: what is wrong, and what to do.

use hyper::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};

use super::reply::{Body, JSON, Reply};
use super::responses::{ErrorBody, Wrong};
use longwire_topology::Problem;

/// The refusal of a request.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    error: String,
    problems: Vec<Problem>,
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

impl Refusal {
    /// A refusal of one line.
    pub fn new(status: StatusCode, error: impl Into<String>) -> Refusal {
        Refusal {
            status,
            error: error.into(),
            problems: Vec::new(),
            header: None,
        }
    }

    /// 400: the request says something that cannot be.
    pub fn bad(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    /// 404: what it is about is not there.
    pub fn missing(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// 409: the kind of run does not allow it.
    pub fn conflict(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, error)
    }

    /// A change, and all that is wrong with it: 400 if it is not of the shape
    /// that the document describes, 422 if a value or a name does not fit the
    /// run (RFC 9110, section 15.5.21). Nothing was changed.
    pub fn problems(problems: Vec<Problem>) -> Refusal {
        let status = if problems.iter().any(|problem| problem.is_malformed) {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        let error = match problems.as_slice() {
            [] => "the change is refused".to_owned(),
            [one] => line(one),
            [first, rest @ ..] => format!("{}; and {} more", line(first), rest.len()),
        };
        Refusal {
            problems,
            ..Refusal::new(status, error)
        }
    }

    /// 401: the request needs a token.
    pub fn unknown(error: impl Into<String>) -> Refusal {
        Refusal {
            header: Some(Box::new((
                WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer"),
            ))),
            ..Refusal::new(StatusCode::UNAUTHORIZED, error)
        }
    }

    /// 405: the path takes these methods.
    pub fn method(allowed: &[&str]) -> Refusal {
        let allowed = allowed.join(", ");
        let error = format!("this path takes {allowed}");
        let value = HeaderValue::from_str(&allowed).ok();
        Refusal {
            header: value.map(|value| Box::new((ALLOW, value))),
            ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error)
        }
    }

    /// 429: too many requests, with the seconds until the next may come.
    pub fn too_many(seconds: u64) -> Refusal {
        let error = "too many requests a second; --control-limit says how many are taken";
        Refusal {
            header: Some(Box::new((RETRY_AFTER, seconds.into()))),
            ..Refusal::new(StatusCode::TOO_MANY_REQUESTS, error)
        }
    }

    /// 503: there is too much to do; to be tried again in a second.
    pub fn busy(error: impl Into<String>) -> Refusal {
        Refusal {
            header: Some(Box::new((RETRY_AFTER, HeaderValue::from(1u16)))),
            ..Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error)
        }
    }

    /// Its status.
    #[cfg(test)]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the reason, in one line.
    pub fn line(&self) -> &str {
        &self.error
    }

    /// As an answer.
    pub fn into_response(self) -> Response<Body> {
        let body = ErrorBody {
            error: self.error,
            problems: self.problems.into_iter().map(Wrong::from).collect(),
        };
        // Texts alone: they can always be written.
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
