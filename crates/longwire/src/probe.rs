//! The probe: measures a link with real traffic and compares the results with its configuration.
//! `longwire exec` runs it if no command is given.

use std::io::{self, Write};
use std::time::Duration;

use longwire_engine::LinkConfig;
use longwire_engine::models::rate::Serializer;
use longwire_traffic::sockets::{
    OneWay, Path, TrafficError, UdpFlow, one_way, round_trips, tcp_flow, udp_flow,
};
use longwire_units::Nanos;
use serde::Serialize;

use crate::bench::rate::{FULL_FRAME, TCP_PAYLOAD};
use crate::table::Table;

/// Frame length of the probe's datagrams, in bytes.
const FRAME: u32 = 98;
const LOSS_FRAME: u32 = 200;

/// Maximum fraction of the link's rate used to measure loss.
const LOAD: f64 = 0.3;

/// Probe results.
#[derive(Clone, Debug, Serialize)]
pub struct ProbeResult {
    /// Median round-trip time of small datagrams, in milliseconds.
    pub rtt_ms: Option<f64>,
    /// Expected round-trip time on an idle link, in milliseconds.
    pub rtt_expected_ms: f64,
    /// From near to far.
    pub up: OneDirection,
    /// From far to near.
    pub down: OneDirection,
}

/// Probe results for one direction.
#[derive(Clone, Debug, Serialize)]
pub struct OneDirection {
    /// Expectation derived from the configuration.
    pub expected: Expectation,
    /// Median one-way delay of small datagrams, in milliseconds.
    pub delay_ms: Option<f64>,
    /// 99th-percentile one-way delay, in milliseconds.
    pub delay_p99_ms: Option<f64>,
    /// Payload rate of a single TCP connection, in Mbit/s.
    pub tcp_mbit: Option<f64>,
    /// Datagrams sent to measure loss.
    pub datagrams: u64,
    /// Percentage of datagrams lost.
    pub loss_percent: f64,
}

/// Duration of the loss measurement per direction.
const LOSS_TIME: Duration = Duration::from_secs(2);

/// Measures the link between two hosts, with an expectation for up and for down; `progress`
/// receives the name of each step.
///
/// # Errors
/// If a socket cannot be opened, or no datagram arrives.
pub fn probe(
    path: Path<'_>,
    [up, down]: [Expectation; 2],
    mut progress: impl FnMut(&str),
) -> Result<ProbeResult, TrafficError> {
    let rtt_expected_ms = up.delay_ms + down.delay_ms;
    let rtt = Duration::from_secs_f64(rtt_expected_ms / 1e3);
    progress("round trips");
    // The first round trip includes address resolution; discard it.
    let timeout = rtt * 2 + Duration::from_millis(500);
    round_trips(path, 2, Duration::ZERO, timeout)?;
    let interval = rtt.max(Duration::from_millis(5));
    let time = Duration::from_secs(1) + rtt * 3;
    let count = (time.as_secs_f64() / interval.as_secs_f64()).clamp(3.0, 200.0);
    let trips = round_trips(path, count as u32, interval, timeout)?;
    let tcp_time = Duration::from_secs(2) + rtt * 10;
    let mut measure = |name: &str, path, expected| {
        one_direction(path, expected, tcp_time, |what| {
            progress(&format!("{name}: {what}"))
        })
    };
    Ok(ProbeResult {
        rtt_ms: trips.median_ns().map(|ns| ns as f64 / 1e6),
        rtt_expected_ms,
        up: measure("up", path, up)?,
        down: measure("down", path.reversed(), down)?,
    })
}

fn one_direction(
    path: Path<'_>,
    expected: Expectation,
    tcp_time: Duration,
    mut progress: impl FnMut(&str),
) -> Result<OneDirection, TrafficError> {
    let link_delay = Duration::from_secs_f64(expected.delay_ms / 1e3);
    progress("one-way delay");
    let (per_second, count) = moderate_load(&expected, FRAME, LOSS_TIME / 2, 1_000.0);
    let times = one_way(path, FRAME, per_second, count, link_delay, None)?;
    progress("loss");
    let (per_second, count) = moderate_load(&expected, LOSS_FRAME, LOSS_TIME, 10_000.0);
    let flow = UdpFlow {
        frame_len: LOSS_FRAME,
        per_second,
        count: Some(count),
        duration: LOSS_TIME * 2,
        timeout: link_delay * 2 + Duration::from_millis(300),
        flows: 1,
    };
    let datagrams = udp_flow(path, flow)?;
    progress("TCP");
    let tcp = tcp_flow(path, tcp_time, tcp_time / 2).ok();
    let lost = datagrams.sent - datagrams.received;
    let at = |flow: &OneWay, share| {
        (!flow.times_ns.is_empty()).then(|| flow.quantile(share) as f64 / 1e6)
    };
    Ok(OneDirection {
        expected,
        delay_ms: at(&times, 0.5),
        delay_p99_ms: at(&times, 0.99),
        tcp_mbit: tcp.map(|flow| flow.goodput / 1e6),
        datagrams: datagrams.sent,
        loss_percent: lost as f64 / datagrams.sent.max(1) as f64 * 100.0,
    })
}

/// Returns datagrams per second, at most `most` and [`LOAD`] of the link's rate, and the number of
/// datagrams to send in `time`.
fn moderate_load(expected: &Expectation, frame: u32, time: Duration, most: f64) -> (u64, u64) {
    let capacity = expected.rate_bits.unwrap_or(f64::INFINITY) / f64::from(frame * 8);
    let per_second = (capacity * LOAD).clamp(1.0, most);
    let count = (per_second * time.as_secs_f64()).max(3.0);
    (per_second as u64, count as u64)
}

/// Expectations for one direction.
#[derive(Clone, Debug, Serialize)]
pub struct Expectation {
    /// One-way delay of a small datagram on an idle link, in milliseconds: serialisation delay plus
    /// mean link delay.
    pub delay_ms: f64,
    /// Rate in bit/s, if limited.
    pub rate_bits: Option<f64>,
    /// Payload rate of a TCP connection that saturates the link, in Mbit/s.
    pub tcp_mbit: Option<f64>,
    /// Loss models as configured.
    pub loss: Vec<String>,
}

impl Expectation {
    /// Derives expectations from a configuration.
    pub fn of(config: &LinkConfig) -> Expectation {
        let serialisation =
            |len| Serializer::new(config.rate.bit_rate(), config.framing).depart(Nanos::ZERO, len);
        let delay = serialisation(FRAME).saturating_add(config.delay.mean());
        let rate = config.rate.bit_rate();
        let tcp = rate
            .map(|_| TCP_PAYLOAD * 8.0 / serialisation(FULL_FRAME).as_secs_f64().max(1e-9) / 1e6);
        Expectation {
            delay_ms: delay.as_secs_f64() * 1e3,
            rate_bits: rate.map(|rate| rate.bits_per_sec() as f64),
            tcp_mbit: tcp,
            loss: config.loss.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Prints measured and expected results unless stdout is closed.
pub fn print(findings: &ProbeResult) {
    let mut table = Table::headed(" | expected up | measured up | expected down | measured down");
    let mut row = |name: &str, cells: fn(&OneDirection) -> [String; 2]| {
        let [up, down] = [&findings.up, &findings.down].map(cells);
        table.row([[name.to_owned()].as_slice(), &up, &down].concat());
    };
    row("one-way delay", |way| {
        let expected = Some(way.expected.delay_ms);
        [expected, way.delay_ms].map(millis)
    });
    row("  99th percentile", |way| {
        [String::new(), millis(way.delay_p99_ms)]
    });
    row("TCP payload", |way| {
        let expected = way.expected.tcp_mbit;
        [
            expected.map_or("unlimited".to_owned(), megabits),
            way.tcp_mbit.map_or("none".to_owned(), megabits),
        ]
    });
    row("loss", |way| {
        let expected = match way.expected.loss.as_slice() {
            [] => "0 %".to_owned(),
            models => models.join(" + "),
        };
        let measured = format!("{:.2} % of {}", way.loss_percent, way.datagrams);
        [expected, measured]
    });
    let rtt = millis(findings.rtt_ms);
    let text = format!(
        "{}round trip: expected {:.3} ms, measured {rtt}\n\n",
        table.text(),
        findings.rtt_expected_ms
    );
    let _ = io::stdout().write_all(text.as_bytes());
}

fn millis(value: Option<f64>) -> String {
    value.map_or("none".to_owned(), |ms| format!("{ms:.3} ms"))
}

fn megabits(mbit: f64) -> String {
    if mbit >= 1_000.0 {
        return format!("{:.2} Gbit/s", mbit / 1e3);
    }
    format!("{mbit:.3} Mbit/s")
}
