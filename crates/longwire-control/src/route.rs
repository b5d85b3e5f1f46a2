//! Paths, and which request is for which of them.

use serde_json::Value;

use super::query::{Parameter, Query, decode};
use super::refusal::Refusal;
use super::reply::Reply;
use super::state::ApiState;
use super::stream::MakeSource;

/// A method that some path takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads; `HEAD` is the same without its body.
    Get,
    /// Makes, or has something done.
    Post,
    /// Changes what is there.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// As it is written.
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

/// A request, read and checked.
#[derive(Debug, Default)]
pub struct Call {
    /// The text for the braces of the path; empty where there are none.
    pub name: String,
    /// The parameters.
    pub query: Query,
    /// The body; `null` where there is none.
    pub body: Value,
    /// The header `Accept`; empty where there is none.
    pub accept: String,
    /// Whether its token allows changes.
    pub may_change: bool,
}

/// The way in which an answer is made.
#[derive(Clone, Copy)]
pub enum Work {
    /// At once: it reads little.
    Quick(fn(&ApiState, &Call) -> Result<Reply, Refusal>),
    /// With less priority: it reads much, and what is quick need not wait for
    /// it.
    Slow(fn(&ApiState, &Call) -> Result<Reply, Refusal>),
    /// As a change of the run, which this makes of what is asked; and the pointer to the
    /// request's body in that change.
    Change(fn(&Call) -> Value, &'static str),
    /// As a stream of the events of a source.
    Stream(MakeSource),
}

/// The kind of an answer, for the OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// JSON of the schema of this name.
    Json(&'static str),
    /// A stream of events, the data of each JSON of the schema of this name.
    Events(&'static str),
    /// The text of metrics.
    Metrics,
    /// The OpenAPI document.
    Document,
}

/// A path with a method.
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path; one segment may be a name in braces.
    pub path: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The parameters it takes.
    pub parameters: &'static [Parameter],
    /// The schema of its body, if it takes one.
    pub body: Option<&'static str>,
    /// The kind of its answer.
    pub answer: Answer,
    /// The way in which it is made.
    pub work: Work,
}

impl Route {
    /// Whether it needs the right to change.
    pub fn changes(&self) -> bool {
        self.method != Method::Get
    }

    /// The change that a call of it asks for, if it asks for one.
    pub fn change(&self, call: &Call) -> Option<Value> {
        match self.work {
            Work::Change(make, _) => Some(make(call)),
            _ => None,
        }
    }

    /// The name in its braces.
    pub fn braces(&self) -> Option<&'static str> {
        let segments = self.path.split('/');
        segments.filter_map(in_braces).next()
    }

    /// Returns the text for the braces of a path that fits this one.
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

/// The route of a request, and what stands in its braces.
///
/// # Errors
/// 404 when no path fits, 405 when none of those that fit takes the method,
/// 400 when a name is no text.
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
        let error = "there is no such path; GET /v1/openapi.json tells all there are";
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
