//! Integration tests in one binary, to link once.
#![allow(missing_docs, reason = "tests")]

mod arrivals;
mod captures;
mod generator;
mod receive;
mod registry;
mod sizes;
