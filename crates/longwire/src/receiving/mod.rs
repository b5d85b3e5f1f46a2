//! What was received, in words, and what it must have been.

mod beside;
pub mod require;
pub mod text;

pub use beside::Receivers;
pub use require::ReceiveRequirement;
