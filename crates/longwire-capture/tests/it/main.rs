//! All integration tests of the crate in one binary, to link only once.
#![allow(missing_docs, reason = "tests")]

mod common;

mod conversions;
mod cooked;
mod dialects;
mod log;
mod packed;
mod pcap;
mod threads;
mod tools;
