//! The tests of this crate in one binary, to link once.
#![allow(missing_docs, reason = "tests")]

mod alter;
mod bridge;
mod classify;
mod filter_tools;
mod icmp;
mod payload;
mod probe;
