//! Traffic through one place in a round.

use std::time::Duration;

use longwire::Error;
use longwire::bench::testbed::Testbed;
use longwire_testbed::support::Folder;
use longwire_traffic::sockets::{Path, Probes, UdpFlow, probe_trips, tcp_flow, udp_flow};

use super::run::{AttachRun, interface_of};
use crate::program;
use crate::program::ExecRun;

/// A path between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A bare veth pair.
    Bare,
    /// A veth pair with an attached link.
    Attached,
    /// `longwire exec`.
    Exec,
    /// `longwire exec --control`, whose link can change.
    Control,
}

impl Place {
    pub const ALL: [Place; 4] = [Place::Bare, Place::Attached, Place::Exec, Place::Control];

    pub fn name(self) -> &'static str {
        match self {
            Place::Bare => "bare pair",
            Place::Attached => "attach",
            Place::Exec => "exec",
            Place::Control => "exec --control",
        }
    }
}

/// Results of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceTraffic {
    /// Median RTT, in microseconds.
    pub rtt_us: f64,
    pub tcp_gbit: f64,
    /// Received 64-byte datagrams, in thousands per second.
    pub udp_kpps: f64,
}

/// Interval between probes.
const INTERVAL: Duration = Duration::from_millis(2);

/// Time to wait for the last datagrams.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Measures a place once; links have no delay.
///
/// # Errors
/// If the place cannot be created, or a flow fails.
pub(super) fn measure(place: Place, time: Duration, trips: u32) -> Result<PlaceTraffic, Error> {
    let folder = Folder::create()?;
    let exec = |options| -> Result<PlaceTraffic, Error> {
        let run = ExecRun::start(&program::path()?, folder.path(), options)?;
        let found = flows(run.path(), time, trips)?;
        run.stop()?;
        Ok(found)
    };
    match place {
        Place::Bare => flows(Testbed::bare()?.path(), time, trips),
        Place::Attached => attached("", |path| flows(path, time, trips)),
        Place::Exec => exec(""),
        Place::Control => {
            let socket = folder.path().join("control.sock");
            exec(&format!("--control {}", socket.display()))
        }
    }
}

/// Returns the median RTT over an attached link with this delay per direction, minus the delays in
/// both directions, in microseconds.
///
/// # Errors
/// See [`measure`].
pub(super) fn rtt_error_us(delay: Duration, trips: u32) -> Result<f64, Error> {
    let options = format!("--delay {}ms", delay.as_millis());
    let trips = trips_of(delay, trips);
    let rtt = attached(&options, |path| rtt_us(path, trips, INTERVAL))?;
    Ok(rtt - 2.0 * delay.as_secs_f64() * 1e6)
}

/// Returns the bare pair's median RTT in microseconds, with the same pauses as [`rtt_error_us`],
/// because an idle core is slow to send.
///
/// # Errors
/// See [`measure`].
pub(super) fn paused_rtt_us(delay: Duration, trips: u32) -> Result<f64, Error> {
    rtt_us(Testbed::bare()?.path(), trips_of(delay, trips), delay * 2)
}

/// Returns the number of round trips for a delay. Longer delays get fewer, because round trips are
/// sequential.
fn trips_of(delay: Duration, trips: u32) -> u32 {
    trips.min(3_000 / delay.as_millis() as u32).max(1)
}

/// Measures through an attached link with these options.
fn attached<T>(
    options: &str,
    measure: impl FnOnce(Path<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let testbed = Testbed::bare()?;
    let near = testbed.path().from.namespace;
    let run = AttachRun::start(near, &interface_of(near)?, options)?;
    let found = measure(testbed.path());
    drop(run);
    found
}

fn flows(path: Path<'_>, time: Duration, trips: u32) -> Result<PlaceTraffic, Error> {
    let flood = UdpFlow::new(64, 0, time);
    Ok(PlaceTraffic {
        rtt_us: rtt_us(path, trips, INTERVAL)?,
        tcp_gbit: tcp_flow(path, time, time / 4)?.goodput / 1e9,
        udp_kpps: udp_flow(path, flood)?.received as f64 / time.as_secs_f64() / 1e3,
    })
}

fn rtt_us(path: Path<'_>, count: u32, interval: Duration) -> Result<f64, Error> {
    let probes = Probes {
        frame_len: 100,
        count,
        interval,
        timeout: TIMEOUT,
    };
    let median = probe_trips(path, probes)?.median_ns();
    let median = median.ok_or_else(|| Error::Failed("no probe was answered".to_owned()))?;
    Ok(median as f64 / 1e3)
}
