//! The environment of `longwire exec`: two networks, `near` and `far`, that
//! only the emulated link joins, and the commands that run in them.
//!
//! ```text
//!   near's namespace        the emulator's (hub)         far's namespace
//!  ┌────────────────┐   ┌──────────────────────────┐   ┌────────────────┐
//!  │ CMD      eth0 ─┼───┼─ near ══ the link ══ far ┼───┼─ eth0   peer   │
//!  └────────────────┘   └──────────────────────────┘   └───────┬────────┘
//!                                                    --uplink: │ the host
//! ```
//!
//! Read [`environment`] first; [`foundation`] is what it begins with, [`network`]
//! the devices and addresses, [`mounts`] the names, [`spawn`] and [`supervise`] the commands,
//! [`peer_output`] what the peer prints, [`guard`] the clean-up, [`uplink`] the
//! way out.

pub mod environment;
pub mod error;
pub mod forwarding;
pub mod foundation;
pub mod guard;
pub mod hosts;
pub mod mounts;
pub mod network;
pub mod nftables;
pub mod peer_output;
pub mod ready;
pub mod silence;
pub mod spawn;
pub mod supervise;
pub mod uplink;
pub mod user;

pub use environment::{Device, Environment, EnvironmentConfig, PEER_WAIT, PortPlace, Side};
pub use error::{ExecError, describe, exit_code_of};
pub use foundation::Foundation;
pub use network::{DEVICE, Plan};
pub use peer_output::PeerOutput;
pub use supervise::{Children, Event, Signals};
