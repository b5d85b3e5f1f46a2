//! `spec-bench scaling`: how a network on shards would scale beyond the cores of this
//! machine.
//!
//! Nothing is measured here: a discrete simulation of the protocol of
//! `longwire_runtime::shards`, with the planner's own partitions and with costs that were
//! measured elsewhere. It shows which part bends the curve. It knows no memory bandwidth,
//! no caches that several cores share, no clock rates that fall with the number of busy
//! cores and no preemption, so a machine is rather slower.

mod model;
#[cfg(test)]
mod tests;
mod topologies;

use std::fs;
use std::path::PathBuf;

use clap::Args;
use longwire::Error;
use longwire::table::Table;
use longwire_engine::Nanos;
use longwire_units::PacketRate;
use serde::Serialize;

use model::{BarrierGrowth, Costs, EventList, Prediction, Traffic, predict};
use topologies::SHAPES;

/// Options of `scaling`.
#[derive(Clone, Debug, Args)]
pub struct ScalingArgs {
    /// Costs in ns as JSON, as the object "costs" of `longwire bench shards --json`
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// Serial cost of a frame: reading, switching, distributing, merging
    #[arg(long, value_name = "NS")]
    serial_ns: Option<f64>,
    /// Classification of a frame
    #[arg(long, value_name = "NS")]
    classify_ns: Option<f64>,
    /// An event: a frame arrives at a link
    #[arg(long, value_name = "NS")]
    event_ns: Option<f64>,
    /// A frame that continues on another shard, in addition to its event
    #[arg(long, value_name = "NS")]
    crossing_ns: Option<f64>,
    /// A barrier of two threads
    #[arg(long, value_name = "NS")]
    barrier_ns: Option<f64>,
    /// How the barrier's cost grows with threads
    #[arg(long, value_enum, default_value_t)]
    barrier: BarrierGrowth,
    /// Numbers of cores, from 1 to 64
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        default_value = "1,2,4,8,16,32,64"
    )]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    cores: Vec<u16>,
    /// Links of each network, about
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    links: u32,
    /// Delay of a link; in random networks 0.1 to 10 times as much
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    delay: Nanos,
    /// Frames that enter the network in a second of emulated time
    #[arg(long, value_name = "PPS", default_value = "1Mpps")]
    pps: PacketRate,
    /// Frames that are read at once
    #[arg(long, value_name = "N", default_value_t = 4_096)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// Frames in all
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    frames: u32,
    /// Seed of networks and traffic
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Costs of which some are given.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
struct GivenCosts {
    serial_ns: Option<f64>,
    classify_ns: Option<f64>,
    event_ns: Option<f64>,
    crossing_ns: Option<f64>,
    barrier_ns: Option<f64>,
}

/// The predictions for all networks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Scaling {
    costs: Costs,
    barrier: BarrierGrowth,
    delay_ns: u64,
    batch: u32,
    networks: Vec<NetworkScaling>,
}

/// The predictions for one network.
#[derive(Clone, Debug, Serialize)]
struct NetworkScaling {
    network: &'static str,
    links: usize,
    /// Links of a path, on average.
    hops: f64,
    predictions: Vec<Prediction>,
}

impl ScalingArgs {
    pub(super) fn quick(&self) -> ScalingArgs {
        ScalingArgs {
            links: self.links.min(256),
            frames: self.frames.min(2_000),
            ..self.clone()
        }
    }

    /// Returns the costs of the file, with those of the command line in their place.
    fn costs(&self) -> Result<Costs, Error> {
        let file = match &self.costs {
            Some(path) => {
                let name = path.display();
                let text = fs::read_to_string(path)
                    .map_err(|error| Error::Failed(format!("{name}: {error}")))?;
                serde_json::from_str(&text)
                    .map_err(|error| Error::Failed(format!("{name}: {error}")))?
            }
            None => GivenCosts::default(),
        };
        let cost = |name: &str, given: Option<f64>, of_file: Option<f64>| {
            let missing = || {
                let option = name.replace('_', "-");
                Error::Failed(format!(
                    "no {name}: write --{option} NS, or --costs FILE with measured costs"
                ))
            };
            let cost = given.or(of_file).ok_or_else(missing)?;
            let is_cost = cost.is_finite() && cost >= 0.0;
            let refused = || Error::Failed(format!("{name}={cost}: a cost is 0 or more"));
            is_cost.then_some(cost).ok_or_else(refused)
        };
        Ok(Costs {
            serial_ns: cost("serial_ns", self.serial_ns, file.serial_ns)?,
            classify_ns: cost("classify_ns", self.classify_ns, file.classify_ns)?,
            event_ns: cost("event_ns", self.event_ns, file.event_ns)?,
            crossing_ns: cost("crossing_ns", self.crossing_ns, file.crossing_ns)?,
            barrier_ns: cost("barrier_ns", self.barrier_ns, file.barrier_ns)?,
        })
    }
}

pub(super) fn measure(args: &ScalingArgs) -> Result<Scaling, Error> {
    let costs = args.costs()?;
    let gap = 1e12 / args.pps.packets_per_kilosec() as f64;
    let traffic = Traffic {
        frames: args.frames as usize,
        batch: args.batch as usize,
        gap: Nanos::from_nanos(gap as u64),
        seed: args.seed,
    };
    let networks = SHAPES.map(|shape| {
        let topology = shape.generate(args.links as usize, args.delay, args.seed);
        let workload = EventList::new(&topology, &traffic);
        let hops: usize = topology.paths.iter().map(Vec::len).sum();
        let cores = args.cores.iter().map(|cores| usize::from(*cores));
        let predictions =
            cores.map(|cores| predict(&topology, &workload, &costs, args.barrier, cores));
        NetworkScaling {
            network: shape.name(),
            links: topology.links.len(),
            hops: hops as f64 / topology.paths.len() as f64,
            predictions: predictions.collect(),
        }
    });
    Ok(Scaling {
        costs,
        barrier: args.barrier,
        delay_ns: args.delay.as_nanos(),
        batch: args.batch,
        networks: networks.into(),
    })
}

pub(super) fn print(scaling: &Scaling) {
    let Costs {
        serial_ns,
        classify_ns,
        event_ns,
        crossing_ns,
        barrier_ns,
    } = scaling.costs;
    println!("Predicted by a model, not measured: speed-ups over one core and one shard.");
    println!(
        "Costs in ns: serial {serial_ns}, classify {classify_ns}, event {event_ns}, crossing \
         {crossing_ns}, barrier of two threads {barrier_ns}. Delay {}, {} frames a batch.",
        Nanos::from_nanos(scaling.delay_ns),
        scaling.batch
    );
    println!("Then, in % of the time of all cores: what is lost, and the largest part of it.");
    let mut table = Table::headed(
        "network | links | hops | cores | shards | windows/batch | crossings/frame | Mframes/s | \
         speed-up | serial | unused | imbalance | crossing | barrier | lookahead | bends",
    );
    for network in &scaling.networks {
        for prediction in &network.predictions {
            let lost = prediction.lost.named();
            let lost = lost.map(|(_, part)| format!("{:.1}", (part * 100.0).max(0.0)));
            let mut cells = vec![
                network.network.to_owned(),
                network.links.to_string(),
                format!("{:.1}", network.hops),
                prediction.cores.to_string(),
                prediction.shards.to_string(),
                format!("{:.1}", prediction.windows_per_batch),
                format!("{:.2}", prediction.crossings_per_frame),
                format!("{:.2}", prediction.frames_per_second / 1e6),
                format!("{:.2}", prediction.speed_up),
            ];
            cells.extend(lost);
            cells.push(prediction.lost.largest().to_owned());
            table.row(cells);
        }
    }
    table.print();
}
