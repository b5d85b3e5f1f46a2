//! What a run says of itself, in words and as JSON.

pub mod require;

pub use require::{RequireError, Requirement};
