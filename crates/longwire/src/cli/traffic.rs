//! Options of generated traffic.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use longwire_engine::Nanos;
use longwire_engine::models::framing::Framing;
use longwire_engine::models::{FRAMING, Kind};
use longwire_packet::alter::parse_dscp;
use longwire_runtime::{FileLoader, suggest};
use longwire_traffic::arrivals::{ArrivalModel, LoadRate};
use longwire_traffic::generator::{
    AddressRange, FlowConfig, FlowOrder, GeneratorConfig, MACS_MAX, MacAddress, Payload, PortRange,
    Protocol, TcpFlags, VlanTag,
};
use longwire_traffic::{ARRIVALS, SIZES};

use crate::Error;
use crate::commands::models::synopsis;

const HEADERS: &str = "Headers";

/// The generated traffic.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Traffic")]
pub struct TrafficArgs {
    /// Mean rate, such as 100mbit or 1mpps; in a profile, the 100 % load
    #[arg(id = "pace", long = "rate", value_name = "RATE")]
    #[arg(allow_hyphen_values = true)]
    pub rate: Option<LoadRate>,

    /// Overhead per frame that a rate in bits includes, such as ethernet; default: none; in a
    /// profile, ethernet
    #[arg(long, value_name = "FRAMING")]
    pub rate_framing: Option<String>,

    /// Send as fast as the port accepts frames
    #[arg(long, conflicts_with = "pace")]
    pub topspeed: bool,

    /// Distribution of departures around the rate, such as poisson
    #[arg(long, value_name = "ARRIVALS", default_value = "constant")]
    #[arg(long_help = kind_help("Distribution of departures around the rate", &ARRIVALS))]
    pub arrivals: String,

    /// Frame lengths, such as 1514 or imix: from destination MAC address to end of payload,
    /// without frame check sequence
    #[arg(long, value_name = "SIZES", default_value = "60")]
    #[arg(long_help = kind_help(
        "Frame lengths, from destination MAC address to end of payload. RFC 2544 counts the frame \
         check sequence, so its 64-byte frame has 60 bytes here; fixed:size=64,fcs=with is the \
         same",
        &SIZES,
    ))]
    pub sizes: String,

    /// Stop after this many frames
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,

    /// Stop after this time
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,

    /// Number of flows, which differ in addresses or ports
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub flows: u64,

    /// Choice of each frame's flow
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    pub flow_order: Order,

    /// Payload after the probe: zeros, counting, random, or repeated bytes such as
    /// 0xdeadbeef
    #[arg(long, value_name = "BYTES", default_value = "zeros")]
    pub payload: Payload,

    /// Omit probes; receivers then cannot count losses or measure delays
    #[arg(long)]
    pub no_probe: bool,

    /// Stream number of the probes; unique for each generator that sends to the same receiver
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..65_536))]
    pub stream: u32,

    /// Protocol inside IP
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, help_heading = HEADERS)]
    pub protocol: Inside,

    /// Use IPv6 for addresses that are not given
    #[arg(short = '6', long, help_heading = HEADERS)]
    pub ipv6: bool,

    /// Source addresses: one, a prefix, or a range such as 10.0.0.1-10.0.0.9 [default:
    /// 198.18.0.1 or 2001:2::1]
    #[arg(long, value_name = "ADDRESSES", help_heading = HEADERS)]
    pub src_ip: Option<AddressRange>,

    /// Destination addresses [default: 198.19.0.1 or 2001:2:0:1::1]
    #[arg(long, value_name = "ADDRESSES", help_heading = HEADERS)]
    pub dst_ip: Option<AddressRange>,

    /// Source ports; for ICMP, identifiers
    #[arg(long, value_name = "PORTS", default_value_t = PortRange::DYNAMIC, help_heading = HEADERS)]
    pub src_port: PortRange,

    /// Destination ports
    #[arg(long, value_name = "PORTS", default_value_t = PortRange::one(9), help_heading = HEADERS)]
    pub dst_port: PortRange,

    /// Source MAC address
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:01", help_heading = HEADERS)]
    pub src_mac: MacAddress,

    /// Destination MAC address; with a router, the next hop's
    #[arg(long, value_name = "MAC", default_value = "02:00:00:00:00:02", help_heading = HEADERS)]
    pub dst_mac: MacAddress,

    /// Number of consecutive source MAC addresses from --src-mac, used round robin
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = HEADERS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MACS_MAX))]
    pub src_macs: u64,

    /// Number of consecutive destination MAC addresses from --dst-mac, used round robin
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = HEADERS)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MACS_MAX))]
    pub dst_macs: u64,

    /// VLAN tag, such as 100 or, with a priority, 100:5; repeat for an inner tag
    #[arg(long, value_name = "VLAN", help_heading = HEADERS)]
    pub vlan: Vec<VlanTag>,

    /// DSCP: 0 to 63, ef, cs1, af11
    #[arg(long, value_name = "DSCP", default_value = "0", help_heading = HEADERS)]
    #[arg(value_parser = parse_dscp)]
    pub dscp: u8,

    /// Time to live or hop limit
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = HEADERS)]
    pub ttl: u8,

    /// TCP flags, such as syn or psh,ack
    #[arg(long, value_name = "FLAGS", default_value = "psh,ack", help_heading = HEADERS)]
    pub tcp_flags: TcpFlags,
}

/// The order of flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Each flow in turn
    #[default]
    RoundRobin,
    /// A random flow for each frame
    Random,
}

/// The protocol inside IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Inside {
    /// UDP datagrams
    #[default]
    Udp,
    /// TCP segments, without handshake or state
    Tcp,
    /// ICMP echo requests
    Icmp,
}

/// Returns the summary, followed by every model of the kind.
fn kind_help<M>(summary: &str, kind: &Kind<M>) -> String {
    let models = kind.entries.iter();
    let models =
        models.map(|entry| format!("\n* {}: {}", synopsis(&entry.info), entry.info.summary));
    format!("{summary}\n{}", models.collect::<String>())
}

/// Parses the value of `--rate-framing`.
///
/// # Errors
/// If it is invalid.
pub fn rate_framing(text: &str) -> Result<Framing, Error> {
    let framing = FRAMING.parse(text);
    framing.map_err(|error| Error::usage(format!("--rate-framing: {error}")))
}

/// Parses the model of an option.
fn model<M: ?Sized>(kind: &Kind<Box<M>>, text: &str) -> Result<Arc<M>, Error> {
    let model = kind.parse_with(text, &FileLoader::default());
    model.map(Arc::from).map_err(|error| {
        let reason = suggest::spec_error(&error);
        Error::usage(format!("--{}: {reason}", kind.name))
    })
}

/// Source address in the IPv6 benchmarking prefix (RFC 5180, section 8).
const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 1);
const DESTINATION_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 1);

impl TrafficArgs {
    /// Returns the generator configuration.
    ///
    /// # Errors
    /// If an option is invalid.
    pub fn config(&self, seed: u64) -> Result<GeneratorConfig, Error> {
        Ok(GeneratorConfig {
            flows: self.flow_config(),
            sizes: model(&SIZES, &self.sizes)?,
            arrivals: self.arrival_model()?,
            rate: self.load_rate("none")?,
            payload: self.payload.clone(),
            probe: (!self.no_probe).then_some(self.stream),
            count: self.count,
            time: self.time,
            seed,
        })
    }

    /// Returns the rate and its framing; `default` if no rate is given.
    ///
    /// # Errors
    /// If the framing is invalid, or given for a rate that is not in bits.
    pub fn load_rate(&self, default: &str) -> Result<Option<LoadRate>, Error> {
        let framing = rate_framing(self.rate_framing.as_deref().unwrap_or(default))?;
        let bits = matches!(self.rate, Some(LoadRate::Bits(..)));
        if self.rate_framing.is_some() && !bits {
            return Err(Error::usage(
                "--rate-framing needs --rate in bits, such as 1gbit",
            ));
        }
        Ok(self.rate.map(|rate| rate.framed(framing)))
    }

    /// Returns the arrival model.
    ///
    /// # Errors
    /// If the model is invalid.
    pub fn arrival_model(&self) -> Result<Arc<dyn ArrivalModel>, Error> {
        model(&ARRIVALS, &self.arrivals)
    }

    fn flow_config(&self) -> FlowConfig {
        let given = [self.src_ip, self.dst_ip].into_iter().flatten();
        let v6 = self.ipv6 || given.clone().any(|range| range.is_v6());
        // Both addresses must have the same family, so IPv6 also replaces the IPv4 default of an
        // address that is not given.
        let defaults = FlowConfig::default();
        let one = |address| AddressRange::one(IpAddr::V6(address));
        let (sources, destinations) = if v6 {
            (one(SOURCE_V6), one(DESTINATION_V6))
        } else {
            (defaults.sources, defaults.destinations)
        };
        FlowConfig {
            protocol: match self.protocol {
                Inside::Udp => Protocol::Udp,
                Inside::Tcp => Protocol::Tcp,
                Inside::Icmp => Protocol::Icmp,
            },
            count: self.flows,
            order: match self.flow_order {
                Order::RoundRobin => FlowOrder::RoundRobin,
                Order::Random => FlowOrder::Random,
            },
            sources: self.src_ip.unwrap_or(sources),
            destinations: self.dst_ip.unwrap_or(destinations),
            source_ports: self.src_port,
            destination_ports: self.dst_port,
            source_mac: self.src_mac,
            source_macs: self.src_macs,
            destination_mac: self.dst_mac,
            destination_macs: self.dst_macs,
            vlans: self.vlan.clone(),
            dscp: self.dscp,
            ttl: self.ttl,
            tcp_flags: self.tcp_flags,
        }
    }
}
