//! Rate models against slow and plain accounts of what they should do.

#[path = "../common/mod.rs"]
mod common;

mod bucket;
mod integral;
mod links;
mod means;
mod program;
mod slots;
mod states;
mod wifi;
