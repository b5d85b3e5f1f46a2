//! Helpers shared by several integration tests.
#![allow(dead_code, missing_docs, reason = "each test uses a part of it")]

pub mod contract;
pub mod frames;
pub mod pair;
