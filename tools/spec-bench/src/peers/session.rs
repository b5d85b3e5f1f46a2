//! Two hosts with an emulator between them: `longwire exec`, mahimahi's mm-delay, or `rattan link`,
//! each started as its users start it.
//!
//! The peers run a command behind the link, and the namespace that they are started in is the other
//! host. That is a namespace of the bench, so their devices and firewall rules end with it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use longwire::Error;
use longwire::bench::testbed::Testbed;
use longwire::report::artifacts::is_lost;
use longwire_io::net::{NetNamespace, link_up, sysctl};
use longwire_testbed::support::Folder;
use longwire_traffic::sockets::{Host, Path as FlowPath};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::light::resident;
use crate::program::{BenchProgram, ExecRun, failed, run_time_of};

/// An emulator of a live link, or none.
#[derive(Clone, Debug)]
pub enum Emulator {
    /// A bare veth pair.
    Bare,
    Longwire(PathBuf),
    /// mm-delay, installed setuid root.
    Mahimahi(PathBuf),
    Rattan(PathBuf),
}

/// An ordinary user and group without files, as mahimahi refuses to be started by root.
const ORDINARY: u32 = 65_534;

/// Two hosts with a running emulator between them.
pub enum Session {
    Bare(Testbed),
    Longwire { run: ExecRun, _folder: Folder },
    Peer(PeerRun),
}

impl Emulator {
    /// Starts the emulator with a delay in each direction and no other option. The bare pair has no
    /// delay.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(&self, delay: Duration) -> Result<Session, Error> {
        match self {
            Emulator::Bare => Ok(Session::Bare(Testbed::bare()?)),
            Emulator::Longwire(program) => {
                let folder = Folder::create()?;
                let options = format!("--delay {}ms", delay.as_millis());
                Ok(Session::Longwire {
                    run: ExecRun::start(program, folder.path(), &options)?,
                    _folder: folder,
                })
            }
            peer => PeerRun::start(peer, delay).map(Session::Peer),
        }
    }

    /// Returns the time from the start of the emulator, with `true` as its command, to its end.
    /// Without an emulator, the command runs in a new network namespace.
    ///
    /// # Errors
    /// If it fails.
    pub fn start_and_end(&self) -> Result<Duration, Error> {
        let namespace = peer_namespace()?;
        let mut command = self.command(Duration::ZERO, &["true"]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        let start = Instant::now();
        let output = match self {
            Emulator::Longwire(_) => command.output(),
            Emulator::Bare => NetNamespace::new()?.run(|| command.output())?,
            _ => namespace.run(|| command.output())?,
        };
        let took = start.elapsed();
        let output = output?;
        if output.status.success() {
            return Ok(took);
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let (name, status) = (self.name(), output.status);
        Err(failed(format!("{name} failed, {status}: {}", words.trim())))
    }

    /// Returns the command line with a delay in each direction, and a command behind the link.
    fn command(&self, delay: Duration, behind: &[&str]) -> Command {
        let millis = delay.as_millis();
        let (program, options) = match self {
            Emulator::Bare => (Path::new("env"), String::new()),
            Emulator::Longwire(program) => {
                (&**program, format!("exec --quiet --delay {millis}ms --"))
            }
            Emulator::Mahimahi(program) => (&**program, millis.to_string()),
            Emulator::Rattan(program) => {
                let delays = format!("--uplink-delay {millis}ms --downlink-delay {millis}ms");
                (&**program, format!("link {delays} --"))
            }
        };
        let mut command = Command::new(program);
        command.args(options.split_whitespace()).args(behind);
        if let Emulator::Mahimahi(_) = self {
            command.uid(ORDINARY).gid(ORDINARY);
        }
        command
    }

    fn name(&self) -> &'static str {
        match self {
            Emulator::Bare => "the bare pair",
            Emulator::Longwire(_) => "longwire exec",
            Emulator::Mahimahi(_) => "mm-delay",
            Emulator::Rattan(_) => "rattan",
        }
    }
}

/// Returns a new namespace in which the peers can be started.
fn peer_namespace() -> Result<NetNamespace, Error> {
    let namespace = NetNamespace::new()?;
    namespace.run(|| {
        link_up("lo")?;
        // mahimahi requires it, as its users' hosts route between the shell and the network.
        sysctl::set("ipv4/ip_forward", "1")
    })??;
    Ok(namespace)
}

impl Session {
    /// Returns the path from the host of the command to the other one.
    pub fn path(&self) -> FlowPath<'_> {
        match self {
            Session::Bare(testbed) => testbed.path(),
            Session::Longwire { run, .. } => run.path(),
            Session::Peer(run) => run.path(),
        }
    }

    /// Returns the CPU time of the emulator's processes in seconds, and their resident memory in
    /// bytes, in which shared pages count for each process.
    ///
    /// # Errors
    /// If the emulator has ended.
    pub fn usage(&self) -> Result<(f64, u64), Error> {
        let processes = match self {
            Session::Bare(_) => Vec::new(),
            // The children of `longwire exec` are only the commands.
            Session::Longwire { run, .. } => return Ok((run.run_time()?, run.resident())),
            Session::Peer(run) => with_descendants(run.program.id())?,
        };
        let mut total = (0.0, 0);
        for process in processes {
            total.0 += run_time_of(process)?;
            total.1 += resident(&process.to_string());
        }
        Ok(total)
    }

    /// Ends the emulator; returns the number of packets that its report counts as lost. Peers have
    /// no report.
    ///
    /// # Errors
    /// If it cannot be ended.
    pub fn stop(self) -> Result<u64, Error> {
        match self {
            Session::Bare(_) => Ok(0),
            Session::Longwire { run, _folder } => Ok(reported_losses(&run.stop()?)),
            Session::Peer(run) => run.stop().map(|()| 0),
        }
    }
}

/// Returns the number of packets that a report counts as dropped or lost.
fn reported_losses(report: &Value) -> u64 {
    let list = |key: &str| report[key].as_array().into_iter().flatten();
    let counts = |value: &Value, lost: fn(&str) -> bool| -> u64 {
        let kinds = value.as_object().into_iter().flatten();
        let lost = kinds.filter(|(kind, _)| lost(kind));
        lost.filter_map(|(_, count)| count.as_u64()).sum()
    };
    let drops = list("links").map(|link| counts(&link["drops"], |_| true));
    let artifacts = list("ports").map(|port| counts(&port["artifacts"], is_lost));
    drops.sum::<u64>() + artifacts.sum::<u64>()
}

/// Returns a process and all its descendants.
fn with_descendants(process: u32) -> Result<Vec<u32>, Error> {
    let mut processes = vec![process];
    let mut next = 0;
    while let Some(process) = processes.get(next) {
        next += 1;
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            // A thread may have ended in the meantime.
            let children = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
            processes.extend(
                children
                    .split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    Ok(processes)
}

/// A running peer. Fields are dropped in this order, so the command ends before the peer.
pub struct PeerRun {
    command: Sleeper,
    program: BenchProgram,
    near: NetNamespace,
    near_address: Ipv4Addr,
    far: NetNamespace,
    far_address: Ipv4Addr,
}

/// Command behind the link: announces its PID and the other host's address, which both peers pass in
/// a variable.
const ANNOUNCE: &str = "echo ready $$ $MAHIMAHI_BASE $RATTAN_BASE >&2; exec sleep 999";

impl PeerRun {
    fn start(peer: &Emulator, delay: Duration) -> Result<PeerRun, Error> {
        let far = peer_namespace()?;
        let mut command = peer.command(delay, &["sh", "-c", ANNOUNCE]);
        let program = BenchProgram::start(peer.name(), Some(&far), &mut command, "ready")?;
        let (command, far_address) = announced(program.announcement())?;
        let near = NetNamespace::of_process(command)?;
        Ok(PeerRun {
            near_address: near.run(|| own_address(far_address))??,
            command: Sleeper(command),
            program,
            near,
            far,
            far_address,
        })
    }

    fn path(&self) -> FlowPath<'_> {
        let host = |namespace, address| Host { namespace, address };
        FlowPath {
            from: host(&self.near, self.near_address),
            to: host(&self.far, self.far_address),
        }
    }

    /// Ends the command, after which the peer removes its devices and ends.
    fn stop(self) -> Result<(), Error> {
        drop(self.command);
        self.program.wait()
    }
}

/// Reads the PID and the address from the line of [`ANNOUNCE`].
fn announced(line: &str) -> Result<(u32, Ipv4Addr), Error> {
    let mut words = line.split_whitespace().skip(1);
    let process = words.next().and_then(|word| word.parse().ok());
    let address = words.next().and_then(|word| word.parse().ok());
    let announced = process.zip(address);
    announced.ok_or_else(|| failed(format!("a peer's command announced no address: {line}")))
}

/// Returns the address from which the calling thread's namespace reaches `other`.
fn own_address(other: Ipv4Addr) -> Result<Ipv4Addr, Error> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((other, 9))?;
    match socket.local_addr()? {
        SocketAddr::V4(address) => Ok(*address.ip()),
        SocketAddr::V6(address) => Err(failed(format!("not an IPv4 address: {address}"))),
    }
}

/// A process that only sleeps, and is ended on drop.
struct Sleeper(u32);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.cast_signed()), Signal::SIGTERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_both_peers_are_read() {
        // `sh` leaves out the variable that is not set.
        let mahimahi = announced("ready 27489 100.64.0.1").expect("both words");
        assert_eq!(mahimahi, (27_489, Ipv4Addr::new(100, 64, 0, 1)));
        let rattan = announced("ready 27518 10.2.1.1\n").expect("both words");
        assert_eq!(rattan, (27_518, Ipv4Addr::new(10, 2, 1, 1)));
        let error = announced("ready 27518")
            .expect_err("no address")
            .to_string();
        assert!(error.contains("announced no address"), "{error}");
    }

    #[test]
    fn peers_are_started_as_their_users_start_them() {
        let delay = Duration::from_millis(20);
        let line = |peer: Emulator| {
            let command = peer.command(delay, &["true"]);
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        for (peer, expected) in [
            (Emulator::Mahimahi("mm-delay".into()), "mm-delay 20 true"),
            (
                Emulator::Rattan("rattan".into()),
                "rattan link --uplink-delay 20ms --downlink-delay 20ms -- true",
            ),
            (
                Emulator::Longwire("longwire".into()),
                "longwire exec --quiet --delay 20ms -- true",
            ),
        ] {
            assert_eq!(line(peer), expected);
        }
    }

    #[test]
    fn late_packets_are_not_losses() {
        let report = serde_json::json!({
            "links": [{"drops": {"loss": 1, "queue_full": 2}}, {"drops": {"loss": 0}}],
            "ports": [{"artifacts": {"ring_full": 40, "late": 999}}],
        });
        assert_eq!(reported_losses(&report), 43);
    }

    #[test]
    fn descendants_include_grandchildren() {
        let mut command = Command::new("sh");
        command.args(["-c", "sh -c 'echo ready >&2; sleep 60; true'; true"]);
        let program = BenchProgram::start("the shell", None, &mut command, "ready");
        let program = program.expect("it is ready");
        let found = with_descendants(program.id()).expect("it runs");
        assert!(found.len() >= 2, "{found:?}");
        assert_eq!(found[0], program.id());
        drop(found[1..].iter().map(|id| Sleeper(*id)).collect::<Vec<_>>());
    }
}
