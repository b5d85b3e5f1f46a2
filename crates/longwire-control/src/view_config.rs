//! Configuration of a live view.

use std::net::SocketAddr;

use longwire_fabric::Controller;
use longwire_runtime::Grade;
use serde::{Deserialize, Serialize};

/// Configuration of a live view.
#[derive(Clone, Debug)]
pub struct ViewConfig {
    /// Address of the page; port 0 lets the system choose one.
    pub address: SocketAddr,
    /// Files of the page.
    pub files: &'static [PageFile],
}

/// Judges a run so far.
pub type Judge = fn(&Controller) -> Judgement;

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct PageFile {
    /// URL path; that of the index is `/`.
    pub path: &'static str,
    /// Media type.
    pub kind: &'static str,
    /// Content.
    pub content: &'static [u8],
}

/// Verdict on a run so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// Grade of the run.
    pub grade: Grade,
    /// Verdict in one sentence.
    pub line: String,
}
