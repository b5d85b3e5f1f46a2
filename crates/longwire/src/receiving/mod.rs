//! Reports of receivers as text, and requirements on them.

mod by_link;
mod receivers;
pub mod require;
pub mod text;

pub use by_link::{ReceivedByLink, with_received};
pub use receivers::{Receivers, refused};
pub use require::ReceiveRequirement;
