//! `startup`: time from a file with many links to a running network.
//!
//! The file is read, checked and started like `longwire run FILE`, with two `null` ports. Three
//! forms describe the same links: one `[[link]]` per link, a single `[[link]]` with a count, and a
//! CSV file.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use longwire::Error;
use longwire::bench::harness::median_by;
use longwire_io::port::options::OpenOptions;
use longwire_io::port::registry;
use longwire_network::Numbered;
use longwire_runtime::{Faults, FileLoader, NetworkPlan, RunConfig};
use longwire_testbed::support::Folder;
use longwire_topology::Topology;
use serde::Serialize;

use crate::program::{Measurement, checked, start};

/// Options of `startup`.
#[derive(Clone, Debug, Args)]
pub struct StartupArgs {
    /// Number of links
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        value_parser = clap::value_parser!(u32).range(1..=4_000_000)
    )]
    pub links: u32,
    /// Starts per file; the median is reported
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub rounds: usize,
}

/// Results of one form of the file.
#[derive(Clone, Debug, Serialize)]
pub struct StartupRow {
    file: &'static str,
    links: u32,
    megabytes: f64,
    /// Time to read and check the file.
    read_ms: f64,
    /// Time to build rules, paths and link configurations from the file.
    build_ms: f64,
    /// Time to build the links and start the threads.
    start_ms: f64,
    total_ms: f64,
}

/// Function that returns the text of a file with this number of links, and that of its CSV file.
type FileForm = fn(u32) -> [String; 2];

/// Forms of the links in a file: each written out as a `[[link]]` table, a single table with
/// `between` and `count`, and one line per link in a CSV file.
const FILE_FORMS: [(&str, FileForm); 3] = [
    ("each written out", written_out),
    ("one line with a count", counted),
    ("CSV", csv),
];

/// Start of every file.
const HEAD: &str = "unmatched = \"drop\"\n\n[ports]\nleft = \"null\"\nright = \"null\"\n\n";

/// Rate of every link.
const RATE: &str = "1mbit";
const DELAY: &str = "10ms";

fn written_out(links: u32) -> [String; 2] {
    let mut text = HEAD.to_owned();
    for number in 0..links {
        let [source, destination] = addresses(number);
        let _ = write!(
            text,
            "[[link]]\nname = \"l{number}\"\nmatch = \"src={source},dst={destination}\"\n\
             rate = \"{RATE}\"\ndelay = \"{DELAY}\"\n\n"
        );
    }
    [text, String::new()]
}

fn counted(links: u32) -> [String; 2] {
    let text = format!(
        "{HEAD}[[link]]\nname = \"l{{n}}\"\nbetween = [\"10.0.0.0/8\", \"11.0.0.0/8\"]\n\
         count = {links}\nrate = \"{RATE}\"\ndelay = \"{DELAY}\"\n"
    );
    [text, String::new()]
}

fn csv(links: u32) -> [String; 2] {
    let mut csv = "name,match,rate,delay\n".to_owned();
    for number in 0..links {
        let [source, destination] = addresses(number);
        let _ = writeln!(
            csv,
            "l{number},\"src={source},dst={destination}\",{RATE},{DELAY}"
        );
    }
    [format!("{HEAD}[[link]]\ncsv = \"links.csv\"\n"), csv]
}

/// Returns the addresses of a link's frames: consecutive hosts of two networks.
fn addresses(number: u32) -> [String; 2] {
    let [_, b, c, d] = (number + 1).to_be_bytes();
    [10, 11].map(|first| format!("{first}.{b}.{c}.{d}"))
}

impl Measurement for StartupArgs {
    type Found = Vec<StartupRow>;

    const ABOUT: &'static str = "From a file of links, each with two directions, to a running network.\nThe bar for 100,000 links is 3 s.";

    fn quick(&self) -> StartupArgs {
        StartupArgs {
            links: 1_000,
            rounds: 1,
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<StartupRow>, Error> {
        let folder = Folder::create()?;
        let mut rows = Vec::new();
        let [file, csv_file] = ["links.toml", "links.csv"].map(|name| folder.path().join(name));
        for (name, form) in FILE_FORMS {
            let [text, csv] = form(self.links);
            fs::write(&file, &text)?;
            fs::write(&csv_file, &csv)?;
            let mut rounds = Vec::new();
            for _ in 0..self.rounds.max(1) {
                rounds.push(StartupRow {
                    file: name,
                    megabytes: (text.len() + csv.len()) as f64 / 1e6,
                    ..once(&file, self.links)?
                });
            }
            rows.push(median_by(rounds, |row| row.total_ms));
        }
        Ok(rows)
    }
}

/// Starts a network from a file and stops it.
fn once(file: &Path, links: u32) -> Result<StartupRow, Error> {
    let begun = Instant::now();
    let topology = checked(Topology::read(file))?;
    let read = begun.elapsed();
    let mut ports = Vec::new();
    for port in &topology.ports {
        let opened = registry::open(&port.opens, &OpenOptions::default())?;
        ports.push((port.name.clone(), opened));
    }
    let network = Numbered::new(topology);
    let parts = network.parts(&FileLoader::reporting_to(&Faults::new()))?;
    // Each direction is a separate engine link.
    if parts.links.len() != 2 * links as usize {
        let made = parts.links.len() / 2;
        return Err(Error::Failed(format!("built {made} of {links} links")));
    }
    let built = begun.elapsed();
    let plan = NetworkPlan::changeable(ports, parts);
    let running = start(plan, RunConfig::default())?;
    let total = begun.elapsed();
    running.stop();
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    Ok(StartupRow {
        file: "",
        links,
        megabytes: 0.0,
        read_ms: millis(read),
        build_ms: millis(built - read),
        start_ms: millis(total - built),
        total_ms: millis(total),
    })
}
