//! The configuration of a live view.

use std::net::SocketAddr;

use longwire_fabric::Controller;
use serde::{Deserialize, Serialize};

/// A live view.
#[derive(Clone, Debug)]
pub struct ViewConfig {
    /// The address at which the page is served; with port 0 the system chooses one.
    pub address: SocketAddr,
    /// The files of the page.
    pub files: &'static [PageFile],
}

/// Judges a run so far.
pub type Judge = fn(&Controller) -> Judgement;

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// Its path, from `/` on; the first page is at `/`.
    pub path: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// Its content.
    pub content: &'static [u8],
}

/// The verdict on a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Whether the run met its configuration.
    pub faithful: bool,
    /// The verdict in one sentence.
    pub line: String,
}
