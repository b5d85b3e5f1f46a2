//! `control`: a network with a thousand changes per second under traffic.
//!
//! The bench starts `longwire run FILE --control …` between two veth ports, with one link in use
//! and many idle ones, and `longwire generate` with a receiver and numbered probes. The link drops
//! nothing and preserves order even when its delay and rate change, so every lost or reordered
//! probe is the emulator's fault.

use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use longwire::Error;
use longwire::report::artifacts::is_late;
use longwire_client::{Client, ClientError};
use longwire_control::Address;
use longwire_engine::Nanos;
use longwire_io::net::NetNamespace;
use longwire_testbed::support::{Folder, device, wire};
use nix::sys::signal::Signal;
use serde::Serialize;
use serde_json::{Value, json};

use crate::program;
use crate::program::{BenchProgram, Measurement, failed, joined};

/// Options of `control`.
#[derive(Clone, Debug, Args)]
pub struct ControlArgs {
    /// Duration of each row's measurement
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub time: Nanos,
    /// Packets per second
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub pps: u64,
    /// Changes per second in the second row
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub changes: u32,
    /// Idle links in addition to the one in use
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub links: u32,
}

/// Results of one run.
#[derive(Debug, Serialize)]
pub struct ControlRow {
    /// Requested changes per second.
    changes_per_s: u32,
    /// Completed changes per second.
    changed_per_s: f64,
    /// Changes that failed; must be 0.
    changes_failed: u64,
    /// Times from sending a change to receiving the response.
    change_ms: Option<Quantiles>,
    /// Times from querying one link to receiving the response.
    get_ms: Option<Quantiles>,
    /// Probes that crossed the link.
    sent: u64,
    /// Probes that did not arrive.
    lost: u64,
    /// Frames dropped because the receiver's buffer was full, not by the link.
    unseen: u64,
    reordered: u64,
    duplicates: u64,
    /// Artifacts of the emulator other than lateness.
    artifacts: u64,
    /// Frames sent more than the tolerance (1 ms) after their release.
    late: u64,
    /// 99th percentile of lateness at the receiver's port.
    late_p99_us: f64,
    /// Frames dropped by the model; must be 0.
    dropped: u64,
}

/// Quantiles of times, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Quantiles {
    p50: f64,
    p99: f64,
    max: f64,
}

impl Measurement for ControlArgs {
    type Found = Vec<ControlRow>;

    const ABOUT: &'static str = "Probes across a link while its delay and rate change, through two veth ports.\nThe link loses nothing and keeps the order.";

    fn quick(&self) -> ControlArgs {
        ControlArgs {
            time: Nanos::from_millis(500),
            pps: 2_000,
            changes: 100,
            links: 100,
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<ControlRow>, Error> {
        let rates = [0, self.changes];
        rates.into_iter().map(|rate| row(self, rate)).collect()
    }
}

fn row(args: &ControlArgs, changes_per_s: u32) -> Result<ControlRow, Error> {
    let time = Duration::from_nanos(args.time.as_nanos());
    let mut site = Site::start(args.links)?;
    let generator = site.generate(args.pps, time)?;
    let load = ControlLoad {
        address: site.address.clone(),
        changes_per_s,
        time,
    };
    let (changes, gets) = load.run()?;
    let generated = generator.finish()?;
    site.emulator.signal(Signal::SIGINT);
    let report = site.emulator.finish()?;
    Ok(summed(
        changes_per_s,
        &changes,
        &gets,
        &generated,
        &report,
        time,
    ))
}

/// Combines the results of all programs into a row.
fn summed(
    changes_per_s: u32,
    changes: &RequestTimes,
    gets: &RequestTimes,
    generated: &Value,
    report: &Value,
    time: Duration,
) -> ControlRow {
    let of = |value: &Value| value.as_u64().unwrap_or(0);
    let received = &generated["received"];
    let ports = report["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let links = report["links"].as_array().map_or(&[][..], Vec::as_slice);
    let artifacts = |late: bool| {
        let kinds = ports
            .iter()
            .filter_map(|port| port["artifacts"].as_object());
        let kinds = kinds.flatten().filter(|(kind, _)| is_late(kind) == late);
        kinds.map(|(_, count)| of(count)).sum()
    };
    let dropped = links.iter().filter_map(|link| link["dropped"].as_object());
    let p99 = ports
        .iter()
        .filter_map(|port| port["lateness_us"]["p99"].as_f64());
    ControlRow {
        changes_per_s,
        changed_per_s: changes.done() as f64 / time.as_secs_f64(),
        changes_failed: changes.failed,
        change_ms: changes.quantiles(),
        get_ms: gets.quantiles(),
        sent: of(&received["sent"]),
        lost: of(&received["lost"]).saturating_sub(of(&received["unseen"])),
        unseen: of(&received["unseen"]),
        reordered: of(&received["reordered"]),
        duplicates: of(&received["duplicates"]),
        artifacts: artifacts(false),
        late: artifacts(true),
        late_p99_us: p99.fold(0.0, f64::max),
        dropped: dropped.flatten().map(|(_, count)| of(count)).sum(),
    }
}

/// Number of connections for the changes, so that a late response does not delay the next change.
const CONNECTIONS: u32 = 4;

/// Interval between queries of one link.
const QUERY_INTERVAL: Duration = Duration::from_millis(10);

/// Requests sent under traffic.
struct ControlLoad {
    pub address: Address,
    pub changes_per_s: u32,
    pub time: Duration,
}

/// Response times of one kind of request, and the number of failures.
struct RequestTimes {
    /// Response times, in nanoseconds.
    times: Histogram<u64>,
    pub failed: u64,
}

impl RequestTimes {
    fn new() -> Result<RequestTimes, Error> {
        const DIGITS: u8 = 3;
        /// Maximum recorded time in nanoseconds, which exceeds the client's timeout.
        const TIME_MAX: u64 = 120_000_000_000;
        let times = Histogram::new_with_max(TIME_MAX, DIGITS);
        let times = times.map_err(failed)?;
        Ok(RequestTimes { times, failed: 0 })
    }

    fn note<T>(&mut self, began: Instant, answer: &Result<T, ClientError>) {
        match answer {
            Ok(_) => self
                .times
                .saturating_record(began.elapsed().as_nanos() as u64),
            Err(_) => self.failed += 1,
        }
    }

    /// Returns the number of successful requests.
    pub fn done(&self) -> u64 {
        self.times.len()
    }

    /// Returns quantiles of the response times.
    pub fn quantiles(&self) -> Option<Quantiles> {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        (!self.times.is_empty()).then(|| Quantiles {
            p50: ms(self.times.value_at_quantile(0.5)),
            p99: ms(self.times.value_at_quantile(0.99)),
            max: ms(self.times.max()),
        })
    }
}

impl ControlLoad {
    /// Sends changes and queries; returns the response times of both.
    pub fn run(&self) -> Result<(RequestTimes, RequestTimes), Error> {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let changers = (0..CONNECTIONS.min(self.changes_per_s))
                .map(|nth| scope.spawn(move || self.change(nth, began)))
                .collect::<Vec<_>>();
            let mut gets = RequestTimes::new()?;
            let mut client = Client::new(self.address.clone(), None)?;
            let mut nth = 0;
            while wait(began, QUERY_INTERVAL * nth, self.time) {
                let asked = Instant::now();
                gets.note(asked, &client.get(&format!("/v1/links/{LINK}")));
                nth += 1;
            }
            let mut changes = RequestTimes::new()?;
            for changer in changers {
                let changed = joined(changer)?;
                changes.failed += changed.failed;
                let added = changes.times.add(&changed.times);
                added.map_err(failed)?;
            }
            Ok((changes, gets))
        })
    }

    /// Sends every `CONNECTIONS`-th change from `first` on, each when it is due.
    fn change(&self, first: u32, began: Instant) -> Result<RequestTimes, Error> {
        /// Number of delays and rates through which the link cycles.
        const DELAYS_MS: u64 = 5;
        const RATES: [&str; 3] = ["800mbit", "1gbit", "2gbit"];
        let mut asked = RequestTimes::new()?;
        let mut client = Client::new(self.address.clone(), None)?;
        let mut nth = u64::from(first);
        while wait(began, self.due(nth), self.time) {
            let set = match nth % 2 {
                0 => json!({ "delay": format!("{}ms", 1 + nth / 2 % DELAYS_MS) }),
                _ => json!({ "rate": RATES[(nth / 2) as usize % RATES.len()] }),
            };
            let asking = Instant::now();
            let answer = client.post("/v1/changes", &json!({ "set": { LINK: set } }));
            asked.note(asking, &answer);
            nth += u64::from(CONNECTIONS.min(self.changes_per_s));
        }
        Ok(asked)
    }

    /// Returns the due time of change `nth` since the start.
    fn due(&self, nth: u64) -> Duration {
        Duration::from_nanos(nth.saturating_mul(1_000_000_000) / u64::from(self.changes_per_s))
    }
}

/// Sleeps until `due`, counted from the start; returns whether that is before the end.
fn wait(began: Instant, due: Duration, end: Duration) -> bool {
    std::thread::sleep(due.saturating_sub(began.elapsed()));
    due < end && began.elapsed() < end
}

/// Name of the link in use.
const LINK: &str = "link";

/// Timeout of every wait; longer than any usable machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which probes run before and after the measurement.
const AROUND: Duration = Duration::from_millis(500);

/// A running emulator between two devices of hosts.
struct Site {
    emulator: BenchProgram,
    /// Address of the control API.
    address: Address,
    hosts: NetNamespace,
    _middle: NetNamespace,
    _folder: Folder,
}

impl Site {
    /// Starts a network with one link in use and `links` idle ones; returns once the control API
    /// responds.
    fn start(links: u32) -> Result<Site, Error> {
        let (hosts, middle) = (NetNamespace::new()?, NetNamespace::new()?);
        for name in ["near", "far"] {
            wire(device(name, Some(&hosts)), device(name, Some(&middle)))?;
        }
        let folder = Folder::create()?;
        let [file, socket] = ["network.toml", "control.sock"].map(|name| folder.path().join(name));
        std::fs::write(&file, topology(links))?;
        let mut command = Command::new(program::path()?);
        command
            .arg("run")
            .arg(file)
            .arg("--control")
            .arg(&socket)
            .arg("--json");
        let site = Site {
            emulator: BenchProgram::start("the emulator", Some(&middle), &mut command, "")?,
            address: Address::Unix(socket),
            hosts,
            _middle: middle,
            _folder: folder,
        };
        let mut client = Client::new(site.address.clone(), None)?;
        until(|| Ok(client.get("/v1").is_ok()))?;
        Ok(site)
    }

    /// Starts probes and waits until they cross the link.
    pub fn generate(&self, pps: u64, time: Duration) -> Result<BenchProgram, Error> {
        let time = time + 2 * AROUND;
        let mut command = Command::new(program::path()?);
        command.args(["generate", "--to", "packet:near", "--receive", "packet:far"]);
        command.args(["--sizes", "64", "--json"]);
        command.arg("--rate").arg(format!("{pps}pps"));
        command.arg("--time").arg(format!("{}ms", time.as_millis()));
        let hosts = Some(&self.hosts);
        let generator = BenchProgram::start("the generator", hosts, &mut command, "")?;
        let mut client = Client::new(self.address.clone(), None)?;
        until(|| {
            let told = client.get(&format!("/v1/links/{LINK}"))?;
            Ok(told["up"]["packets_in"].as_u64() > Some(0))
        })?;
        std::thread::sleep(AROUND);
        Ok(generator)
    }
}

fn topology(links: u32) -> String {
    // The queue is large enough for every delay and rate that the changes set.
    format!(
        "unmatched = \"drop\"\n\
         [ports]\nnear = \"packet:near\"\nfar = \"packet:far\"\n\
         [[link]]\nname = \"{LINK}\"\nmatch = \"in-port=near,proto=udp\"\n\
         rate = \"1gbit\"\ndelay = \"2ms\"\nqueue = \"200000p\"\n\
         [[link]]\nname = \"idle{{n}}\"\ncount = {links}\nbetween = [\"10.128.0.0/16\"]\n\
         match = \"src={{a}}\"\nrate = \"1mbit\"\ndelay = \"20ms\"\n"
    )
}

fn until(mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let began = Instant::now();
    while !done()? {
        if began.elapsed() > TIMEOUT {
            return Err(Error::Failed(
                "the emulator or its traffic did not start".to_owned(),
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
