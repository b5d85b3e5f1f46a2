//! The time from SIGKILL of a program with links in interfaces until all of them pass
//! datagrams again.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use longwire::Error;
use longwire_io::net::{NetNamespace, addr_add};

use super::many::Pairs;
use super::run::{AttachRun, failed};

const PORT: u16 = 9_000;
/// First network; each pair uses the next one.
const NETWORKS: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 0);
const PREFIX_LEN: u8 = 30;
/// Exceeds the transit time of a datagram sent before a link was attached.
const SILENCE: Duration = Duration::from_millis(20);
/// Interval between a pair's datagrams.
const INTERVAL: Duration = Duration::from_micros(100);
/// Time without datagrams after which an interface counts as broken.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Sockets at both ends of a pair.
struct PairFlow {
    sender: UdpSocket,
    receiver: UdpSocket,
}

/// Kills a program with links in all interfaces of the pairs, once per round. Returns
/// the times until the last interface passed a datagram, in milliseconds.
///
/// # Errors
/// If the links cannot be attached, or an interface no longer passes datagrams.
pub(super) fn measure(pairs: &Pairs, rounds: usize) -> Result<Vec<f64>, Error> {
    let flows = (0..pairs.count).map(|number| PairFlow::new(pairs, number));
    let flows = flows.collect::<Result<Vec<PairFlow>, Error>>()?;
    // Resolves the neighbours of both ends.
    until_all_pass(&flows)?;
    let killed = (1..=rounds).map(|round| {
        eprintln!(
            "round {round} of {rounds}: SIGKILL with {} links",
            flows.len()
        );
        let run = AttachRun::start(&pairs.near, "all", "--loss 100%")?;
        thread::sleep(SILENCE);
        flows.iter().for_each(PairFlow::empty);
        let start = Instant::now();
        run.signal_kill();
        until_all_pass(&flows)?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    });
    killed.collect()
}

/// Sends until each pair has passed a datagram.
fn until_all_pass(flows: &[PairFlow]) -> Result<(), Error> {
    let start = Instant::now();
    let mut waiting: Vec<&PairFlow> = flows.iter().collect();
    while !waiting.is_empty() {
        if start.elapsed() > TIMEOUT {
            return Err(failed(
                "an interface passes nothing after the end of its link",
            ));
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
