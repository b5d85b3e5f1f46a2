//! The port `pcap:FILE`: capture files in and out.

mod rx;
mod tx;

pub use rx::PcapRx;
pub use tx::PcapTx;
