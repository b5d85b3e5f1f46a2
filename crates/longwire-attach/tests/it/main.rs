//! All of this crate's tests, in one binary that is linked once.
#![allow(missing_docs, reason = "tests")]

mod common;

mod engines;
mod hostile;
mod layouts;
mod processes;
mod real_containerd;
mod users;
