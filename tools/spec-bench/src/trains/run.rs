//! One row in one round.

use std::fs;
use std::path::Path as FilePath;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longwire_io::net::NetNamespace;
use longwire_testbed::support::Folder;
use longwire_testbed::{Plan, Side};
use longwire_traffic::sockets::{Datagrams, Host, Path, UdpFlow, tcp_flow, udp_flow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};
use serde_json::Value;

use super::{NETWORK_FILE, Setup};
use crate::program;
use longwire::Error;
use longwire::bench::testbed::Testbed;

/// The results of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub tcp_gbit: f64,
    pub tcp_kernel_cores: f64,
    pub tcp_own_cores: f64,
    pub tcp_late_p99_us: f64,
    pub udp_pps: f64,
    pub udp_flows_pps: f64,
}

/// A network of one link without options.
const NETWORK: &str = "[ports]\nnear = \"packet:near\"\nfar = \"packet:far\"\n\n\
    [[link]]\nname = \"link\"\nmatch = \"in-port=near\"\n";

/// Flows of the second flood.
const FLOWS: u32 = 1_000;

/// How long programs may take to start and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures a row once.
pub(super) fn measure(setup: &Setup, time: Duration) -> Result<Measured, Error> {
    let Some(options) = setup.options else {
        let testbed = Testbed::bare()?;
        let mut found = Measured {
            tcp_gbit: tcp(testbed.path(), time)?,
            ..Measured::default()
        };
        floods(testbed.path(), time, &mut found)?;
        return Ok(found);
    };
    let folder = Folder::create()?;
    fs::write(folder.path().join(NETWORK_FILE), NETWORK)?;
    let mut found = Measured::default();
    let run = Run::start(folder.path(), options)?;
    let (before, start) = (run.cpu()?, Instant::now());
    found.tcp_gbit = tcp(run.path(), time)?;
    let (after, seconds) = (run.cpu()?, start.elapsed().as_secs_f64());
    found.tcp_own_cores = (after.own - before.own) / seconds;
    found.tcp_kernel_cores = (after.kernel - before.kernel) / seconds;
    found.tcp_late_p99_us = late_p99(&run.stop()?);
    let run = Run::start(folder.path(), options)?;
    floods(run.path(), time, &mut found)?;
    run.stop()?;
    Ok(found)
}

fn tcp(path: Path<'_>, time: Duration) -> Result<f64, Error> {
    Ok(tcp_flow(path, time, time / 4)?.goodput / 1e9)
}

fn floods(path: Path<'_>, time: Duration, found: &mut Measured) -> Result<(), Error> {
    let flood = |flows| -> Result<f64, Error> {
        let flow = UdpFlow {
            frame_len: 64,
            per_second: 0,
            count: None,
            duration: time,
            patience: Duration::from_millis(200),
            flows,
        };
        let Datagrams { received, .. } = udp_flow(path, flow)?;
        Ok(received as f64 / time.as_secs_f64())
    };
    found.udp_pps = flood(1)?;
    found.udp_flows_pps = flood(FLOWS)?;
    Ok(())
}

/// Returns the 99th percentile of the lateness on the way from near to far: of the first
/// link, or of the port of a network.
fn late_p99(report: &Value) -> f64 {
    let of = |entry: &Value| entry["lateness_us"]["p99"].as_f64();
    let ports = report["ports"].as_array().into_iter().flatten();
    let far = ports.filter(|port| port["name"] == "far").find_map(of);
    far.or_else(|| of(&report["links"][0])).unwrap_or(0.0)
}

/// `longwire exec` with two commands that do nothing.
struct Run {
    program: Child,
    near: NetNamespace,
    far: NetNamespace,
    /// The command whose end ends the run.
    command: u32,
    report: std::path::PathBuf,
}

/// CPU time of a program, in seconds.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    own: f64,
    kernel: f64,
}

impl Run {
    fn start(folder: &FilePath, options: &str) -> Result<Run, Error> {
        let command =
            |side: &str| format!("echo $$ > {side}.new; mv {side}.new {side}; exec sleep 999");
        for side in ["near", "far"] {
            let _ = fs::remove_file(folder.join(side));
        }
        let report = folder.join("report.json");
        let mut program = Command::new(program::path()?);
        program.current_dir(folder).args(["exec", "--quiet"]);
        program.arg("--report").arg(&report);
        program.args(["--peer-wait", "0ms", "--peer", &command("far")]);
        program.args(options.split_whitespace());
        program.args(["--", "sh", "-c", &command("near")]);
        program.stdin(Stdio::null()).stdout(Stdio::null());
        let mut program = program.spawn()?;
        let command = process_of(&folder.join("near"), &mut program)?;
        let peer = process_of(&folder.join("far"), &mut program)?;
        Ok(Run {
            near: NetNamespace::of_process(command)?,
            far: NetNamespace::of_process(peer)?,
            program,
            command,
            report,
        })
    }

    /// From near to far.
    fn path(&self) -> Path<'_> {
        let host = |namespace, side| Host {
            namespace,
            address: Plan::USUAL.v4_of(side),
        };
        Path {
            from: host(&self.near, Side::Near),
            to: host(&self.far, Side::Far),
        }
    }

    /// Returns the CPU time that the program has used (proc_pid_stat(5), fields 14 and 15).
    fn cpu(&self) -> Result<Cpu, Error> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.program.id()))?;
        let (_, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let per_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        // The first field after the name is the third one.
        let mut fields = fields.split(' ').skip(14 - 3);
        let mut next = || -> Option<f64> { fields.next()?.parse().ok() };
        let times = next().zip(next());
        let (own, kernel) = times.ok_or_else(|| Error::Failed(format!("/proc: {stat}")))?;
        Ok(Cpu {
            own: own / per_second as f64,
            kernel: kernel / per_second as f64,
        })
    }

    /// Ends the run; returns its report.
    fn stop(mut self) -> Result<Value, Error> {
        let process = i32::try_from(self.command).unwrap_or(i32::MAX);
        kill(Pid::from_raw(process), Signal::SIGTERM)
            .map_err(|error| Error::Failed(format!("cannot end the run: {error}")))?;
        self.program.wait()?;
        let text = fs::read_to_string(&self.report)?;
        serde_json::from_str(&text).map_err(|error| Error::Failed(format!("a report: {error}")))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // After `stop` there is none; otherwise an error ends the bench.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns the process whose number appears in a file.
fn process_of(file: &FilePath, program: &mut Child) -> Result<u32, Error> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Ok(text) = fs::read_to_string(file)
            && let Ok(process) = text.trim().parse()
        {
            return Ok(process);
        }
        if let Some(status) = program.try_wait()? {
            return Err(Error::Failed(format!("longwire exec ended: {status}")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(Error::Failed("longwire exec starts no command".to_owned()))
}
