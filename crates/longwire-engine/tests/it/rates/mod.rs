//! Rate models, compared with slow but simple accounting.

mod bucket;
mod integral;
pub mod links;
mod means;
mod program;
mod slots;
mod states;
mod waits;
mod wifi;
