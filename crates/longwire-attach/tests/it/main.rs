//! All tests of this crate, in one binary to save link time.
#![allow(missing_docs, reason = "tests")]

mod common;

mod engines;
mod hostile;
mod layouts;
mod processes;
mod real_containerd;
mod users;
