//! Options of `replay` that filter and alter the frames of a trace.

use clap::Args;
use longwire_packet::alter::{
    AddressMap, AlterOptions, Alterations, Anonymize, LoopAddresses, MacMap, MtuAction, PortMap,
    SidedMac, Truncated, TtlChange, UnalteredAction, VlanChange, help, parse_dscp,
};
use longwire_packet::filter::{Filter, LANGUAGE};
use longwire_packet::split::Splitter;

use crate::Error;

/// Selection of the frames of a trace, and their alterations.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Altering frames")]
pub struct AlterArgs {
    /// Send only frames that match, such as 'tcp port 80 or 443' or 'ip.src == 10.0.0.0/8';
    /// evaluated before frames are altered
    #[arg(long, value_name = "FILTER", help_heading = "Choosing frames", long_help = filter_help())]
    pub filter: Option<Filter>,

    /// Send frames from clients to the first port and frames from servers to the second:
    /// client=NET, mac=ADDR[,ADDR...], syn, port
    #[arg(long, value_name = "RULE", help_heading = "Choosing frames", long_help = help::SPLIT)]
    pub split: Option<Splitter>,

    /// Handling of truncated frames: pad with zeros, random or pattern:HEX; keep; or skip
    #[arg(long, value_name = "HOW", default_value = "zeros", long_help = help::TRUNCATED)]
    pub truncated: Truncated,

    /// Remove the frame check sequence (the last four bytes of each frame)
    #[arg(long)]
    pub strip_fcs: bool,

    /// Correct all checksums, and fill in zero lengths of super-packets captured at a sender with
    /// offloads
    #[arg(long)]
    pub fix_checksums: bool,

    /// Set the source MAC address; with --split, two addresses set it for frames from clients and
    /// from servers
    #[arg(long, value_name = "MAC[,MAC]")]
    pub src_mac: Option<SidedMac>,

    /// Set the destination MAC address; with --split, two addresses as in --src-mac
    #[arg(long, value_name = "MAC[,MAC]")]
    pub dst_mac: Option<SidedMac>,

    /// Replace a MAC address, including in ARP and neighbour discovery. Repeatable
    #[arg(long, value_name = "OLD=NEW")]
    pub map_mac: Vec<MacMap>,

    /// Change VLAN tags: push:ID[,pcp=,dei=,type=0x88a8], pop, map:OLD=NEW, pcp:N. Repeatable,
    /// applied in order
    #[arg(long, value_name = "CHANGE")]
    pub vlan: Vec<VlanChange>,

    /// Replace a network, such as 10.0.0.0/8=192.168.0.0/16; the longest match applies.
    /// src:OLD=NEW and dst:OLD=NEW replace one address only
    #[arg(long, value_name = "OLD=NEW", long_help = help::MAP)]
    pub map: Vec<AddressMap>,

    /// Anonymise IP addresses, preserving prefixes (Crypto-PAn); the key has 64 hexadecimal digits
    #[arg(long, value_name = "KEY", long_help = help::ANONYMIZE)]
    pub anonymize: Option<Anonymize>,

    /// Replace ports: 80=8080, 1000-1999=3000-3999 or udp:53=5353. Repeatable
    #[arg(long, value_name = "OLD=NEW")]
    pub map_port: Vec<PortMap>,

    /// Set the DSCP: 0 to 63, ef, cs1, af11
    #[arg(long, value_name = "DSCP", value_parser = parse_dscp)]
    pub dscp: Option<u8>,

    /// Set the time to live or hop limit: 64, or relative: -1 or +1; link-local traffic is
    /// unchanged
    #[arg(long, value_name = "TTL", allow_hyphen_values = true)]
    pub ttl: Option<TtlChange>,

    /// Maximum payload after the Ethernet header and VLAN tags; see --mtu-action for longer frames
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65_535))]
    pub fit_mtu: Option<u32>,

    /// Frames longer than --fit-mtu: fragment (fragments IPv4 without DF, segments other TCP and
    /// super-packets, drops the rest), truncate, or drop
    #[arg(long, value_name = "HOW", requires = "fit_mtu")]
    #[arg(default_value = "fragment")]
    pub mtu_action: MtuAction,

    /// Advance addresses by STEP in each round of --loop; with NET, only addresses in that network,
    /// within it
    #[arg(long, value_name = "STEP[,NET]", long_help = help::LOOP_ADDRESSES)]
    pub loop_addresses: Vec<LoopAddresses>,

    /// Continue RTP streams and change TCP sequence numbers in each round of --loop
    #[arg(long, long_help = help::LOOP_RENUMBER)]
    pub loop_renumber: bool,

    /// Also alter packets inside tunnels (VXLAN, Geneve, GRE, GTP-U, IP in IP and others);
    /// --dscp and --ttl alter the outer packet only
    #[arg(long)]
    pub inner: bool,

    /// Handling of frames that cannot be altered completely: send or drop
    #[arg(long, value_name = "HOW", long_help = help::UNALTERED)]
    pub unaltered: Option<UnalteredAction>,

    /// Keep broadcast and multicast addresses of Ethernet and IP
    #[arg(long)]
    pub keep_groups: bool,
}

/// Returns the help of `--filter`, including the filter language.
fn filter_help() -> String {
    format!(
        "Send only frames that match, such as 'tcp port 80 or 443'; evaluated before frames are \
         altered\n\n{LANGUAGE}"
    )
}

impl AlterArgs {
    /// Returns the frame alterations; `seed` seeds the random ones.
    ///
    /// # Errors
    /// If options conflict.
    pub fn alterations(&self, seed: u64) -> Result<Alterations, Error> {
        for (option, mac) in [("--src-mac", self.src_mac), ("--dst-mac", self.dst_mac)] {
            if mac.is_some_and(|mac| mac.is_sided()) && self.split.is_none() {
                return Err(Error::usage(format!(
                    "{option}: two addresses need --split to separate the sides; add it, or give \
                     one address"
                )));
            }
        }
        Ok(Alterations::new(AlterOptions {
            truncated: self.truncated.clone(),
            strip_fcs: self.strip_fcs,
            fix_checksums: self.fix_checksums,
            source_mac: self.src_mac,
            destination_mac: self.dst_mac,
            mac_maps: self.map_mac.clone(),
            vlan: self.vlan.clone(),
            address_maps: self.map.clone(),
            anonymize: self.anonymize.clone(),
            port_maps: self.map_port.clone(),
            dscp: self.dscp,
            ttl: self.ttl,
            mtu: self.fit_mtu,
            mtu_action: self.mtu_action,
            loop_addresses: self.loop_addresses.clone(),
            loop_renumber: self.loop_renumber,
            keep_groups: self.keep_groups,
            inner: self.inner,
            unaltered: self.unaltered,
            seed,
            splitter: self.split.clone(),
        }))
    }
}

#[cfg(test)]
#[path = "alter_tests.rs"]
mod tests;
