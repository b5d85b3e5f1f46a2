//! `attach`: what a link in an interface in use costs the programs on both sides of it, and
//! how long it takes to attach one, or one in each of many interfaces.
//!
//! `longwire attach`, `longwire exec` with and without `--control`, and a veth pair without
//! an emulator take turns in every round, and medians of the rounds are compared.

mod killed;
mod many;
mod run;
mod traffic;

use std::time::Duration;

use clap::Args;
use longwire_engine::Nanos;
use serde::Serialize;

use longwire::Error;
use longwire::table::Table;
use many::Pairs;
use traffic::{Place, PlaceTraffic};

/// Arguments of `attach`.
#[derive(Clone, Debug, Args)]
pub struct AttachArgs {
    /// Duration of each flow
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub time: Nanos,
    /// Rounds in which all places take turns
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: usize,
    /// Round trips of each measurement
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub trips: u32,
    /// Interfaces that are attached together
    #[arg(long, value_name = "N", default_value_t = 250)]
    pub interfaces: u32,
}

impl AttachArgs {
    pub(super) fn quick(&self) -> AttachArgs {
        AttachArgs {
            time: Nanos::from_millis(100),
            rounds: 1,
            trips: 5,
            interfaces: 3,
        }
    }
}

/// A promise, and what was found.
#[derive(Debug, Serialize)]
pub(super) struct AttachRow {
    name: String,
    unit: &'static str,
    /// The bar; for a share of the bare pair, the least, otherwise the most.
    bar: f64,
    is_share: bool,
    /// The value that the bar is for.
    found: f64,
    kept: bool,
    /// Smallest and largest of the rounds, of what was measured.
    range: [f64; 2],
    /// The measured value while attached, and those of the witnesses, if there are any.
    attached: f64,
    bare: Option<f64>,
    exec: Option<f64>,
    control: Option<f64>,
}

/// Delays each way for which the error of a round trip is measured.
const DELAYS: [Duration; 3] = [
    Duration::from_millis(5),
    Duration::from_millis(30),
    Duration::from_millis(101),
];

/// The bars of docs/attach.md.
const BASE_RTT_US: f64 = 40.0;
const RTT_ERROR_US: f64 = 50.0;
const TCP_SHARE: f64 = 0.5;
const UDP_SHARE: f64 = 0.7;
const ATTACH_MS: f64 = 50.0;
const MANY_S: f64 = 5.0;
const IDLE_PERCENT: f64 = 0.1;
const KILLED_MS: f64 = 10.0;

pub(super) fn measure(args: &AttachArgs) -> Result<Vec<AttachRow>, Error> {
    let time = Duration::from_nanos(args.time.as_nanos());
    let rounds = args.rounds.max(1);
    let mut found: Vec<Vec<PlaceTraffic>> = vec![Vec::new(); Place::ALL.len()];
    let mut errors: Vec<[Vec<f64>; 2]> = vec![[Vec::new(), Vec::new()]; DELAYS.len()];
    let mut attach = Vec::new();
    for round in 1..=rounds {
        for (place, found) in Place::ALL.into_iter().zip(&mut found) {
            eprintln!("round {round} of {rounds}: {}", place.name());
            found.push(traffic::measure(place, time, args.trips)?);
        }
        for (delay, [attached, bare]) in DELAYS.into_iter().zip(&mut errors) {
            attached.push(traffic::rtt_error_us(delay, args.trips)?);
            bare.push(traffic::paused_rtt_us(delay, args.trips)?);
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
        "base RTT, above the bare pair's",
        BASE_RTT_US,
        &rtt,
    )];
    for (delay, [attached, bare]) in DELAYS.iter().zip(&errors) {
        let name = format!("RTT less both delays of {} ms", delay.as_millis());
        let row = AttachRow::alone(&name, "us", RTT_ERROR_US, attached);
        rows.push(row.above_bare(median(bare)));
    }
    rows.push(AttachRow::share("TCP", "Gbit/s", TCP_SHARE, &tcp));
    rows.push(AttachRow::share("64-byte UDP", "kpps", UDP_SHARE, &udp));
    let start = "attach, from the start of the program";
    rows.push(AttachRow::alone(start, "ms", ATTACH_MS, &attach));
    rows.extend(many_rows(args.interfaces, rounds, time)?);
    Ok(rows)
}

/// The rows of many interfaces, and of programs that are killed.
fn many_rows(interfaces: u32, rounds: usize, time: Duration) -> Result<Vec<AttachRow>, Error> {
    let mut rows = Vec::new();
    let pairs = Pairs::new(interfaces)?;
    let many = many::measure(&pairs, rounds, time)?;
    let name = format!("attach of {interfaces} interfaces");
    rows.push(AttachRow::alone(&name, "s", MANY_S, &many.attach_s));
    let name = "idle, of a core for each of them";
    rows.push(AttachRow::alone(
        name,
        "%",
        IDLE_PERCENT,
        &many.idle_percent,
    ));
    let alone = killed::measure(&Pairs::new(1)?, rounds)?;
    let all = killed::measure(&pairs, rounds)?;
    for (which, killed) in [
        ("1 interface passes", alone),
        (&format!("all {interfaces} pass"), all),
    ] {
        let name = format!("SIGKILL until {which} datagrams");
        rows.push(AttachRow::alone(&name, "ms", KILLED_MS, &killed));
    }
    Ok(rows)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl AttachRow {
    /// A row without witnesses, whose value must not exceed the bar.
    fn alone(name: &str, unit: &'static str, bar: f64, rounds: &[f64]) -> AttachRow {
        let found = median(rounds);
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

    /// A row with the values of all places, in their order.
    fn witnessed(name: &str, unit: &'static str, bar: f64, places: &[Vec<f64>]) -> AttachRow {
        let of = |place: Place| median(&places[place as usize]);
        AttachRow {
            bare: Some(of(Place::Bare)),
            exec: Some(of(Place::Exec)),
            control: Some(of(Place::Control)),
            ..AttachRow::alone(name, unit, bar, &places[Place::Attached as usize])
        }
    }

    /// A row about a share of the bare pair's, which must not be below the bar.
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

    /// A row about a time above the bare pair's, which must not exceed the bar.
    fn above(name: &str, bar: f64, places: &[Vec<f64>]) -> AttachRow {
        let row = AttachRow::witnessed(name, "us", bar, places);
        let bare = row.bare.unwrap_or(f64::NAN);
        row.above_bare(bare)
    }

    /// The row, with how far it is from the bare pair's value.
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

pub(super) fn print(rows: &[AttachRow]) {
    println!("Medians of the rounds; the range is of what was measured while attached.");
    let mut table = Table::headed(
        "what | unit | bar | found | kept | attached | range | bare pair | exec | exec --control",
    );
    for row in rows {
        let number = |value: f64| match value.abs() {
            0.0..1.0 => format!("{value:.3}"),
            1.0..100.0 => format!("{value:.1}"),
            _ => format!("{value:.0}"),
        };
        let witness = |value: Option<f64>| value.map(number).unwrap_or_default();
        let sign = if row.is_share { "≥" } else { "≤" };
        let [least, most] = row.range.map(number);
        table.row(vec![
            row.name.clone(),
            row.unit.to_owned(),
            format!("{sign} {}", row.bar),
            number(row.found),
            if row.kept { "yes" } else { "no" }.to_owned(),
            number(row.attached),
            format!("{least} to {most}"),
            witness(row.bare),
            witness(row.exec),
            witness(row.control),
        ]);
    }
    table.print();
}
