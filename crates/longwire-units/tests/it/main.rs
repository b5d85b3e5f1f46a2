//! Integration tests in one binary, to link once.
#![allow(missing_docs, reason = "tests")]

mod units;
