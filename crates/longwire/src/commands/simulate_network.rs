//! `longwire simulate FILE.toml`, and `simulate IN OUT` with a scenario: simulates a network between
//! captures, in virtual time.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use longwire_capture::{CaptureFormat, same_file};
use longwire_engine::Nanos;
use longwire_network::{NetworkReport, Numbered};
use longwire_runtime::FileLoader;
use longwire_runtime::deciding::Simulation;
use longwire_runtime::host::cores;
use longwire_topology::PairOptions;

use super::run_network::{self, names_of, port_names_of};
use super::simulate::{SimulateArgs, check_log, finish_link, remarks_on_directions};
use super::topologies::{self, ReadTopology};
use crate::progress::StepsOnStderr;
use crate::report::words::count_of;
use crate::report::{Ending, ReportStream, check_file, on_stuck_plugin, start};
use crate::signals::stop_flag;
use crate::simulate::{Direction, Inputs, Outputs, PORTS, PortFile, Script, VirtualRun, Ways};
use crate::{Error, Globals};

/// Simulates the network of a file.
///
/// # Errors
/// If the file is invalid, a capture cannot be opened, or an output cannot be created.
pub fn run(file: &Path, args: &SimulateArgs, globals: &Globals) -> Result<ExitCode, Error> {
    refuse_options_of_one_link(args)?;
    let (topology, announcement) = topologies::read(file, args.scenario.as_deref(), globals)?;
    let named = |texts: &[String], option: &str| {
        let files = texts.iter();
        files
            .map(|text| PortFile::parse(text, option, &topology))
            .collect::<Result<Vec<_>, _>>()
    };
    let (ins, outs) = (named(&args.inputs, "--in")?, named(&args.outputs, "--out")?);
    check_files(&ins, &outs, args)?;
    let place = ReportStream::beside(outs.iter().map(|out| out.path.as_str()));
    let stop = stop_flag()?;
    let mut inputs = Inputs::open(&ins, &topology, &stop)?;
    let outputs = Outputs::create(&outs, &topology)?;
    let job = Job {
        args,
        globals,
        place,
        stop: &stop,
    };
    let report = job.simulate((topology, announcement), &mut inputs, outputs)?;
    run_network::finish(None, &report, &args.report, globals, place)
}

/// Simulates a single link that the scenario changes, as `run` and `exec` build it.
///
/// # Errors
/// If the scenario is invalid, the capture cannot be opened, or `output` cannot be created.
pub(super) fn run_link(
    output: &str,
    ways: Ways,
    args: &SimulateArgs,
    globals: &Globals,
) -> Result<ExitCode, Error> {
    let ports = PORTS.map(|name| (name, "null"));
    let (options, scenario) = (PairOptions::default(), args.scenario.as_deref());
    let read = topologies::pair(ports, &args.link, options, scenario, globals)?;
    let stop = stop_flag()?;
    let mut inputs = Inputs::of_pair(&args.input, args.interface.as_deref(), ways, &stop)?;
    let outputs = Outputs::of_pair(&[output])?;
    let job = Job {
        args,
        globals,
        place: ReportStream::beside([output]),
        stop: &stop,
    };
    let report = job.simulate(read, &mut inputs, outputs)?;
    let ending = Ending {
        place: job.place,
        changes: report.changes.clone(),
        ..Ending::of(&report.run)
    };
    finish_link(&report, &ending, &inputs, args, globals)
}

/// The options of a simulation.
struct Job<'a> {
    args: &'a SimulateArgs,
    globals: &'a Globals,
    place: ReportStream,
    /// Set by a signal handler.
    stop: &'a AtomicBool,
}

impl Job<'_> {
    /// Simulates a network, and returns its report.
    fn simulate(
        &self,
        (topology, mut announcement): ReadTopology,
        inputs: &mut Inputs<'_>,
        outputs: Outputs,
    ) -> Result<NetworkReport, Error> {
        let Job { args, globals, .. } = *self;
        let seed = topologies::seed(&topology, args.seed.seed)?;
        let faults = args.link.faults.clone();
        let watch = StepsOnStderr::start(globals);
        watch.steps().begin("numbering links", None);
        let network = Numbered::new(topology);
        run_network::refuse_unmeetable(&network, &args.report, true)?;
        let recorder = args.recorder((port_names_of(&network), names_of(&network)))?;
        let first = inputs.first_stamp()?.unwrap_or(Nanos::ZERO);
        let epoch = args.epoch.map_or(first, Nanos::from_nanos);
        let loader = FileLoader::reporting_to(&faults);
        let mut parts = network.parts_in_steps(&loader, watch.steps(), self.stop)?;
        parts.sharding = network.shard_plan(args.shards, cores()).sharding();
        watch.steps().begin("starting", None);
        run_network::describe_link(&mut announcement, &network, &parts, globals);
        let ports: Vec<&str> = port_names_of(&network).collect();
        let started = Instant::now();
        let simulation =
            Simulation::new(&ports, parts, seed, epoch, recorder).map_err(Error::failed)?;
        drop(watch);
        announcement.print(globals);
        let mut notes = announcement.warnings;
        let script = Script::new(&network, epoch, &faults);
        let mut run = VirtualRun::new(simulation, outputs, Some(script), &faults, self.stop);
        on_stuck_plugin(seed, &args.report, globals, self.place);
        let ended = run.read(inputs, globals);
        let changes = run.script().map(|script| script.made().clone());
        let interrupted = "interrupted; the outputs have the frames released so far";
        let mut report = run.finish(ended, interrupted);
        report.duration_s = started.elapsed().as_secs_f64();
        let mut remarks = remarks_on_directions(&report.links, inputs.unassigned());
        if report.error.is_none() && report.in_flight > 0 {
            remarks.push(format!(
                "{} still queued on stopped links when the captures ended",
                count_of(report.in_flight, "frame")
            ));
        }
        remarks.extend(inputs.records().1);
        start::warn(&remarks, globals);
        notes.extend(remarks);
        report.notes.extend(notes);
        let mut report = NetworkReport::new(report, &network);
        report.changes = changes.unwrap_or_default();
        Ok(report)
    }
}

/// Refuses single-link options, which would have no effect on a network.
fn refuse_options_of_one_link(args: &SimulateArgs) -> Result<(), Error> {
    Error::refuse_first(&[
        (
            !args.link.is_empty(),
            "link options do not apply to a topology; write them under [defaults] or [[link]]",
        ),
        (
            !args.near.is_empty(),
            "--near is for a single link; in a topology, name the port of a capture with --in \
             PORT=CAPTURE",
        ),
        (
            args.interface.is_some(),
            "--interface is for a single link; with a topology, --in CAPTURE maps interfaces to \
             ports by name",
        ),
        (
            args.direction != Direction::default(),
            "--link is for a single link; in a topology, matchers select link and direction",
        ),
        (args.inputs.is_empty(), "no input; give --in PORT=CAPTURE"),
    ])
}

/// Refuses outputs that would overwrite an input or each other.
fn check_files(ins: &[PortFile], outs: &[PortFile], args: &SimulateArgs) -> Result<(), Error> {
    let usage = |message: String| Err(Error::usage(message));
    if ins.iter().filter(|file| file.path == "-").count() > 1 {
        return usage("--in - (stdin) is given twice, but can be read only once".to_owned());
    }
    for out in outs {
        if CaptureFormat::of(&out.path).is_none() {
            return usage(format!(
                "--out '{}': name must end in .pcap or .pcapng; - is stdout",
                out.path
            ));
        }
    }
    let log = args.log.as_ref().map(|log| log.display().to_string());
    check_log(args)?;
    let files = ins.iter().chain(outs).map(|file| file.path.as_str());
    check_file(args.report.report.as_deref(), files)?;
    let written: Vec<&str> = outs.iter().map(|out| out.path.as_str()).collect();
    let written: Vec<&str> = written.into_iter().chain(log.as_deref()).collect();
    for (place, path) in written.iter().enumerate() {
        let same = |other: &str| *path == other || same_file(path, other);
        if *path != "-" && ins.iter().any(|input| same(&input.path)) {
            return usage(format!(
                "output '{path}' is also an input; choose another name"
            ));
        }
        if written[..place].iter().any(|other| same(other)) {
            return usage(format!(
                "output '{path}' is given twice; choose another name"
            ));
        }
    }
    Ok(())
}
