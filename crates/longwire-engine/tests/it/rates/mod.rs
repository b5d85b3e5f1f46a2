//! Rate models, compared with slow and plain accounting.

mod bucket;
mod integral;
pub mod links;
mod means;
mod program;
mod slots;
mod states;
mod waits;
mod wifi;
