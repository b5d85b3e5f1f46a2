//! `attach`: cost of a link at an interface in use, as seen by the programs on both sides, and the
//! time to attach a link, or one at each of many interfaces.
//!
//! Rounds interleave `longwire attach`, `longwire exec` with and without `--control`, and a bare
//! veth pair. Rows compare medians over the rounds.

mod many;
mod run;
mod traffic;

use std::time::Duration;

use clap::Args;
use longwire::Error;
use longwire::bench::harness::median;
use longwire_engine::Nanos;
use many::Pairs;
use serde::Serialize;
use traffic::{Place, PlaceTraffic};

use crate::program::Measurement;

/// Arguments of `attach`.
#[derive(Clone, Debug, Args)]
pub struct AttachArgs {
    /// Duration of each flow
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub time: Nanos,
    /// Rounds, each of which measures every setup once
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Round trips per measurement
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub trips: u32,
    /// Interfaces attached together
    #[arg(long, value_name = "N", default_value_t = 250)]
    pub interfaces: u32,
}

/// A requirement and its measured value.
#[derive(Debug, Serialize)]
pub struct AttachRow {
    name: String,
    unit: &'static str,
    /// Required value: a minimum for shares of the bare pair, otherwise a maximum.
    bar: f64,
    is_share: bool,
    /// Value compared with the bar.
    found: f64,
    kept: bool,
    /// Minimum and maximum over the rounds.
    range: [f64; 2],
    /// Values with the attached link and, in comparisons, with the other setups.
    attached: f64,
    bare: Option<f64>,
    exec: Option<f64>,
    control: Option<f64>,
}

/// Delays per direction for which RTT errors are measured.
const DELAYS: [Duration; 3] = [
    Duration::from_millis(5),
    Duration::from_millis(30),
    Duration::from_millis(101),
];

/// Bars from docs/attach.md; names end with the unit.
const BASE_RTT_US: f64 = 40.0;
const RTT_ERROR_US: f64 = 50.0;
const TCP_SHARE: f64 = 0.5;
const UDP_SHARE: f64 = 0.7;
const ATTACH_MS: f64 = 50.0;
const MANY_S: f64 = 5.0;
const IDLE_PERCENT: f64 = 0.1;
const KILLED_MS: f64 = 10.0;

impl Measurement for AttachArgs {
    type Found = Vec<AttachRow>;

    const ABOUT: &'static str =
        "Medians of the rounds; range: minimum and maximum with the attached link.";

    fn quick(&self) -> AttachArgs {
        AttachArgs {
            time: Nanos::from_millis(100),
            rounds: 1,
            trips: 5,
            interfaces: 3,
        }
    }

    fn measure(&self, _port: &str) -> Result<Vec<AttachRow>, Error> {
        let time = Duration::from_nanos(self.time.as_nanos());
        let rounds = self.rounds.max(1);
        let mut found: Vec<Vec<PlaceTraffic>> = vec![Vec::new(); Place::ALL.len()];
        let mut errors: Vec<[Vec<f64>; 2]> = vec![[Vec::new(), Vec::new()]; DELAYS.len()];
        let mut attach = Vec::new();
        for round in 1..=rounds {
            for (place, found) in Place::ALL.into_iter().zip(&mut found) {
                eprintln!("round {round} of {rounds}: {}", place.name());
                found.push(traffic::measure(place, time, self.trips)?);
            }
            for (delay, [attached, bare]) in DELAYS.into_iter().zip(&mut errors) {
                attached.push(traffic::rtt_error_us(delay, self.trips)?);
                bare.push(traffic::paused_rtt_us(delay, self.trips)?);
            }
            attach.push(run::attach_ms()?);
        }
        let column = |value: fn(&PlaceTraffic) -> f64| -> Vec<Vec<f64>> {
            found
                .iter()
                .map(|rounds| rounds.iter().map(value).collect())
                .collect()
        };
        let rtt = column(|traffic| traffic.rtt_us);
        let [tcp, udp] = [
            column(|traffic| traffic.tcp_gbit),
            column(|traffic| traffic.udp_kpps),
        ];
        let mut rows = vec![AttachRow::above(
            "base RTT above the bare pair's",
            BASE_RTT_US,
            &rtt,
        )];
        for (delay, [attached, bare]) in DELAYS.iter().zip(&errors) {
            let name = format!("RTT minus both delays of {} ms", delay.as_millis());
            let row = AttachRow::alone(&name, "us", RTT_ERROR_US, attached);
            rows.push(row.above_bare(median(bare.iter().copied())));
        }
        rows.push(AttachRow::share("TCP", "Gbit/s", TCP_SHARE, &tcp));
        rows.push(AttachRow::share("64-byte UDP", "kpps", UDP_SHARE, &udp));
        let start = "attach, from the start of the program";
        rows.push(AttachRow::alone(start, "ms", ATTACH_MS, &attach));
        rows.extend(many_rows(self.interfaces, rounds, time)?);
        Ok(rows)
    }
}

/// Returns the rows for many interfaces and for killed programs.
fn many_rows(interfaces: u32, rounds: usize, time: Duration) -> Result<Vec<AttachRow>, Error> {
    let mut rows = Vec::new();
    let pairs = Pairs::new(interfaces)?;
    let many = many::measure(&pairs, rounds, time)?;
    let name = format!("attach of {interfaces} interfaces");
    rows.push(AttachRow::alone(&name, "s", MANY_S, &many.attach_s));
    let name = "idle, CPU share per interface";
    rows.push(AttachRow::alone(
        name,
        "%",
        IDLE_PERCENT,
        &many.idle_percent,
    ));
    let alone = many::measure_killed(&Pairs::new(1)?, rounds)?;
    let all = many::measure_killed(&pairs, rounds)?;
    for (which, killed) in [
        ("1 interface passes", alone),
        (&format!("all {interfaces} pass"), all),
    ] {
        let name = format!("SIGKILL until {which} datagrams");
        rows.push(AttachRow::alone(&name, "ms", KILLED_MS, &killed));
    }
    Ok(rows)
}

impl AttachRow {
    /// Returns a row without comparisons; the value must not exceed the bar.
    fn alone(name: &str, unit: &'static str, bar: f64, rounds: &[f64]) -> AttachRow {
        let found = median(rounds.iter().copied());
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        AttachRow {
            name: name.to_owned(),
            unit,
            bar,
            is_share: false,
            found,
            kept: found.abs() <= bar,
            range: [least, most],
            attached: found,
            bare: None,
            exec: None,
            control: None,
        }
    }

    /// Returns a row with the median of each setup: attached, bare, `exec` and `exec --control`.
    fn witnessed(name: &str, unit: &'static str, bar: f64, places: &[Vec<f64>]) -> AttachRow {
        let of = |place: Place| median(places[place as usize].iter().copied());
        AttachRow {
            bare: Some(of(Place::Bare)),
            exec: Some(of(Place::Exec)),
            control: Some(of(Place::Control)),
            ..AttachRow::alone(name, unit, bar, &places[Place::Attached as usize])
        }
    }

    /// Returns a row for the attached link's share of the bare pair's value; the share must reach
    /// the bar.
    fn share(name: &str, unit: &'static str, bar: f64, places: &[Vec<f64>]) -> AttachRow {
        let row = AttachRow::witnessed(name, unit, bar, places);
        let found = row.attached / row.bare.unwrap_or(f64::NAN);
        AttachRow {
            is_share: true,
            found,
            kept: found >= bar,
            ..row
        }
    }

    /// Returns a row for the time added to that of the bare pair; it must not exceed the bar.
    fn above(name: &str, bar: f64, places: &[Vec<f64>]) -> AttachRow {
        let row = AttachRow::witnessed(name, "us", bar, places);
        let bare = row.bare.unwrap_or(f64::NAN);
        row.above_bare(bare)
    }

    /// Replaces the value with its difference from the bare pair.
    fn above_bare(self, bare: f64) -> AttachRow {
        let found = self.attached - bare;
        AttachRow {
            found,
            kept: found.abs() <= self.bar,
            bare: Some(bare),
            ..self
        }
    }
}
