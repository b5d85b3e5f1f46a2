//! Links at all interfaces of a namespace: their cost while idle, and the time from SIGKILL of the
//! program until datagrams pass all interfaces again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use longwire::Error;
use longwire_io::net::veth::{End, VethConfig};
use longwire_io::net::{NetNamespace, addr_add, link_up, sysctl, veth};

use crate::attach::run::{AttachRun, failed};

/// Results of all rounds.
#[derive(Debug, Default)]
pub(super) struct Many {
    pub attach_s: Vec<f64>,
    /// CPU time of the program per interface, in percent of a core.
    pub idle_percent: Vec<f64>,
}

/// Time from attachment to steady state, in which the CPU time is measured.
const SETTLING: Duration = Duration::from_millis(500);

/// Device pairs between two namespaces.
pub(super) struct Pairs {
    pub near: NetNamespace,
    pub far: NetNamespace,
    pub count: u32,
}

impl Pairs {
    /// Creates `count` pairs, with both ends up.
    ///
    /// # Errors
    /// If the devices cannot be created.
    pub fn new(count: u32) -> Result<Pairs, Error> {
        let (near, far) = (quiet_namespace()?, quiet_namespace()?);
        near.run(|| -> Result<(), Error> {
            for number in 0..count {
                let name = Pairs::name(number);
                let end = |namespace| End {
                    name: &name,
                    namespace,
                    ..End::default()
                };
                veth::create(&VethConfig {
                    a: end(None),
                    b: end(Some(&far)),
                })?;
                far.run(|| link_up(&name))??;
                link_up(&name)?;
            }
            Ok(())
        })??;
        Ok(Pairs { near, far, count })
    }

    /// Returns the name that both devices of a pair have.
    pub fn name(number: u32) -> String {
        format!("many{number}")
    }
}

/// Attaches a link at one interface of each pair, once per round.
///
/// # Errors
/// If the links cannot be attached.
pub(super) fn measure(pairs: &Pairs, rounds: usize, time: Duration) -> Result<Many, Error> {
    let interfaces = pairs.count;
    let mut found = Many::default();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}: {interfaces} interfaces");
        let run = AttachRun::start(&pairs.near, "all", "--delay 10ms")?;
        found.attach_s.push(run.took.as_secs_f64());
        thread::sleep(SETTLING);
        let (before, start) = (run.run_time()?, Instant::now());
        thread::sleep(time);
        let share = (run.run_time()? - before) / start.elapsed().as_secs_f64();
        found
            .idle_percent
            .push(100.0 * share / f64::from(interfaces));
    }
    Ok(found)
}

/// Returns a namespace in which the kernel itself sends no frames.
fn quiet_namespace() -> Result<NetNamespace, Error> {
    let namespace = NetNamespace::new()?;
    // Without IPv6, the setting does not exist, and the kernel sends nothing.
    let _ = namespace.run(|| sysctl::set("ipv6/conf/default/disable_ipv6", "1"))?;
    Ok(namespace)
}

const PORT: u16 = 9_000;
/// First address of the pairs' networks; each pair uses the next network.
const NETWORKS: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
const PREFIX_LEN: u8 = 30;
/// Time after attaching in which datagrams sent earlier arrive.
const SILENCE: Duration = Duration::from_millis(20);
/// Interval between a pair's datagrams.
const INTERVAL: Duration = Duration::from_micros(100);
/// Maximum time until a datagram has passed every pair.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sockets at both ends of a pair.
struct PairFlow {
    sender: UdpSocket,
    receiver: UdpSocket,
}

/// Kills a program with links at one interface of each pair, once per round. Returns the times in
/// milliseconds until a datagram has passed every interface.
///
/// # Errors
/// If the links cannot be attached, or datagrams no longer pass an interface.
pub(super) fn measure_killed(pairs: &Pairs, rounds: usize) -> Result<Vec<f64>, Error> {
    let flows = (0..pairs.count).map(|number| PairFlow::new(pairs, number));
    let flows = flows.collect::<Result<Vec<PairFlow>, Error>>()?;
    // Resolve the neighbours at both ends.
    until_all_pass(&flows)?;
    let killed = (1..=rounds).map(|round| {
        eprintln!(
            "round {round} of {rounds}: SIGKILL with {} links",
            flows.len()
        );
        let mut run = AttachRun::start(&pairs.near, "all", "--loss 100%")?;
        thread::sleep(SILENCE);
        flows.iter().for_each(PairFlow::empty);
        let start = Instant::now();
        run.signal_kill();
        until_all_pass(&flows)?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    });
    killed.collect()
}

/// Sends until a datagram has passed each pair.
fn until_all_pass(flows: &[PairFlow]) -> Result<(), Error> {
    let start = Instant::now();
    let mut waiting: Vec<&PairFlow> = flows.iter().collect();
    while !waiting.is_empty() {
        if start.elapsed() > TIMEOUT {
            return Err(failed("no datagram crossed one of the pairs in time"));
        }
        waiting.retain(|flow| {
            let _ = flow.sender.send(&[0]);
            !flow.receives()
        });
        thread::sleep(INTERVAL);
    }
    Ok(())
}

impl PairFlow {
    fn new(pairs: &Pairs, number: u32) -> Result<PairFlow, Error> {
        let name = Pairs::name(number);
        let network = NETWORKS.to_bits() + (number << (32 - PREFIX_LEN));
        let [near, far] = [1, 2].map(|host| IpAddr::from(Ipv4Addr::from_bits(network + host)));
        let bind = |namespace: &NetNamespace, address: IpAddr| -> Result<UdpSocket, Error> {
            namespace.run(|| addr_add(&name, address, PREFIX_LEN))??;
            Ok(namespace.run(|| UdpSocket::bind(SocketAddr::new(address, PORT)))??)
        };
        let [sender, receiver] = [bind(&pairs.near, near)?, bind(&pairs.far, far)?];
        sender.connect((far, PORT))?;
        receiver.set_nonblocking(true)?;
        Ok(PairFlow { sender, receiver })
    }

    fn receives(&self) -> bool {
        self.receiver.recv(&mut [0]).is_ok()
    }

    fn empty(&self) {
        while self.receives() {}
    }
}
