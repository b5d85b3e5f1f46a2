//! Options of the commands that send frames at scheduled times: `replay` and `generate`.

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use longwire_engine::{Bytes, LinkSpec, Nanos};
use longwire_io::port::options::{OpenOptions, Purpose};
use longwire_io::port::registry;
use longwire_runtime::feed::trace::Moment;
use longwire_runtime::record::Epoch;
use longwire_runtime::replay::{ReplayConfig, ReplayOutput, Start};
use longwire_runtime::{DIRECTIONS, LinkSetup, Recorder, RunConfig};
use longwire_units::Date;

use super::{ControlArgs, DuplexArgs, LaunchBy, RecordArgs, ReportArgs, SeedArgs, TimingArgs};
use crate::report::{Announcement, RunKind, check_file};
use crate::simulate::PORTS;
use crate::{Error, Globals};

/// Option for the link's rate where `--rate` is the sending rate.
const LINK_RATE: &str = "link-rate";

/// Help of `--memory`.
const MEMORY_HELP: &str = "\
Maximum memory for queued frames, per output, such as 512mb; default: derived from rate, delay, \
queue limit and --read-ahead";

/// Outputs, their links, and the accuracy of sending.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sending")]
#[command(mut_arg("rate", |arg| arg.long(LINK_RATE)))]
#[command(mut_arg("up-rate", |arg| arg.help("--link-rate for direction up")))]
#[command(mut_arg("down-rate", |arg| arg.help("--link-rate for direction down")))]
#[command(mut_arg("memory", |arg| arg.help(MEMORY_HELP)))]
pub struct PumpArgs {
    /// Port to send to; repeatable
    #[arg(long, value_name = "PORT", required = true, long_help = TO_HELP)]
    pub to: Vec<String>,

    /// Start at this time instead of immediately: +10s, 2026-11-20T17:30:00Z, or Unix seconds;
    /// machines with synchronised clocks start together
    #[arg(long, value_name = "TIME")]
    pub start_at: Option<StartAt>,

    /// Maximum bytes of frames queued ahead of their send times, per output
    #[arg(long, value_name = "SIZE", default_value = "32mb")]
    pub read_ahead: Bytes,

    /// Component that holds frames handed over early until they are due
    #[arg(long, value_name = "WHO", value_enum, default_value_t)]
    pub launch: LaunchBy,

    /// Request a send stamp for every Nth frame from the kernel or device; 0: none
    #[arg(long, value_name = "N", default_value_t = ReplayConfig::STAMP_EVERY)]
    pub stamp_every: u32,

    /// Waiting, memory and lateness.
    #[command(flatten)]
    pub timing: TimingArgs,

    /// The link before each output.
    #[command(flatten)]
    pub link: DuplexArgs,

    /// The seed.
    #[command(flatten)]
    pub seed: SeedArgs,

    /// Recordings.
    #[command(flatten)]
    pub record: RecordArgs,

    /// The control API.
    #[command(flatten)]
    pub control: ControlArgs,

    /// The report.
    #[command(flatten)]
    pub report: ReportArgs,
}

const TO_HELP: &str = "\
Port to send to: an interface name, or a port from the list below. Each --to is one output; all \
outputs share one frame order. pcap:FILE is written in virtual time";

/// Start time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// After this duration.
    In(Nanos),
    /// At this Unix time.
    At(Nanos),
}

impl FromStr for StartAt {
    type Err = String;

    fn from_str(text: &str) -> Result<StartAt, String> {
        if let Some(time) = text.strip_prefix('+') {
            let time: Result<Nanos, _> = time.parse();
            return time.map(StartAt::In).map_err(|error| error.to_string());
        }
        if let Some(date) = Date::parse(text) {
            return Ok(StartAt::At(Nanos::from_nanos(date.nanos)));
        }
        match format!("@{text}").parse() {
            Ok(Moment::At(time)) => Ok(StartAt::At(time)),
            _ => Err(format!(
                "'{text}' is not a time; write +10s, 2026-11-20T17:30:00Z or Unix seconds"
            )),
        }
    }
}

impl PumpArgs {
    /// Checks that the report can be written without overwriting a file of the run: a port, one of
    /// `more_ports`, the log or one of `inputs`.
    ///
    /// # Errors
    /// If it cannot be written, or would overwrite a file of the run.
    pub fn check_report<'a>(
        &'a self,
        more_ports: impl IntoIterator<Item = &'a str>,
        inputs: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Error> {
        let log = self.record.log.as_deref().and_then(Path::to_str);
        let ports = self.to.iter().map(String::as_str).chain(more_ports);
        let files = ports.flat_map(registry::files).chain(log).chain(inputs);
        check_file(self.report.report.as_deref(), files)
    }

    /// Opens the ports, each with its link. With `ways`, there are two outputs, one per direction
    /// of a conversation; with `timed`, frames have departure times.
    ///
    /// # Errors
    /// If a port cannot be opened, or link options conflict.
    pub fn outputs(&self, ways: bool, timed: bool) -> Result<Vec<ReplayOutput>, Error> {
        let options = OpenOptions {
            purpose: Purpose::Send,
            launch: self.launch.launch(timed)?,
            ..OpenOptions::default()
        };
        let outputs = self.to.iter().zip(self.links(ways)?).map(|(to, link)| {
            let port = registry::open(to, &options)?;
            self.launch.check(to, &port)?;
            Ok(ReplayOutput {
                port,
                link,
                sent: None,
                cells: None,
            })
        });
        outputs.collect()
    }

    /// Returns the link of each output; see [`PumpArgs::outputs`] for `ways`.
    ///
    /// # Errors
    /// If link options conflict, or apply to a direction without an output.
    pub fn links(&self, ways: bool) -> Result<Vec<LinkSetup>, Error> {
        if let Some(option) = self.link.of_down().filter(|_| !ways) {
            return Err(Error::usage(format!(
                "{option}: all outputs carry direction up; only replay --split has an output for \
                 direction down"
            )));
        }
        let names = self.names(ways).into_iter().enumerate();
        let links = names.map(|(index, name)| {
            let config = if ways && index == 1 {
                self.link.link(|duplex| duplex.down)
            } else {
                self.link.link(|duplex| duplex.up)
            };
            Ok(LinkSetup::new(name, config?))
        });
        links.collect()
    }

    /// Returns the link options of each output; see [`PumpArgs::outputs`] for `ways`.
    ///
    /// # Errors
    /// If link options conflict.
    pub fn specs(&self, ways: bool) -> Result<Vec<LinkSpec>, Error> {
        let link = self.link.specs()?;
        let mut specs = vec![link.up; self.to.len()];
        if let Some(second) = specs.get_mut(1).filter(|_| ways) {
            *second = link.down;
        }
        Ok(specs)
    }

    /// Refuses emulated links at top speed.
    ///
    /// # Errors
    /// If `topspeed` is set and a link is emulated.
    pub fn refuse_links_at(&self, topspeed: bool) -> Result<(), Error> {
        if topspeed && !self.link.is_empty() {
            return Err(Error::usage(
                "--topspeed gives frames no arrival times, which a link needs; use --rate",
            ));
        }
        Ok(())
    }

    /// Describes the outputs and any emulated links.
    pub fn announce<'a>(
        &self,
        links: impl IntoIterator<Item = &'a LinkSetup>,
        globals: &Globals,
    ) -> Announcement {
        let links = if self.link.is_empty() {
            Announcement::default()
        } else {
            Announcement::of_links(links, globals)
        };
        let mut announcement = Announcement::sending(&self.to, links);
        announcement.warnings.extend(globals.doubts.iter().cloned());
        announcement
    }

    /// Refuses requirements that no run with these outputs can meet; see [`PumpArgs::outputs`] for
    /// `ways`.
    ///
    /// # Errors
    /// [`Error::Usage`], naming each unmeetable condition.
    pub fn refuse_unmeetable(
        &self,
        ways: bool,
        replays: bool,
        receives: bool,
    ) -> Result<(), Error> {
        let names = self.names(ways);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let kind = RunKind {
            is_fixed: true,
            replays,
            receives,
        };
        let ports: &[&str] = if replays { &[] } else { &PORTS };
        self.report.refuse_unmeetable(ports, &names, kind)
    }

    /// Returns the recorder for the outputs' links if recording is enabled.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn recorder(&self, outputs: &[ReplayOutput]) -> Result<Option<Box<dyn Recorder>>, Error> {
        let names = outputs.iter().map(|output| output.link.name.as_str());
        self.record.recorder((names.clone(), names), &self.report)
    }

    /// Returns the names of the outputs in the report.
    fn names(&self, ways: bool) -> Vec<String> {
        match self.to.len() {
            2 if ways => DIRECTIONS.map(str::to_owned).into(),
            1 => vec!["out".to_owned()],
            many => (1..=many).map(|number| format!("out{number}")).collect(),
        }
    }

    /// Returns the runtime's configuration.
    pub fn config(&self) -> RunConfig {
        self.timing.config(self.seed.seed, &self.link.faults)
    }

    /// Returns the configuration of the replay.
    pub fn replay(&self) -> ReplayConfig {
        ReplayConfig {
            read_ahead: self.read_ahead,
            start: match self.start_at {
                None => Start::Soon,
                Some(StartAt::At(wall)) => Start::At(wall),
                Some(StartAt::In(time)) => Start::At(Epoch::now().wall.saturating_add(time)),
            },
            stamp_every: self.stamp_every,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_a_span_a_date_or_seconds() {
        let at = |nanos| Ok(StartAt::At(Nanos::from_nanos(nanos)));
        assert_eq!("+10s".parse(), Ok(StartAt::In(Nanos::from_secs(10))));
        assert_eq!("1970-01-01T00:00:02Z".parse(), at(2_000_000_000));
        assert_eq!("1763650000".parse(), at(1_763_650_000_000_000_000));
        assert_eq!("5.25".parse(), at(5_250_000_000));
        for text in ["", "+", "soon", "12:00", "-5", "1e9", "5."] {
            assert!(text.parse::<StartAt>().is_err(), "{text}");
        }
    }
}
