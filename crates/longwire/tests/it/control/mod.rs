//! `longwire ctl` with running networks and real stations: effects are measured on the stations'
//! packets.
//!
//! Skipped without permission to create namespaces, except in CI.

mod carrier;
mod documented;
mod effects;
mod reading;

use std::cell::RefCell;
use std::collections::HashMap;

use longwire_testbed::support::Folder;
use serde_json::Value;

use crate::common::program::{Ran, longwire};
use crate::common::recording::{FrameTimes, all_delivered};
use crate::common::site::{Network, Site, address};
use crate::common::{number, write};

/// A network with a control socket.
struct ControlledRun {
    site: Site,
    network: Network,
    socket: String,
    dir: Folder,
    pinged: RefCell<Vec<Pinged>>,
}

/// Pings over links that did not change in the meantime.
struct Pinged {
    /// Start and end of the pings on the run's clock, in seconds.
    from: f64,
    until: f64,
    /// Sum of the link delays in both directions, in milliseconds.
    delays: f64,
}

impl ControlledRun {
    /// Runs this topology between `stations` stations.
    fn new(stations: usize, topology: &str) -> Option<ControlledRun> {
        let site = Site::new(stations)?;
        let dir = Folder::new();
        let file = dir.file("network.toml");
        write(&file, topology);
        Some(ControlledRun::of(site, dir, &file))
    }

    /// Runs a network with these arguments.
    fn of(site: Site, dir: Folder, arguments: &str) -> ControlledRun {
        let (socket, log) = (dir.file("control.sock"), dir.file("log.csv"));
        let network = site.start(&format!("{arguments} --control {socket} --log {log}"));
        ControlledRun {
            site,
            network,
            socket,
            dir,
            pinged: RefCell::default(),
        }
    }

    /// Runs `ctl` with these arguments.
    fn ctl(&self, words: &str) -> Ran {
        longwire(format!("ctl --control {} {words}", self.socket))
    }

    /// Like [`ControlledRun::ctl`], for a command that must succeed; returns the
    /// output.
    #[track_caller]
    fn well(&self, words: &str) -> String {
        self.ctl(words).well().stdout
    }

    /// Like [`ControlledRun::well`], with `--json`; returns the parsed output.
    #[track_caller]
    fn json(&self, words: &str) -> Value {
        self.ctl(&format!("{words} --json")).well().json()
    }

    /// Returns the elapsed time on the run's clock, in seconds.
    fn elapsed(&self) -> f64 {
        number(&self.json("status")["elapsed_s"])
    }

    /// Pings between the first two stations and asserts that no reply arrives before `delays` ms.
    /// [`ControlledRun::stop`] compares the delays with the log.
    #[track_caller]
    fn takes(&self, delays: f64) {
        self.takes_to(&address(1).to_string(), delays);
    }

    #[track_caller]
    fn takes_to(&self, address: &str, delays: f64) {
        let from = self.elapsed();
        self.site.assert_not_early(0, address, delays);
        let until = self.elapsed();
        self.pinged.borrow_mut().push(Pinged {
            from,
            until,
            delays,
        });
    }

    /// Stops the run and compares the delays of all pings with the log; returns the report and the
    /// delivered frames.
    #[track_caller]
    fn stop(self) -> (Value, Vec<FrameTimes>) {
        let report = self.network.stop();
        let frames = all_delivered(&self.dir.file("log.csv"));
        for pinged in self.pinged.take() {
            // Each ping crosses one link up and one link down.
            let nanos = |seconds: f64| (seconds * 1e9) as i64;
            let range = nanos(pinged.from)..=nanos(pinged.until);
            let mut delays: HashMap<&str, i64> = HashMap::new();
            for frame in frames.iter().filter(|it| range.contains(&it.arrival)) {
                let longest = delays.entry(&frame.link).or_default();
                *longest = frame.delay.max(*longest);
            }
            let found = delays.values().sum::<i64>() as f64 / 1e6;
            // Serialisation of a 98-byte frame at 10 Mbit/s adds to the delay.
            let over = found - pinged.delays;
            assert!(
                (0.0..0.1).contains(&over),
                "{found} ms, not {} ms",
                pinged.delays
            );
        }
        (report, frames)
    }

    /// Asserts that pings get no reply.
    #[track_caller]
    fn is_cut(&self) {
        assert_eq!(self.site.round_trip(0, 1), None);
    }
}
