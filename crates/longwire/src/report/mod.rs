//! Reports of runs, as text and as JSON.

pub mod artifacts;
pub mod document;
pub mod finish;
pub mod live;
pub mod network;
mod received;
mod replay;
pub mod require;
pub mod start;
pub mod stderr;
pub mod text;
mod undelivered;
pub mod verdict;
pub mod words;

pub use live::Live;
pub use replay::ReplayLine;
pub use require::{RequireError, Requirement};
pub use verdict::Verdict;
