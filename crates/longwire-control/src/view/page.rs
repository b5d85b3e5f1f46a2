//! Static files of the page.

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};

use crate::config::PageFile;
use crate::reply::{Body, response};

/// Content security policy: permits only the page's own files, and no framing by other sites.
/// Charts set styles, and exported images are data URLs.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; \
                      form-action 'none'";

/// Returns a static file of the page if the request is for one.
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
