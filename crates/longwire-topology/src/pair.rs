//! The topology of one link between two ports, as the command line describes it.

use std::path::Path;
use std::sync::Arc;

use longwire_engine::presets::Duplex;
use longwire_packet::bridge::{BridgeConfig, PortIndex, Reserved, Switching};

use super::builder::{Builder, Matches, NewLink};
use super::named_text;
use super::options::OptionStore;
use super::plan::{PortPlan, Topology};
use super::problem::{Complaints, Place, Problem};
use super::scenario::{self, ScenarioText};
use super::switching::PortCheck;
use super::timeline::Timeline;

/// The name of the source in messages.
const SOURCE: &str = "the command line";

/// The name of the link.
const LINK: &str = "link";

impl Topology {
    /// Returns one link for all frames between two ports, up from the first to the
    /// second. Events come from the file `scenario`.
    ///
    /// # Errors
    /// A port that cannot be, and the problems of the scenario.
    pub fn pair(
        ports: [PortPlan; 2],
        link: Duplex,
        scenario: Option<&Path>,
    ) -> Result<Topology, Vec<Problem>> {
        let scenario = scenario.map(named_text).transpose()?;
        let mut complaints = Complaints::new(SOURCE, "");
        let mut check = PortCheck::default();
        for port in &ports {
            check.port(port, &(0..0), &mut complaints);
        }
        let bridge = BridgeConfig {
            switching: Switching::Pairs(vec![(PortIndex(0), PortIndex(1))]),
            reserved: Reserved::Pass,
            ..BridgeConfig::new(2)
        };
        let files = link.up.files().chain(link.down.files()).collect();
        let mut builder = Builder::new(complaints, OptionStore::default());
        let matches = Matches {
            forward: vec![format!("in-port={}", ports[0].name)],
            back: Vec::new(),
        };
        builder.ports = ports.into();
        builder.pairs = Some(vec![(PortIndex(0), PortIndex(1))]);
        builder.add_link(NewLink {
            name: LINK.to_owned(),
            up: Arc::new(link.up),
            down: Some(Arc::new(link.down)),
            matches,
            place: Place::Span(0..0),
            position: 0,
        });
        let mut timeline = Timeline::default();
        if let Some((name, text)) = &scenario {
            timeline = scenario::read(ScenarioText { name, text }, &mut builder);
        }
        let mut topology = builder.finish(bridge, timeline)?;
        Arc::make_mut(&mut topology.files).extend::<Vec<String>>(files);
        Ok(topology)
    }
}
