//! Routes, and the match of requests to them.

use serde_json::Value;

use super::query::{Parameter, Query, decode};
use super::refusal::Refusal;
use super::reply::Reply;
use super::state::ApiState;
use super::stream::MakeSource;

/// HTTP method of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; also serves `HEAD`.
    Get,
    /// Creates, or triggers.
    Post,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    fn is(self, name: &str) -> bool {
        name == self.name() || (self == Method::Get && name == "HEAD")
    }
}

/// A parsed request.
#[derive(Debug, Default)]
pub struct Call {
    /// Value of the path's placeholder; empty without one.
    pub name: String,
    /// Query parameters.
    pub query: Query,
    /// Body; `null` without one.
    pub body: Value,
    /// Header `Accept`; empty without one.
    pub accept: String,
    /// Whether its token allows changes.
    pub may_change: bool,
}

/// Handler of a route.
#[derive(Clone, Copy)]
pub enum Work {
    /// Reads little, and runs at once.
    Quick(fn(&ApiState, &Call) -> Result<Reply, Refusal>),
    /// Reads much, and runs at low priority.
    Slow(fn(&ApiState, &Call) -> Result<Reply, Refusal>),
    /// Builds a change of the run; with the pointer to the request's body in it.
    Change(fn(&Call) -> Value, &'static str),
    /// Builds the source of an event stream.
    Stream(MakeSource),
}

/// Kind of a response, for the OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// JSON of this schema.
    Json(&'static str),
    /// Event stream with JSON of this schema.
    Events(&'static str),
    /// Text of metrics.
    Metrics,
    /// OpenAPI document.
    Document,
}

/// A path with a method.
pub struct Route {
    /// Method.
    pub method: Method,
    /// Path; one segment may be a placeholder in braces.
    pub path: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Query parameters.
    pub parameters: &'static [Parameter],
    /// Schema of the body, if there is one.
    pub body: Option<&'static str>,
    /// Kind of the response.
    pub answer: Answer,
    /// Handler.
    pub work: Work,
}

impl Route {
    /// Whether it requires the right to change.
    pub fn changes(&self) -> bool {
        self.method != Method::Get
    }

    /// Returns the change of a call, if the route makes one.
    pub fn change(&self, call: &Call) -> Option<Value> {
        match self.work {
            Work::Change(make, _) => Some(make(call)),
            _ => None,
        }
    }

    /// Returns the name of the placeholder.
    pub fn braces(&self) -> Option<&'static str> {
        let segments = self.path.split('/');
        segments.filter_map(in_braces).next()
    }

    /// Matches a path; returns the value of the placeholder.
    fn fits(&self, path: &str) -> Option<Option<String>> {
        let mut found = None;
        let mut segments = path.split('/');
        for wanted in self.path.split('/') {
            let segment = segments.next()?;
            match in_braces(wanted) {
                Some(_) if segment.is_empty() => return None,
                Some(_) => found = Some(segment.to_owned()),
                None if segment == wanted => {}
                None => return None,
            }
        }
        segments.next().is_none().then_some(found)
    }
}

fn in_braces(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// Returns the route of a request, and the value of its placeholder.
///
/// # Errors
/// 404 for an unknown path, 405 for another method, 400 for a name that is not UTF-8.
pub fn find<'a>(
    routes: &'a [Route],
    method: &str,
    path: &str,
) -> Result<(&'a Route, String), Refusal> {
    let fitting = routes
        .iter()
        .filter_map(|route| Some((route, route.fits(path)?)));
    let fitting: Vec<(&Route, Option<String>)> = fitting.collect();
    if fitting.is_empty() {
        let error = "no such path; GET /v1/openapi.json lists all";
        return Err(Refusal::missing(error));
    }
    let allowed = fitting.iter().map(|(route, _)| route.method.name());
    let allowed: Vec<&str> = allowed.collect();
    let taken = fitting
        .into_iter()
        .find(|(route, _)| route.method.is(method));
    let (route, name) = taken.ok_or_else(|| Refusal::method(&allowed))?;
    Ok((route, decode(&name.unwrap_or_default())?))
}
