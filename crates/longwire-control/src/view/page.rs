//! The static files of the page.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::reply::{Body, response};
use crate::view_config::PageFile;

/// Only the page itself is loaded, and no other page may show it in a frame. Charts set
/// styles, and exported images are data of the page.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; \
                      form-action 'none'";

/// Returns the response to a request for a file of the page; `None` if it is for something
/// else.
pub fn file<B>(files: &[PageFile], request: &Request<B>) -> Option<Response<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let path = request.uri().path();
    let file = files.iter().find(|file| file.path == path)?;
    let content = Full::new(Bytes::from_static(file.content)).boxed_unsync();
    let mut response = response(StatusCode::OK, file.kind, content);
    let mut set = |name: HeaderName, value: &'static str| {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    };
    set(HeaderName::from_static("content-security-policy"), POLICY);
    set(HeaderName::from_static("referrer-policy"), "no-referrer");
    set(
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    );
    Some(response)
}
