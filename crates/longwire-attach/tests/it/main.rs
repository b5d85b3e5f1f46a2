//! The tests of this crate in one program: it is linked once.
#![allow(missing_docs, reason = "tests")]

mod common;

mod engines;
mod hostile;
mod layouts;
mod processes;
mod real_containerd;
mod users;
