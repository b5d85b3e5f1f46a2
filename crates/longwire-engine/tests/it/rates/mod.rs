//! Rate models against slow and plain accounts of what they should do.

mod bucket;
mod integral;
pub mod links;
mod means;
mod program;
mod slots;
mod states;
mod waits;
mod wifi;
