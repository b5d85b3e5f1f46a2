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
        let socket = dir.file("control.sock");
        let arguments = [arguments, &["--control", &socket]].concat();
        let network = site.start_with(&arguments);
        ControlledRun {
            site,
            network,
            socket,
            dir,
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

    /// Asserts the round trip between the first two stations, in milliseconds, with a
    /// margin for a busy machine.
    fn takes(&self, delays: f64) {
        self.takes_to(&crate::common::site::address(1).to_string(), delays);
    }

    fn takes_to(&self, address: &str, delays: f64) {
        self.site.assert_round_trip(0, address, delays);
    }

    /// Asserts that no reply arrives.
    fn is_cut(&self) {
        assert_eq!(self.site.round_trip(0, 1), None);
    }
}
