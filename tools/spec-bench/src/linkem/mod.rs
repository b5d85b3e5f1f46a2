//! `linkem`: repeats the measurements of Joglekar's thesis (LinkEM, 2004).
//!
//! Four stations in separate network namespaces each have a veth pair to a network with four ports.
//! The links between the stations, all in one network, match exact pairs of addresses: links with
//! several rates, delays and losses, and eight more for throughput. The network is started from a
//! topology, like that of `longwire run FILE`. Frame lengths in this module exclude the FCS.

mod bandwidth;
mod delay;
mod loss;
mod throughput;

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use longwire::Error;
use longwire_engine::{BitRate, Nanos, Probability};
use longwire_runtime::RunConfig;
use longwire_testbed::support;
use longwire_traffic::sockets::{round_trips, udp_flow};
use serde::Serialize;

use crate::program::{Measurement, lost_at, stop};
use crate::stations::{Lane, Stations};

/// Options of `linkem`.
#[derive(Clone, Debug, Args)]
pub struct LinkemArgs {
    /// Rates of the links in the bandwidth table
    #[arg(
        long,
        value_name = "RATE",
        value_delimiter = ',',
        default_value = "64kbit,128kbit,256kbit,512kbit,1mbit,2mbit,5mbit,10mbit"
    )]
    pub rate: Vec<BitRate>,
    /// One-way delays of the links in the delay table
    #[arg(long, value_name = "TIME")]
    #[arg(value_delimiter = ',', default_value = "5ms,30ms,101ms")]
    pub delay: Vec<Nanos>,
    /// Frame lengths in the delay table, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,128,256,512,1024,1514",
        value_parser = clap::value_parser!(u32).range(64..=1514)
    )]
    pub size: Vec<u32>,
    /// Losses of the links in the loss table
    #[arg(long, value_name = "SHARE")]
    #[arg(value_delimiter = ',', default_value = "1%,3%,7%,10%")]
    pub loss: Vec<Probability>,
    /// Packets of each row in the loss table
    #[arg(long, value_name = "N", default_value_t = 120_000)]
    pub packets: u64,
    /// Duration of the TCP and UDP measurements; frame length and throughput measurements take a
    /// sixth of it
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub time: Nanos,
}

impl LinkemArgs {
    /// Returns the duration of the flow measurements.
    fn time(&self) -> Duration {
        Duration::from_nanos(self.time.as_nanos())
    }

    /// Assigns two stations to every link.
    fn lanes(&self) -> Lanes {
        let mut number = 0;
        let mut lane = || {
            let station = usize::from(number) % STATIONS;
            // Vary the distance, so that every station has links to all three other stations.
            let distance = 1 + usize::from(number) / STATIONS % (STATIONS - 1);
            number += 1;
            Lane {
                number: number - 1,
                from: station,
                to: (station + distance) % STATIONS,
            }
        };
        Lanes {
            base: lane(),
            rates: self.rate.iter().map(|rate| (*rate, lane())).collect(),
            delays: self.delay.iter().map(|delay| (*delay, lane())).collect(),
            losses: self.loss.iter().map(|loss| (*loss, lane())).collect(),
        }
    }

    /// Checks that the options need at most [`LANES_MAX`] lanes.
    fn check(&self) -> Result<(), Error> {
        let lanes = 1 + self.rate.len() + self.delay.len() + self.loss.len();
        if lanes > LANES_MAX {
            return Err(Error::Usage(format!(
                "{lanes} links are too many: at most {} rates, delays and losses in total",
                LANES_MAX - 1
            )));
        }
        Ok(())
    }
}

/// Number of stations, each at its own port of the network.
const STATIONS: usize = 4;

/// Maximum number of lanes, whose numbers are one byte long.
const LANES_MAX: usize = 200;

/// The stations of each link.
struct Lanes {
    base: Lane,
    rates: Vec<(BitRate, Lane)>,
    delays: Vec<(Nanos, Lane)>,
    losses: Vec<(Probability, Lane)>,
}

impl Lanes {
    fn all(&self) -> impl Iterator<Item = Lane> + '_ {
        let rates = self.rates.iter().map(|(_, lane)| *lane);
        let delays = self.delays.iter().map(|(_, lane)| *lane);
        let losses = self.losses.iter().map(|(_, lane)| *lane);
        std::iter::once(self.base).chain(rates.chain(delays).chain(losses))
    }

    /// Returns the topology: the links of these lanes, and the throughput links.
    fn topology(&self, kind: &str) -> String {
        let mut text = "[ports]\n".to_owned();
        for station in 0..STATIONS {
            let port = support::Stations::port(station);
            let _ = writeln!(text, "{port} = \"{kind}:{port}\"");
        }
        text.push_str("\n[switching]\nmode = \"bridge\"\n");
        link(&mut text, self.base, "delay = \"0ms\"");
        for (rate, lane) in &self.rates {
            let queue = bandwidth::QUEUE;
            let options = format!(
                "up = {{ rate = \"{rate}\", framing = \"ethernet\", queue = \"{queue}\" }}"
            );
            link(&mut text, *lane, &options);
        }
        for (delay, lane) in &self.delays {
            link(&mut text, *lane, &format!("delay = \"{delay}\""));
        }
        for (loss, lane) in &self.losses {
            link(&mut text, *lane, &format!("up = {{ loss = \"{loss}\" }}"));
        }
        throughput::links(&mut text);
        text
    }
}

fn link(text: &mut String, lane: Lane, options: &str) {
    let [from, to] = lane.addresses();
    let _ = write!(
        text,
        "\n[[link]]\nname = \"lane{}\"\nmatch = \"src={from},dst={to}\"\n{options}\n",
        lane.number
    );
}

/// Results of all tables.
#[derive(Debug, Serialize)]
pub struct LinkemFindings {
    bandwidth: Vec<bandwidth::BandwidthRow>,
    delay: Vec<delay::DelayRow>,
    loss: Vec<loss::LossRow>,
    throughput: throughput::Throughput,
    /// Number of links in the network.
    links: usize,
    /// Artifacts before the throughput measurement.
    artifacts: u64,
    /// Machine pauses detected by the network.
    pauses: longwire_runtime::Pauses,
}

impl Measurement for LinkemArgs {
    type Found = LinkemFindings;

    const ABOUT: &'static str = "Links among 4 stations, in one network.\nBandwidth: LinkEM's error was 0.75 to 1.16 %; the bar is 0.5 %.\nLoss: LinkEM's error was 0.41, 2.96, 0.02 and 0 % at 1, 3, 7 and 10 %.\nThroughput: LinkEM reached 496,000 frames/s (83 % of 400 Mbit/s).\nDelay error: RTT minus twice the delay minus the base RTT; the bar is 0.05 ms at any frame length.";

    fn quick(&self) -> LinkemArgs {
        let mbit = |rate: u64| BitRate::from_bits_per_sec(rate * 1_000_000);
        LinkemArgs {
            rate: [5, 10].into_iter().filter_map(mbit).collect(),
            delay: vec![Nanos::from_millis(5)],
            size: vec![64, 1514],
            packets: 2_000,
            time: Nanos::from_millis(1_500),
            ..self.clone()
        }
    }

    fn measure(&self, kind: &str) -> Result<LinkemFindings, Error> {
        self.check()?;
        let lanes = self.lanes();
        let stations = Stations::new(STATIONS)?;
        for lane in lanes.all() {
            stations.add_lane(lane)?;
        }
        let text = lanes.topology(kind);
        let running = stations.start_topology(&text, RunConfig::default())?;
        // The first frames cause address resolution.
        for lane in lanes.all() {
            let timeout = Duration::from_secs(2);
            round_trips(stations.path(lane), 2, Duration::ZERO, timeout)?;
        }
        let bandwidth = bandwidth::measure(&stations, &lanes.rates, self.time())?;
        let delay = delay::measure(&stations, &lanes, &self.size, self.time() / 6)?;
        let mut loss = Vec::new();
        for (probability, lane) in &lanes.losses {
            let before = lost_at(&running.snapshot().ports);
            let got = udp_flow(stations.path(*lane), loss::flow(self.packets))?;
            let own = lost_at(&running.snapshot().ports) - before;
            loss.push(loss::row(*probability, &got, own));
        }
        let lost = lost_at(&running.snapshot().ports);
        let throughput = throughput::measure(&stations, self.time() / 60)?;
        Ok(LinkemFindings {
            bandwidth,
            delay,
            loss,
            throughput,
            links: text.matches("[[link]]").count(),
            artifacts: lost,
            pauses: stop(running)?.pauses,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longwire_topology::Topology;

    use super::*;

    #[test]
    fn the_topology_is_one_and_every_station_has_links_to_every_other() {
        let args = LinkemArgs {
            rate: (0..8)
                .filter_map(|n| BitRate::from_bits_per_sec(64_000 << n))
                .collect(),
            delay: vec![Nanos::from_millis(5); 3],
            size: Vec::new(),
            loss: vec!["1%".parse().unwrap(); 4],
            packets: 1,
            time: Nanos::ZERO,
        };
        let lanes = args.lanes();
        let text = lanes.topology("packet");
        let topology = Topology::parse("bench", &text, Path::new("")).unwrap();
        assert_eq!(topology.links.len(), 16 + throughput::LINKS);
        assert_eq!(topology.ports.len(), STATIONS);
        let pairs: std::collections::BTreeSet<_> =
            lanes.all().map(|lane| (lane.from, lane.to)).collect();
        assert_eq!(pairs.len(), STATIONS * (STATIONS - 1));
        assert!(pairs.iter().all(|(from, to)| from != to));
    }
}
