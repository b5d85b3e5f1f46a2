//! An emulated link between two sockets in a test: delay, loss, rate limit and queue.
//!
//! ```no_run
//! use std::net::{Ipv4Addr, TcpListener, TcpStream};
//!
//! use longwire_testbed::Testbed;
//!
//! # fn serve(address: &str) -> std::io::Result<()> {
//! #     TcpListener::bind(address)?.accept().map(drop)
//! # }
//! # fn fetch(server: Ipv4Addr) -> std::io::Result<()> {
//! #     TcpStream::connect((server, 4433)).map(drop)
//! # }
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let net = Testbed::link("rate=10mbit delay=20ms loss=1%")?.seed(7).start()?;
//! let server = net.far().spawn(|| serve("0.0.0.0:4433"))?;
//! net.near().run(|| fetch(net.far().addr()))??;
//! assert_eq!(net.finish()?.up.artifacts(), 0);
//! # Ok(())
//! # }
//! ```
//!
//! Start with [`Testbed`]. It creates two network namespaces, near and far, and a third one
//! in which threads of this process emulate the link:
//!
//! ```text
//!   near's namespace        the emulator's (hub)         far's namespace
//!  ┌────────────────┐   ┌──────────────────────────┐   ┌────────────────┐
//!  │          eth0 ─┼───┼─ near ══ the link ══ far ┼───┼─ eth0          │
//!  └────────────────┘   └──────────────────────────┘   └───────┬────────┘
//!                                     exec with an uplink only: │ the host
//! ```
//!
//! Namespaces are file descriptors: they have no names, and the kernel removes them and their
//! contents regardless of how the process ends. No packet reaches the host's networks. Each side
//! has permanent neighbour entries for the other, so only packets from sockets cross the link.
//!
//! # Privileges
//!
//! [`Testbed::start`] needs `CAP_SYS_ADMIN`, `CAP_NET_ADMIN`, `CAP_NET_RAW` and
//! `CAP_SYS_CHROOT`. Root has them, as does any user under `unshare --map-root-user cargo
//! test`, if user namespaces are allowed. A test process cannot enter a user namespace by
//! itself, since the kernel admits only single-threaded processes. Tests can skip if
//! [`TestbedError::is_unprivileged`] is true.
//!
//! # `longwire exec`
//!
//! [`Environment`] is the environment of `longwire exec`: the same networks, plus commands that
//! resolve each other's names, signal handling, and a guard that cleans up if Longwire is killed.
//! It is built on a [`Foundation`]; [`Networks`] contains the devices and addresses.

mod config;
mod environment;
mod error;
mod follow;
mod forwarding;
mod foundation;
mod guard;
mod hosts;
mod link_text;
mod mounts;
mod network;
mod networks;
mod nftables;
mod node;
mod peer_output;
mod plan;
mod ready;
mod running;
mod silence;
mod spawn;
mod supervise;
pub mod support;
mod testbed;
mod testbed_error;
mod uplink;
mod user;

pub use config::{Device, EnvironmentConfig, HOSTS_MAX, HostConfig, Side};
pub use environment::{Environment, PEER_WAIT};
pub use error::{EnvironmentError, describe, exit_code_of};
pub use foundation::Foundation;
pub use link_text::LinkTextError;
pub use network::DEVICE;
pub use networks::{Networks, PortPlace, direct_networks};
pub use node::Node;
pub use peer_output::PeerOutput;
pub use plan::{HOSTS_WITH_ROUTERS, Plan};
pub use running::{DirectionReport, RunningTestbed, TestbedReport};
pub use supervise::{Children, Event, StopWatch};
pub use testbed::Testbed;
pub use testbed_error::TestbedError;
