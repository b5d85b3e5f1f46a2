//! Receivers next to links, and their reports as text.

mod receivers;
pub mod text;

pub use longwire_traffic::receive::ReceivedByLink;
pub use receivers::{Receivers, refused};
