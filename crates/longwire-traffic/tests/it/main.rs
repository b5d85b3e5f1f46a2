//! Integration tests in a single program, so that it is linked once.
#![allow(missing_docs, reason = "tests")]

mod arrivals;
mod captures;
mod generator;
mod receive;
mod registry;
mod sizes;
