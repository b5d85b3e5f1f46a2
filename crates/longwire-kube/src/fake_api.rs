//! A fake API server for tests. It returns fixed objects, and its watches report nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// A recorded change.
#[derive(Clone, Debug)]
pub struct Change {
    pub method: Method,
    /// Path without query parameters.
    pub path: String,
    pub body: Value,
}

#[derive(Clone, Debug, Default)]
pub struct FakeApi {
    contents: Arc<Mutex<FakeObjects>>,
}

#[derive(Debug, Default)]
struct FakeObjects {
    /// Object lists, by path.
    lists: BTreeMap<String, Vec<Value>>,
    /// Paths of created objects.
    created: Vec<String>,
    changes: Vec<Change>,
}

impl FakeApi {
    /// Sets the objects of a list. Watches do not report the change.
    pub fn set(&self, path: &str, objects: Vec<Value>) {
        self.with(|contents| contents.lists.insert(path.to_owned(), objects));
    }

    /// Returns the recorded changes in order.
    pub fn changes(&self) -> Vec<Change> {
        self.with(|contents| contents.changes.clone())
    }

    /// Adds an object that is missing from all lists.
    pub fn add_hidden(&self, path: &str) {
        self.with(|contents| contents.created.push(path.to_owned()));
    }

    pub fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move { Ok::<_, Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }

    fn with<T>(&self, act: impl FnOnce(&mut FakeObjects) -> T) -> T {
        act(&mut self.contents.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn answer(&self, request: Request<Body>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        if parts
            .uri
            .query()
            .is_some_and(|query| query.contains("watch=true"))
        {
            std::future::pending::<()>().await;
        }
        let bytes = body.collect().await.map(|body| body.to_bytes());
        let body = serde_json::from_slice(&bytes.unwrap_or_default()).unwrap_or(Value::Null);
        let (status, answer) = self.with(|contents| contents.answer(parts.method, path, body));
        let mut response = Response::new(Full::new(Bytes::from(answer.to_string())));
        *response.status_mut() = status.try_into().expect("a status");
        response
    }
}

impl FakeObjects {
    fn answer(&mut self, method: Method, path: String, body: Value) -> (u16, Value) {
        if method == Method::GET {
            let items = self.lists.get(&path).cloned().unwrap_or_default();
            let metadata = json!({ "resourceVersion": "1" });
            return (200, json!({ "metadata": metadata, "items": items }));
        }
        self.changes.push(Change {
            method: method.clone(),
            path: path.clone(),
            body: body.clone(),
        });
        if method != Method::POST {
            // Return the whole object if it is known, because a patch contains only a part.
            let mut objects = self.lists.values().flatten();
            let is_named = |object: &&Value| {
                let name = object["metadata"]["name"].as_str();
                name.is_some_and(|name| path.split('/').any(|part| part == name))
            };
            return (200, objects.find(is_named).cloned().unwrap_or(body));
        }
        let name = body["metadata"]["name"].as_str().unwrap_or_default();
        let object = format!("{path}/{name}");
        if self.created.contains(&object) {
            let failure = json!({ "kind": "Status", "status": "Failure", "code": 409,
                "reason": "AlreadyExists", "message": "it exists" });
            return (409, failure);
        }
        self.created.push(object);
        (201, body)
    }
}
