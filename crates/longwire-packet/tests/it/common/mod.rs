//! Test frames. The tests of `longwire-engine` include the same file.
#![allow(dead_code, reason = "each crate uses its part")]

pub mod frames;
