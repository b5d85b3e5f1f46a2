//! Reports of receivers, next to those of links and as text.

mod receivers;
pub mod text;

pub use longwire_traffic::receive::ReceivedByLink;
pub use receivers::{Receivers, refused};
