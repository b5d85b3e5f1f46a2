//! All of this crate's tests, in one binary that is linked once.
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
