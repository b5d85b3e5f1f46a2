//! The port `pcap:FILE`: capture files as input and output.

mod rx;
mod tx;

pub use rx::PcapRx;
pub use tx::PcapTx;
