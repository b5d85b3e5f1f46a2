//! Input and output: ports, the arena and the delay line. Nearly all unsafe code of
//! Longwire lives here.
//!
//! A port is one file in [`port`], which implements the traits [`RxPort`] and
//! [`TxPort`], and one line in [`port::registry`].

mod arena;
mod bell;
mod collapse;
pub mod delay_line;
mod event;
pub mod net;
pub mod port;
pub mod rights;
pub mod run_directory;
mod sync;

pub use bell::Bell;
pub use collapse::collapse_heap;
pub use event::Event;
pub use port::{
    Arrived, Offload, Outgoing, PortError, PortLosses, Pushed, Received, RxPort, SendStamp,
    StampedBy, TxPort,
};
