//! Links in all interfaces of a namespace, and their idle cost.

use std::thread;
use std::time::{Duration, Instant};

use longwire::Error;
use longwire_io::net::veth::{self, End, VethConfig};
use longwire_io::net::{NetNamespace, link_up, sysctl};

use super::run::AttachRun;

/// The results of all rounds.
#[derive(Debug, Default)]
pub(super) struct Many {
    pub attach_s: Vec<f64>,
    /// CPU time of the program per interface, in percent of a core.
    pub idle_percent: Vec<f64>,
}

/// Time from attachment to steady state.
const SETTLING: Duration = Duration::from_millis(500);

/// Device pairs between two namespaces.
pub(super) struct Pairs {
    pub near: NetNamespace,
    pub far: NetNamespace,
    pub count: u32,
}

impl Pairs {
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

    /// Returns the name of both devices of a pair.
    pub fn name(number: u32) -> String {
        format!("many{number}")
    }
}

/// Attaches a link to an interface of each pair, once per round.
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

/// Returns a namespace in whose devices the kernel sends no frames.
fn quiet_namespace() -> Result<NetNamespace, Error> {
    let namespace = NetNamespace::new()?;
    // Without IPv6, the kernel lacks this setting and sends nothing.
    let _ = namespace.run(|| sysctl::set("ipv6/conf/default/disable_ipv6", "1"))?;
    Ok(namespace)
}
