//! `longwire run FILE.toml --host NAME`: runs one host of a multi-host network.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use longwire_engine::{Loader, Nanos};
use longwire_hosts::{
    ClockShift, HostEvent, HostsReader, HostsReport, Identity, Key, NetworkDigest, PeerEvent,
    PeerSetup, Transport, TransportSetup,
};
use longwire_io::port::registry::Port;
use longwire_network::NetworkReport;
use longwire_packet::bridge::PortIndex;
use longwire_runtime::clock::monotonic_now;
use longwire_runtime::deciding::{NetworkHandle, NetworkParts, RemoteParts};
use longwire_runtime::record::Epoch;
use longwire_runtime::{FileLoader, RunConfig};
use longwire_topology::{Cluster, Topology};
use longwire_units::count_of;

use crate::report::{Requirement, start};
use crate::table::joined;
use crate::{Error, Globals};

/// Environment variable with which tests shift a host's wall clock: `MS` is an offset, `MS,MS@MS`
/// adds a step and its time.
const SHIFT_VARIABLE: &str = "LONGWIRE_TEST_CLOCK_SHIFT";

/// Poll interval for events of other hosts.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Time after which the program names unresponsive hosts.
const NAMED_AFTER: Nanos = Nanos::from_secs(2);

/// One host of a multi-host network.
pub(super) struct HostRun {
    transport: Transport,
    pub others: Others,
    /// Remote parts of the network; taken by [`HostRun::connect`].
    parts: Option<RemoteParts>,
    /// Epoch of the run, identical on all hosts; set by [`HostRun::wait_for_epoch`].
    epoch: Epoch,
}

#[derive(Clone)]
pub(super) struct Others {
    names: Vec<String>,
    /// Ports, by host.
    ports: Vec<Vec<PortIndex>>,
    /// Whether each host is reachable; updated while the network runs.
    reachable: Arc<[AtomicBool]>,
}

/// Returns the index of the host named by `--host`; `None` if the file has no hosts.
///
/// # Errors
/// If the file has hosts but `--host` is missing or unknown, or if `--host` is given for a file
/// without hosts.
pub(super) fn host_of(topology: &Topology, host: Option<&str>) -> Result<Option<usize>, Error> {
    let names = |cluster: &Cluster| joined(cluster.hosts.iter().map(|host| &host.name), ", ");
    match (&topology.cluster, host) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::usage("--host: the topology has no [[host]]")),
        (Some(cluster), None) => Err(Error::usage(format!(
            "the topology has several hosts; add --host NAME, one of {}",
            names(cluster)
        ))),
        (Some(cluster), Some(name)) => cluster.host_named(name).map(Some).ok_or_else(|| {
            let names = names(cluster);
            Error::usage(format!("--host: unknown host '{name}'; hosts are {names}"))
        }),
    }
}

impl HostRun {
    /// Connects to the other hosts.
    ///
    /// # Errors
    /// If the key cannot be read, or the socket cannot be opened.
    pub fn start(
        topology: &Topology,
        (index, seed): (usize, u64),
        key: Option<&Path>,
    ) -> Result<HostRun, Error> {
        let cluster = topology.cluster.as_ref();
        let cluster = cluster.unwrap_or_else(|| unreachable!("not a network of hosts"));
        let named = cluster.key.as_ref();
        let named = || named.map(|key| key.as_deref().map_err(Error::usage));
        let Some(key) = key.map(Ok).or_else(named).transpose()? else {
            return Err(Error::usage(
                "no key; write [underlay] key = \"FILE\", and create FILE with `longwire key FILE`",
            ));
        };
        let key = Key::read(key).map_err(Error::usage)?;
        let setup = setup(topology, cluster, (index, seed), key)?;
        let others = Others::of(cluster, index);
        let place = |host: usize| host - usize::from(host > index);
        let exits = cluster.owners.iter();
        let exits = exits.map(|owner| (*owner != index).then(|| place(*owner)));
        let (transport, parts) = Transport::start(setup, exits.collect()).map_err(Error::failed)?;
        Ok(HostRun {
            transport,
            others,
            parts: Some(parts),
            epoch: Epoch::now(),
        })
    }

    /// Waits until the hosts agree on an epoch and it arrives. Discards earlier frames, which are
    /// not part of the run.
    ///
    /// # Errors
    /// If another host runs a different network, or `stop` is set.
    pub fn wait_for_epoch(
        &mut self,
        ports: &mut [(String, Port)],
        stop: &AtomicBool,
        globals: &Globals,
    ) -> Result<(), Error> {
        let started = monotonic_now();
        let (mut has_named, mut discarded) = (false, 0);
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::failed("interrupted before all hosts were connected"));
            }
            self.others.note_all(&self.transport.events())?;
            let now = monotonic_now();
            for (_, port) in ports.iter_mut() {
                discarded += port.discard_waiting(now);
            }
            let mut until = LOOK_EVERY;
            if let Some(epoch) = self.transport.epoch() {
                let left = epoch.monotonic.saturating_sub(now);
                if left == Nanos::ZERO {
                    self.epoch = epoch;
                    break;
                }
                until = until.min(Duration::from_nanos(left.as_nanos()));
            }
            if !has_named && now.saturating_sub(started) > NAMED_AFTER {
                has_named = true;
                start::note(&longwire_hosts::waiting(&self.transport.report()), globals);
            }
            std::thread::sleep(until);
        }
        if discarded > 0 {
            let frames = count_of(discarded, "frame");
            let note = format!("discarded {frames} that arrived before the run started");
            start::note(&note, globals);
        }
        Ok(())
    }

    /// Refuses time bounds tighter than the hosts' clock uncertainty.
    ///
    /// # Errors
    /// [`Error::Usage`], naming each such bound with its host.
    pub fn refuse_uncertain(&self, required: &Requirement) -> Result<(), Error> {
        let report = self.transport.report();
        let peers = report.peers.iter().filter(|peer| peer.connected);
        let Some(worst) = peers.max_by_key(|peer| peer.clock_uncertainty_ns) else {
            return Ok(());
        };
        let uncertainty = Nanos::from_nanos(worst.clock_uncertainty_ns);
        let finer = required.bounds_below(uncertainty);
        if finer.is_empty() {
            return Ok(());
        }
        Err(Error::usage(format!(
            "--require {}: below the clock uncertainty of {uncertainty}, half of the round trip \
             to host '{}'",
            finer.join(","),
            worst.name
        )))
    }

    /// Connects the network to the other hosts.
    pub fn connect(&mut self, parts: &mut NetworkParts, config: &mut RunConfig) {
        parts.remote = self.parts.take();
        config.epoch = Some(self.epoch);
    }

    /// Watches the other hosts, and removes the ports of a host that goes away.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(self, handle: NetworkHandle) -> Result<HostWatch, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let reader = self.transport.reader();
        let thread = std::thread::Builder::new().name("longwire-watch".to_owned());
        let thread = thread.spawn(move || self.run(&handle, &stopped));
        let thread = thread.map_err(Error::failed)?;
        Ok(HostWatch {
            stop,
            reader,
            thread,
        })
    }

    fn run(self, handle: &NetworkHandle, stop: &AtomicBool) -> (HostsReport, Vec<String>) {
        let mut notes = Vec::new();
        for (peer, answers) in self.others.reachable.iter().enumerate() {
            if !answers.load(Ordering::Relaxed) {
                self.set_reachable(peer, false, handle);
            }
        }
        while !stop.load(Ordering::Relaxed) {
            for event in self.transport.events() {
                if let Some((peer, answers)) = self.others.note(&event) {
                    self.set_reachable(peer, answers, handle);
                }
                notes.extend(self.sentence(&event));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        (self.transport.stop(), notes)
    }

    fn set_reachable(&self, peer: usize, is_reachable: bool, handle: &NetworkHandle) {
        let ports = self.others.ports[peer].clone();
        handle.order(
            None,
            Box::new(move |core, _| {
                for port in ports {
                    core.set_reachable(port, is_reachable);
                }
            }),
        );
    }

    /// Formats an event as a report note.
    fn sentence(&self, event: &HostEvent) -> Option<String> {
        let at = event.at.saturating_sub(self.epoch.monotonic).as_secs_f64();
        let who = match event.peer {
            Some(peer) => format!("host '{}'", self.others.names[peer]),
            None => "this host".to_owned(),
        };
        // Connections made during startup precede the epoch.
        if matches!(event.event, PeerEvent::Connected { .. }) && event.at <= self.epoch.monotonic {
            return None;
        }
        Some(format!("at {at:.3} s: {who} {}", event.event))
    }
}

impl Others {
    /// Returns whether the port's host is reachable.
    pub fn has_port(&self, port: PortIndex) -> bool {
        let mut others = self.ports.iter().zip(self.reachable.iter());
        let owner = others.find(|(ports, _)| ports.contains(&port));
        owner.is_none_or(|(_, answers)| answers.load(Ordering::Relaxed))
    }

    /// Returns whether any host is reachable.
    pub fn any(&self) -> bool {
        let mut all = self.reachable.iter();
        all.any(|answers| answers.load(Ordering::Relaxed))
    }

    /// Records events before the start.
    ///
    /// # Errors
    /// If a host runs a different network.
    fn note_all(&self, events: &[HostEvent]) -> Result<(), Error> {
        for event in events {
            self.note(event);
            if let (PeerEvent::OtherNetwork, Some(peer)) = (event.event, event.peer) {
                return Err(Error::usage(format!(
                    "host '{}' has a different topology, seed or scenario; all hosts need the same",
                    self.names[peer]
                )));
            }
        }
        Ok(())
    }

    /// Records an event. Returns the host whose reachability changed, and whether it is now
    /// reachable.
    fn note(&self, event: &HostEvent) -> Option<(usize, bool)> {
        let answers = match event.event {
            PeerEvent::Connected { .. } => true,
            PeerEvent::Silent => false,
            _ => return None,
        };
        let peer = event.peer?;
        self.reachable[peer].store(answers, Ordering::Relaxed);
        Some((peer, answers))
    }

    fn of(cluster: &Cluster, index: usize) -> Others {
        let others = cluster.hosts.iter().enumerate();
        let others = others.filter(|(host, _)| *host != index);
        let (names, ports): (Vec<_>, _) = others
            .map(|(_, host)| (host.name.clone(), host.ports.clone()))
            .unzip();
        Others {
            reachable: names.iter().map(|_| AtomicBool::new(false)).collect(),
            names,
            ports,
        }
    }
}

fn setup(
    topology: &Topology,
    cluster: &Cluster,
    (index, seed): (usize, u64),
    key: Key,
) -> Result<TransportSetup, Error> {
    let peers = cluster.hosts.iter().enumerate();
    let peers = peers.filter(|(host, _)| *host != index);
    let peers = peers.map(|(host, plan)| PeerSetup {
        index: host as u16,
        name: plan.name.clone(),
        address: plan.address,
    });
    let shift = std::env::var(SHIFT_VARIABLE).ok();
    let shift = shift.and_then(|text| ClockShift::parse(&text, monotonic_now()));
    Ok(TransportSetup {
        name: cluster.hosts[index].name.clone(),
        identity: Identity {
            index: index as u16,
            digest: digest(topology, cluster, seed)?,
            // Instances are distinct, because two starts are at least 1 ns apart.
            instance: monotonic_now().as_nanos() ^ u64::from(std::process::id()) << 48,
            mtu: cluster.mtu.into(),
        },
        key,
        listen: cluster.hosts[index].listen,
        peers: peers.collect(),
        shift: shift.unwrap_or_default(),
    })
}

/// Returns the digest of all inputs to verdicts, including model files and plugins. Hosts with
/// different digests must not run together.
fn digest(topology: &Topology, cluster: &Cluster, seed: u64) -> Result<[u8; 32], Error> {
    let mut digest = NetworkDigest::default();
    digest.add(topology.decisive_text(cluster, seed).as_bytes());
    let loader = FileLoader::default();
    for name in topology.files.iter() {
        let mut contents = NetworkDigest::default();
        let read = loader.read(name, &mut |piece| {
            contents.add(piece);
            Ok(())
        });
        read.map_err(|reason| Error::usage(format!("{name}: {reason}")))?;
        digest.add(name.as_bytes());
        digest.add(&contents.finish());
    }
    Ok(digest.finish())
}

/// Thread that watches the other hosts while the network runs.
pub(super) struct HostWatch {
    stop: Arc<AtomicBool>,
    /// Reader of the connection's report.
    pub reader: HostsReader,
    thread: JoinHandle<(HostsReport, Vec<String>)>,
}

impl HostWatch {
    /// Closes the connection, and adds its report and notes to the network's report.
    pub fn stop(self, report: &mut NetworkReport) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has no report.
        let (hosts, notes) = self.thread.join().unwrap_or_default();
        report.run.hosts = Some(hosts);
        report.run.notes.extend(notes);
    }
}
