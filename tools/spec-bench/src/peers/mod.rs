//! `peers`: Longwire next to mahimahi, Rattan, tcpreplay and TLEM.
//!
//! Each round measures all programs in turn with the same code, and a witness: the
//! baseline without an emulator. Rows compare medians over the rounds; ratios are taken within rounds.

mod comparison;
mod live;
mod memory;
mod picture;
mod programs;
mod replays;
mod session;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use longwire::Error;
use longwire::bench::harness::{in_turn, median};
use longwire::signals::stop_flag;
use longwire_engine::Nanos;
use longwire_plot::svg;
use longwire_testbed::support::Folder;

use self::comparison::{ComparisonRow, Contender, PeersFindings, Reading, Remark, rows};
use self::memory::{MemoryRounds, Tlem};
use self::programs::Peer;
use self::replays::Replays;
use self::session::Emulator;
use crate::program::{Measurement, failed, path};
use crate::replay::machine_remarks;
use crate::replay::senders::ReplaySender;

/// Arguments of `peers`.
#[derive(Clone, Debug, Args)]
pub struct PeersArgs {
    /// Tables to measure
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    #[arg(default_values_t = ComparedTable::value_variants())]
    pub table: Vec<ComparedTable>,
    /// Alternating rounds over all programs
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Duration of each flow, and about that of each measurement in memory
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub time: Nanos,
    /// Frame lengths in memory, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',')]
    #[arg(default_value = "64,512,1500")]
    pub size: Vec<u32>,
    /// Delays in memory
    #[arg(long, value_name = "TIME", value_delimiter = ',')]
    #[arg(default_value = "0ms,20ms")]
    pub delay: Vec<Nanos>,
    /// Round trips for each RTT error
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub probes: u32,
    /// Packets of the trace with gaps of 70 us
    #[arg(long, value_name = "N", default_value_t = 30_000)]
    pub packets: u64,
    /// Folder of mahimahi's mm-delay [default: PATH]
    #[arg(long, value_name = "DIR")]
    pub mahimahi: Option<PathBuf>,
    /// Folder of rattan [default: PATH]
    #[arg(long, value_name = "DIR")]
    pub rattan: Option<PathBuf>,
    /// Source tree of netmap; its TLEM is compiled with ports in memory
    #[arg(long, value_name = "DIR")]
    pub tlem: Option<PathBuf>,
    /// tcpreplay, or its folder [default: PATH]
    #[arg(long, value_name = "PATH")]
    pub tcpreplay: Option<PathBuf>,
    /// Write a picture of the ratios, as SVG
    #[arg(long, value_name = "FILE")]
    pub picture: Option<PathBuf>,
    /// Use --json files of earlier runs, comma-separated, instead of measuring
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    #[arg(conflicts_with_all = MEASURING)]
    pub from: Vec<PathBuf>,
}

/// Options that have no effect with `--from`.
const MEASURING: [&str; 11] = [
    "table",
    "rounds",
    "time",
    "size",
    "delay",
    "probes",
    "packets",
    "mahimahi",
    "rattan",
    "tlem",
    "tcpreplay",
];

/// A table of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ComparedTable {
    /// ns per packet, memory to memory, against TLEM
    Memory,
    /// TCP and 64-byte datagrams, against mahimahi and Rattan
    Traffic,
    /// RTT error at 0, 5 and 30 ms
    Delay,
    /// CPU time at 100, 1,000 and 10,000 packets/s in each direction over 20 ms
    Load,
    /// Time to start and end with `true` as the command
    Start,
    /// Timing errors and top speed of replays, against tcpreplay
    Replay,
}

impl Measurement for PeersArgs {
    type Found = PeersFindings;

    const ABOUT: &'static str = "\
Medians of alternating rounds, and their range. Times better: median of the ratios within rounds;
above 1, Longwire is better. RTT error: RTT minus twice the delay.
Witness: a copy of the frame in memory; a bare veth pair; a command in a new network namespace;
for replays, a spinning thread, and sendmmsg alone for the top speed.
Memory: rate 100 Gbit/s, 0.1 % loss, frames copied in and out; with a delay, as many bytes in
flight as in TLEM.";

    fn quick(&self) -> PeersArgs {
        PeersArgs {
            rounds: 1,
            time: Nanos::from_millis(50),
            size: vec![64],
            delay: vec![Nanos::ZERO],
            probes: 10,
            packets: 1_000,
            ..self.clone()
        }
    }

    fn measure(&self, port: &str) -> Result<PeersFindings, Error> {
        // Opened first, so that a wrong path does not cost a measurement. Earlier content is kept
        // until there is new content.
        let picture = self.picture.as_deref().map(|file| {
            let mut options = OpenOptions::new();
            let opened = options.create(true).truncate(false).write(true).open(file);
            opened.map_err(|error| failed(format!("cannot write {}: {error}", file.display())))
        });
        let picture = picture.transpose()?;
        let findings = if self.from.is_empty() {
            self.measure_tables(port)?
        } else {
            PeersFindings::read(&self.from)?
        };
        if let Some(mut file) = picture {
            let drawn = svg::render(&picture::draw(&findings));
            file.set_len(0)?;
            file.write_all(drawn.as_bytes())?;
        }
        Ok(findings)
    }
}

impl PeersArgs {
    fn measure_tables(&self, port: &str) -> Result<PeersFindings, Error> {
        // Before the first program is started, so that Ctrl-C leaves none behind.
        let stop = stop_flag()?;
        let mut remarks = Vec::new();
        let found = FoundPeers::new(self, &mut remarks)?;
        for remark in &remarks {
            eprintln!("{remark}");
        }
        remarks.extend(machine_remarks());
        let mut run = ComparisonRun {
            args: self,
            found,
            stop,
            remarks,
        };
        let mut findings = PeersFindings::default();
        for table in &self.table {
            let rows = run.table(*table, port)?;
            match table {
                ComparedTable::Memory => findings.memory.extend(rows),
                ComparedTable::Replay => findings.replay.extend(rows),
                _ => findings.live.extend(rows),
            }
        }
        let remarks = run.remarks.into_iter();
        findings.remarks = remarks.map(|remark| Remark { remark }).collect();
        Ok(findings)
    }
}

/// The peers that can be measured.
struct FoundPeers {
    tlem: Option<Tlem>,
    /// Emulators of live links, with the bare pair as witness.
    live: Vec<(Contender, Emulator)>,
    tcpreplay: Option<PathBuf>,
}

impl FoundPeers {
    /// Finds and tries the peers of the chosen tables. A remark names each that is missing or does
    /// not work.
    fn new(args: &PeersArgs, remarks: &mut Vec<String>) -> Result<FoundPeers, Error> {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let chosen = |tables: &[ComparedTable]| tables.iter().any(|one| args.table.contains(one));
        let mut find = |peer: Peer, given: &Option<PathBuf>, tables: &[ComparedTable]| {
            if !chosen(tables) {
                return Ok(None);
            }
            let found = peer.find(given.as_deref(), &search)?;
            if found.is_none() {
                remarks.push(peer.missing());
            }
            Ok::<_, Error>(found)
        };
        use ComparedTable::{Delay, Load, Memory, Replay, Start, Traffic};
        let links = [Traffic, Delay, Load, Start];
        let tlem = find(Peer::Tlem, &args.tlem, &[Memory])?;
        let mahimahi = find(Peer::Mahimahi, &args.mahimahi, &links)?;
        let rattan = find(Peer::Rattan, &args.rattan, &links)?;
        let tcpreplay = find(Peer::Tcpreplay, &args.tcpreplay, &[Replay])?;

        let mut live = vec![
            (Contender::Witness, Emulator::Bare),
            (Contender::Longwire, Emulator::Longwire(path()?)),
        ];
        let candidates = [
            (Peer::Mahimahi, mahimahi.map(Emulator::Mahimahi)),
            (Peer::Rattan, rattan.map(Emulator::Rattan)),
        ];
        for (peer, emulator) in candidates {
            if let Some(emulator) = emulator
                && works(peer, emulator.start_and_end(), remarks).is_some()
            {
                live.push((Contender::Peer(peer), emulator));
            }
        }
        let tcpreplay = tcpreplay.filter(|program| {
            let version = ReplaySender::Tcpreplay.version(program);
            remarks.push(match &version {
                Some(version) => format!("tcpreplay {version}"),
                None => "tcpreplay skipped: no version in `tcpreplay --version`".to_owned(),
            });
            version.is_some()
        });
        Ok(FoundPeers {
            tlem: tlem.and_then(|source| works(Peer::Tlem, Tlem::build(&source), remarks)),
            live,
            tcpreplay,
        })
    }
}

/// Returns a result, or adds a remark on its error.
fn works<T>(peer: Peer, result: Result<T, Error>, remarks: &mut Vec<String>) -> Option<T> {
    let failed = |error| remarks.push(format!("{} skipped: {error}", peer.name()));
    result.map_err(failed).ok()
}

/// The measurement of all tables.
struct ComparisonRun<'a> {
    args: &'a PeersArgs,
    found: FoundPeers,
    /// Set by Ctrl-C, which ends the run after the current measurement, so that namespaces and
    /// programs are removed.
    stop: Arc<AtomicBool>,
    remarks: Vec<String>,
}

/// Delays of live links.
const DELAYS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_millis(5),
    Duration::from_millis(30),
];

/// Packets per second of light load.
const RATES: [u64; 3] = [100, 1_000, 10_000];

impl ComparisonRun<'_> {
    fn table(&mut self, table: ComparedTable, port: &str) -> Result<Vec<ComparisonRow>, Error> {
        let time = Duration::from_nanos(self.args.time.as_nanos());
        match table {
            ComparedTable::Memory => self.memory(time),
            ComparedTable::Replay => self.replay(port, time),
            ComparedTable::Traffic => self.live("traffic", |link| live::traffic(link, time)),
            ComparedTable::Delay => {
                self.live("delay", |link| live::delay(link, &DELAYS, self.args.probes))
            }
            ComparedTable::Load => self.live("load", |link| live::load(link, &RATES, time)),
            ComparedTable::Start => self.live("start", live::start_up),
        }
    }

    /// Measures live links in alternating rounds.
    fn live(
        &self,
        table: &str,
        measure: impl Fn(&Emulator) -> Result<Vec<Reading>, Error>,
    ) -> Result<Vec<ComparisonRow>, Error> {
        let contenders: Vec<Contender> = self.found.live.iter().map(|(one, _)| *one).collect();
        let found = in_turn(
            self.args.rounds,
            &self.found.live,
            |round, (one, emulator)| {
                // Without an emulator, there is no CPU time.
                if table == "load" && *one == Contender::Witness {
                    return Ok(Vec::new());
                }
                self.progress(round, table, one.name())?;
                measure(emulator)
            },
        )?;
        Ok(rows(&contenders, &found))
    }

    fn memory(&mut self, time: Duration) -> Result<Vec<ComparisonRow>, Error> {
        let mut rounds = MemoryRounds {
            tlem: self.found.tlem.as_ref(),
            sizes: &self.args.size,
            delays: &self.args.delay,
            time,
            crossings: Vec::new(),
        };
        let mut contenders = vec![Contender::Witness, Contender::Longwire];
        contenders.extend(rounds.tlem.map(|_| Contender::Peer(Peer::Tlem)));
        let mut found: Vec<Vec<Vec<Reading>>> = contenders.iter().map(|_| Vec::new()).collect();
        for round in 1..=self.args.rounds.max(1) {
            self.progress(round, "memory", "all")?;
            let readings = rounds.measure(&contenders)?;
            for (found, readings) in found.iter_mut().zip(readings) {
                found.push(readings);
            }
        }
        let crossing = median(rounds.crossings);
        if crossing.is_finite() {
            let remark = format!("a cache line moves between the cores in {crossing} ns (median)");
            self.remarks.push(remark);
        }
        Ok(rows(&contenders, &found))
    }

    fn replay(&self, port: &str, time: Duration) -> Result<Vec<ComparisonRow>, Error> {
        let folder = Folder::create()?;
        let tcpreplay = self.found.tcpreplay.clone();
        let mut contenders = vec![Contender::Witness, Contender::Longwire];
        contenders.extend(tcpreplay.as_ref().map(|_| Contender::Peer(Peer::Tcpreplay)));
        let packets = self.args.packets;
        let tcpreplay = tcpreplay.unwrap_or_default();
        let replays = Replays::write(tcpreplay, packets, folder.path(), port, time)?;
        let found = in_turn(self.args.rounds, &contenders, |round, one| {
            self.progress(round, "replay", one.name())?;
            replays.measure(*one)
        })?;
        Ok(rows(&contenders, &found))
    }

    /// Prints the progress on stderr.
    ///
    /// # Errors
    /// If a signal asks to stop.
    fn progress(&self, round: usize, table: &str, program: &str) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(failed("stopped by a signal"));
        }
        eprintln!(
            "{table}: round {round} of {}: {program}",
            self.args.rounds.max(1)
        );
        Ok(())
    }
}
