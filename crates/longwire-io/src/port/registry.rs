//! The ports there are: one line each in the table below, one arm each in
//! the enums that carry them.
//!
//! The enums choose once a burst; the loop over a burst's frames is the
//! port's own, without a call through a pointer a frame.

use std::os::fd::BorrowedFd;

use longwire_engine::Nanos;

use super::options::OpenOptions;
use super::packet::{self, PacketRx, PacketTx};
use super::{
    Arrived, Outgoing, PortError, PortLosses, Pushed, Received, RegionId, RxPort, TxPort,
};

/// An open port.
pub struct Port {
    /// As its user wrote it.
    pub name: String,
    /// Where frames enter.
    pub rx: AnyRx,
    /// Where frames leave.
    pub tx: AnyTx,
    /// What was chosen and changed, and why, in sentences.
    pub notes: Vec<String>,
}

/// The receiving half of any port.
pub enum AnyRx {
    /// AF_PACKET.
    Packet(PacketRx),
}

/// The sending half of any port.
pub enum AnyTx {
    /// AF_PACKET.
    Packet(PacketTx),
}

/// One kind of port.
#[derive(Debug)]
pub struct PortKind {
    /// What stands before the colon.
    pub name: &'static str,
    /// What stands after it.
    pub argument: &'static str,
    /// One line of help.
    pub summary: &'static str,
    open: fn(&str, &OpenOptions) -> Result<Port, PortError>,
}

/// Every kind of port.
pub static PORTS: &[PortKind] = &[PortKind {
    name: "packet",
    argument: "IF",
    summary: "a network interface through AF_PACKET, which every Linux has",
    open: |name, options| {
        let port = packet::open(name, options)?;
        Ok(Port {
            name: format!("packet:{name}"),
            rx: AnyRx::Packet(port.rx),
            tx: AnyTx::Packet(port.tx),
            notes: port.notes,
        })
    },
}];

/// Opens the port that `text` names: `packet:eth1`.
///
/// # Errors
/// When there is no such kind of port, or it cannot be opened.
pub fn open(text: &str, options: &OpenOptions) -> Result<Port, PortError> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    match PORTS.iter().find(|kind| kind.name == name) {
        Some(kind) => (kind.open)(argument, options),
        None => Err(PortError::Unknown {
            text: text.to_owned(),
            known: PORTS
                .iter()
                .map(|kind| format!("{}:{}", kind.name, kind.argument))
                .collect::<Vec<_>>()
                .join(", "),
        }),
    }
}

/// Does the same for whichever port it is.
macro_rules! each {
    ($port:expr, $inner:ident => $does:expr) => {
        match $port {
            Self::Packet($inner) => $does,
        }
    };
}

impl RxPort for AnyRx {
    fn receive(
        &mut self,
        now: Nanos,
        max: usize,
        take: &mut impl FnMut(Arrived<'_>),
    ) -> Result<Received, PortError> {
        each!(self, port => port.receive(now, max, take))
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        each!(self, port => port.readable())
    }

    fn losses(&mut self) -> PortLosses {
        each!(self, port => port.losses())
    }

    fn region(&self) -> Option<RegionId> {
        each!(self, port => port.region())
    }

    fn frame_max(&self) -> usize {
        each!(self, port => port.frame_max())
    }
}

impl TxPort for AnyTx {
    fn push(&mut self, frame: Outgoing<'_>) -> Pushed {
        each!(self, port => port.push(frame))
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        each!(self, port => port.flush())
    }

    fn room(&self) -> usize {
        each!(self, port => port.room())
    }

    fn unsent(&self) -> usize {
        each!(self, port => port.unsent())
    }

    fn takes_offload(&self) -> bool {
        each!(self, port => port.takes_offload())
    }

    fn losses(&mut self) -> PortLosses {
        each!(self, port => port.losses())
    }

    fn region(&self) -> Option<RegionId> {
        each!(self, port => port.region())
    }
}
