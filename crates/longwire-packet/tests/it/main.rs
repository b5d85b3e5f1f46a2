//! All integration tests of the crate in one binary, to link only once.
#![allow(missing_docs, reason = "tests")]

mod alter;
mod bridge;
mod classify;
mod filter_tools;
mod icmp;
mod payload;
mod probe;

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]);
    let bytes = digits.map(|digits| u8::from_str_radix(digits, 16).expect("hex digits"));
    bytes.collect()
}
