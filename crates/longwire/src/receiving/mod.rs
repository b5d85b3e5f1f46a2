//! What was received, in words, and what it must have been.

pub mod require;
pub mod text;

pub use require::ReceiveRequirement;
