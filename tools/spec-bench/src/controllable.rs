//! `controllable`: cost per packet of a link that can be changed, relative to the same link without
//! `--control`.
//!
//! Both run on one thread, with all stages in sequence, from memory port to memory port in virtual
//! time. Rounds are interleaved, and medians of the same run are compared. The measure is the CPU
//! time of the thread, which other programs hardly affect; it includes building the link once per
//! round.

use std::path::Path;

use clap::{Args, ValueEnum};
use longwire::Error;
use longwire::bench::harness::median;
use longwire_engine::{BitRate, Bytes, LinkConfig, LinkId, LinkSpec};
use longwire_io::port::mem::{Sink, Source};
use longwire_network::Numbered;
use longwire_runtime::deciding::{NetworkParts, pipeline};
use longwire_runtime::pipeline::{PipelineConfig, run_on_one_thread};
use longwire_runtime::record::{Epoch, Event};
use longwire_runtime::{Faults, FileLoader, LinkSetup, Recorder};
use longwire_topology::Topology;
use serde::Serialize;

use crate::program::{Measurement, checked, cpu_of_thread, failed};

/// Arguments of `controllable`.
#[derive(Clone, Debug, Args)]
pub struct ControllableArgs {
    /// Frame lengths in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "64,1500"
    )]
    pub size: Vec<u32>,
    /// Load in percent of the link's rate: 100 keeps the link busy, more fills its queue
    #[arg(
        long,
        value_name = "PERCENT",
        value_delimiter = ',',
        default_value = "50,100,150"
    )]
    pub load: Vec<u32>,
    /// Options of the link
    #[arg(long, value_name = "OPTIONS", default_value = LINK)]
    pub link: String,
    /// Record arrivals and verdicts, and discard them
    #[arg(long)]
    pub record: bool,
    /// Run only one of the links, for example under a profiler
    #[arg(long, value_name = "LINK")]
    pub only: Option<BenchedLink>,
    /// Packets per round
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    pub packets: u64,
    /// Rounds of each kind; the median is reported
    #[arg(long, value_name = "N", default_value_t = 9)]
    pub rounds: usize,
}

/// Link to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchedLink {
    /// Without `--control`.
    Plain,
    /// With `--control`.
    Control,
}

/// A recorder that records nothing.
struct Discard;

impl Recorder for Discard {
    fn start(&mut self, _epoch: Epoch) {}

    fn record(&mut self, _of: LinkId, _events: &[Event], _bytes: &mut [u8]) -> Result<(), String> {
        Ok(())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

fn recorder(args: &ControllableArgs) -> Option<Box<dyn Recorder>> {
    args.record.then(|| Box::new(Discard) as Box<dyn Recorder>)
}

/// Default link options.
const LINK: &str = "rate=1gbit delay=20ms loss=1%";

/// A row: one frame length and load.
#[derive(Debug, Serialize)]
pub struct ControllableRow {
    size: u32,
    load_percent: u32,
    plain_ns: f64,
    controllable_ns: f64,
    /// Ratio of the medians.
    ratio: f64,
    /// Frames that only one of the two links delivered; must be 0.
    differing: u64,
    packets: u64,
    rounds: usize,
}

impl Measurement for ControllableArgs {
    type Found = Vec<ControllableRow>;

    const ABOUT: &'static str = "CPU time per packet of a link with and without --control, memory \
                                 to memory; medians.\nThe bar for the ratio is 1.2.";

    fn quick(&self) -> ControllableArgs {
        ControllableArgs {
            packets: 20_000,
            rounds: 1,
            ..self.clone()
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<ControllableRow>, Error> {
        let mut rows = Vec::new();
        for size in &self.size {
            for load in &self.load {
                rows.push(row(self, *size, *load)?);
            }
        }
        Ok(rows)
    }
}

fn row(args: &ControllableArgs, size: u32, load: u32) -> Result<ControllableRow, Error> {
    let (mut plain, mut controllable) = (Vec::new(), Vec::new());
    let mut differing = 0;
    for _ in 0..args.rounds.max(1) {
        let runs = |kind| args.only.is_none_or(|only| only == kind);
        let mut delivered = Vec::new();
        if runs(BenchedLink::Plain) {
            let (nanos, frames) = run_plain(args, size, load)?;
            plain.push(nanos);
            delivered.push(frames);
        }
        if runs(BenchedLink::Control) {
            let (nanos, frames) = run_controllable(args, size, load)?;
            controllable.push(nanos);
            delivered.push(frames);
        }
        differing += delivered[0].abs_diff(delivered[delivered.len() - 1]);
    }
    let (plain_ns, controllable_ns) = (median(plain), median(controllable));
    Ok(ControllableRow {
        size,
        load_percent: load,
        plain_ns,
        controllable_ns,
        ratio: controllable_ns / plain_ns,
        differing,
        packets: args.packets,
        rounds: args.rounds,
    })
}

/// Memory for frames in flight and their descriptors.
const MEMORY: Bytes = Bytes(1 << 30);

/// Size of the source's frames, which together fit in a core's cache.
const SOURCE_BYTES: usize = 512 << 10;

/// Returns nanoseconds per packet and the number of delivered frames.
fn run_plain(args: &ControllableArgs, size: u32, load: u32) -> Result<(f64, u64), Error> {
    let link = config(args)?;
    let source = source(args, &link, size, load)?;
    let setup = LinkSetup {
        name: "ab".to_owned(),
        config: link,
    };
    let config = PipelineConfig {
        seed: 1,
        memory_soft: MEMORY.0,
        budget: MEMORY,
        lend: false,
        cores: None,
    };
    let begun = cpu_of_thread();
    let end = run_on_one_thread(source, Sink::copying(), setup, config, recorder(args))
        .map_err(failed)?;
    let nanos = (cpu_of_thread() - begun).as_nanos() as f64 / args.packets as f64;
    Ok((nanos, end.port.frames()))
}

/// Like [`run_plain`], with the network of `run A B --control`.
fn run_controllable(args: &ControllableArgs, size: u32, load: u32) -> Result<(f64, u64), Error> {
    let source = source(args, &config(args)?, size, load)?;
    // No frames, so any rate will do.
    let rate = BitRate::from_bits_per_sec(1).expect("a rate");
    let silent = Source::paced(size as usize, 4_096, rate, 0);
    let ports = vec![(source, Sink::copying()), (silent, Sink::copying())];
    let parts = parts(args)?;
    let begun = cpu_of_thread();
    let end = pipeline::run_to_end(ports, parts, (1, MEMORY), recorder(args)).map_err(failed)?;
    let nanos = (cpu_of_thread() - begun).as_nanos() as f64 / args.packets as f64;
    Ok((nanos, end.ports[1].frames()))
}

fn config(args: &ControllableArgs) -> Result<LinkConfig, Error> {
    let loader = FileLoader::reporting_to(&Faults::new());
    let spec = LinkSpec::parse(&args.link, &loader).map_err(failed)?;
    spec.build(&loader).map_err(failed)
}

/// Returns a source whose frames arrive at `load` percent of the link's rate.
fn source(
    args: &ControllableArgs,
    link: &LinkConfig,
    size: u32,
    load: u32,
) -> Result<Source, Error> {
    let rate = link.rate.bit_rate().map(BitRate::bits_per_sec);
    let rate = rate.map(|rate| rate / 100 * u64::from(load));
    let rate = rate.and_then(BitRate::from_bits_per_sec);
    let rate = rate.ok_or_else(|| Error::Failed("the link needs a rate".to_owned()))?;
    Ok(Source::paced(
        size as usize,
        SOURCE_BYTES,
        rate,
        args.packets,
    ))
}

fn parts(args: &ControllableArgs) -> Result<NetworkParts, Error> {
    let options: String = args
        .link
        .split_whitespace()
        .filter_map(|option| option.split_once('='))
        .map(|(name, value)| format!("{name} = \"{value}\"\n"))
        .collect();
    let text = format!(
        "[ports]\na = \"null\"\nb = \"null\"\n\n[switching]\nmode = \"pairs\"\n\
         reserved = \"pass\"\n\n[[link]]\nname = \"link\"\nmatch = \"in-port=a\"\n\n\
         [link.up]\n{options}\n[link.down]\n{options}"
    );
    Numbered::new(checked(Topology::parse("the bench", &text, Path::new("")))?)
        .parts(&FileLoader::reporting_to(&Faults::new()))
        .map_err(failed)
}
