//! `longwire ctl` against running networks with real stations: effects are measured on
//! their packets.
//!
//! Without permission to create namespaces, these tests pass without running, except in
//! CI.

mod carrier;
mod documented;
mod effects;
mod pair;
mod reading;

use std::cell::RefCell;

use crate::common::recording::{FrameTimes, delivered, longest_delays};
use crate::common::site::{Network, Site};
use crate::common::{Ran, longwire, write};
use longwire_testbed::support::Folder;
use serde_json::Value;

/// A network with a control socket.
struct ControlledRun {
    site: Site,
    network: Network,
    socket: String,
    dir: Folder,
    pinged: RefCell<Vec<Pinged>>,
}

/// Pings over links that did not change meanwhile.
struct Pinged {
    /// The run's clock before and after, in seconds.
    from: f64,
    until: f64,
    /// Delay of the links in both directions, in milliseconds.
    delays: f64,
}

impl ControlledRun {
    /// Runs this topology between `stations` stations.
    fn new(stations: usize, topology: &str) -> Option<ControlledRun> {
        let site = Site::new(stations)?;
        let dir = Folder::new();
        let file = dir.file("network.toml");
        write(&file, topology.as_bytes());
        Some(ControlledRun::of(site, dir, &[&file]))
    }

    /// Runs a network with these arguments.
    fn of(site: Site, dir: Folder, arguments: &[&str]) -> ControlledRun {
        let (socket, log) = (dir.file("control.sock"), dir.file("log.csv"));
        let arguments = [arguments, &["--control", &socket, "--log", &log]].concat();
        let network = site.start_with(&arguments);
        ControlledRun {
            site,
            network,
            socket,
            dir,
            pinged: RefCell::default(),
        }
    }

    /// Runs `ctl` with these words.
    fn ctl(&self, words: &str) -> Ran {
        let own = ["ctl", "--control", &self.socket];
        let words: Vec<&str> = own.into_iter().chain(words.split(' ')).collect();
        longwire(&words)
    }

    /// Like [`ControlledRun::ctl`], for a command that must succeed; returns the
    /// output.
    fn well(&self, words: &str) -> String {
        let ran = self.ctl(words);
        assert_eq!(ran.code, 0, "{words}: {ran:?}");
        ran.stdout
    }

    /// As [`ControlledRun::well`], with `--json`; returns the parsed output.
    fn json(&self, words: &str) -> Value {
        let text = self.well(&format!("{words} --json"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words}: {error}: {text}"))
    }

    /// Returns the seconds that the network has run, by its own clock.
    fn elapsed(&self) -> f64 {
        let status = self.json("status");
        status["elapsed_s"].as_f64().expect("seconds")
    }

    /// Asserts the round trip between the first two stations, in milliseconds: here that no
    /// reply is early, and at the stop what the links decided.
    #[track_caller]
    fn takes(&self, delays: f64) {
        self.takes_to(&crate::common::site::address(1).to_string(), delays);
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

    /// Stops the run and compares the delays of all pings with its log; returns the report.
    #[track_caller]
    fn stop(self) -> Value {
        self.stop_with_frames("").0
    }

    /// Like [`ControlledRun::stop`]; also returns the frames that one direction of a link
    /// delivered.
    #[track_caller]
    fn stop_with_frames(self, link: &str) -> (Value, Vec<FrameTimes>) {
        let report = self.network.stop();
        let log = self.dir.file("log.csv");
        for pinged in self.pinged.take() {
            // Each ping crosses one link up and one down.
            let delays = longest_delays(&log, pinged.from..=pinged.until);
            let found = delays.values().sum::<i64>() as f64 / 1e6;
            // Besides the delay, a frame of 98 bytes at 10 Mbit/s.
            let over = found - pinged.delays;
            assert!(
                (0.0..0.1).contains(&over),
                "{found} ms, not {} ms",
                pinged.delays
            );
        }
        (report, delivered(&log, link))
    }

    /// Asserts that no reply arrives.
    fn is_cut(&self) {
        assert_eq!(self.site.round_trip(0, 1), None);
    }
}
