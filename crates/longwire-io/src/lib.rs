//! Input and output: ports, arena and delay line. Nearly all unsafe code of Longwire is here and in
//! the runtime's plugin host.
//!
//! ```
//! use longwire_io::port::options::OpenOptions;
//! use longwire_io::port::registry;
//!
//! let error = registry::open("pakcet:eth0", &OpenOptions::default()).err();
//! assert!(error.is_some_and(|error| error.to_string().contains("packet")));
//! ```
//!
//! To add a port, implement [`RxPort`] and [`TxPort`] in a file of [`port`], and add a line to
//! [`port::registry`].

mod arena;
pub mod attach;
pub mod bpf;
pub mod clock;
mod collapse;
pub mod delay_line;
mod event;
mod mapping;
pub mod net;
mod pidfd;
pub mod port;
pub mod rights;
pub mod run_directory;
mod sync;

pub use arena::prefetch_to_read;
pub use collapse::collapse_heap;
pub use event::{Bell, Event};
pub use pidfd::Pidfd;
pub use port::{
    Offload, PortError, PortLosses, PushResult, ReceiveResult, Received, RxFrame, RxPort,
    SendStamp, StampedBy, TxFrame, TxPort,
};
