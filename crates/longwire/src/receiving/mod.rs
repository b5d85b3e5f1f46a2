//! What was received, in words, and what it must have been.

mod receivers;
pub mod require;
pub mod text;

pub use receivers::{Receivers, refused};
pub use require::ReceiveRequirement;
