//! All integration tests of the crate in one binary, to link only once.
#![allow(missing_docs, reason = "tests")]

mod units;
