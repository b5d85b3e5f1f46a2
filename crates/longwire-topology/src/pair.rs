//! Topologies defined on the command line: links between pairs of ports, or one link per replay
//! output.

use std::path::Path;
use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_engine::presets::Duplex;
use longwire_packet::bridge::{BridgeConfig, PortIndex, Reserved, Switching};

use super::builder::{Builder, Matches, NewLink};
use super::files::StartFiles;
use super::options::OptionStore;
use super::plan::{CarrierPlan, Direction, PortPlan, Topology, Unmatched};
use super::problem::{Diagnostics, Place, Problem};
use super::switching::PortCheck;
use super::{events, named_text};

/// Name shown in messages instead of a file name.
const SOURCE: &str = "the command line";

/// Name of the link.
const LINK: &str = "link";

/// A link crossed by all frames between two ports.
#[derive(Clone, Debug)]
pub struct PairPlan {
    /// Name of the link.
    pub link: String,
    /// The ports; direction up is from the first to the second.
    pub ports: [PortPlan; 2],
}

/// Properties of a link between two ports, without its models.
#[derive(Clone, Copy, Debug, Default)]
pub struct PairOptions {
    /// Whether direction down carries no frames.
    pub one_way: bool,
    /// Whether a port loses its carrier while the direction toward it is off.
    pub carrier: bool,
}

impl Topology {
    /// Returns a topology with one link between two ports; direction up is from the first to the
    /// second. `scenario` is a file name.
    ///
    /// # Errors
    /// If a port is invalid or the scenario has problems.
    pub fn pair(
        ports: [PortPlan; 2],
        link: Duplex,
        PairOptions { one_way, carrier }: PairOptions,
        scenario: Option<&Path>,
    ) -> Result<Topology, Vec<Problem>> {
        let pair = PairPlan {
            link: LINK.to_owned(),
            ports,
        };
        let mut topology = Topology::pairs(vec![pair], link, one_way, scenario)?;
        if one_way {
            topology.unmatched = Unmatched::Drop;
        }
        if carrier {
            let toward = [(1, Direction::Up), (0, Direction::Down)];
            let carriers = toward.iter().take(if one_way { 1 } else { 2 });
            let carriers = carriers.map(|(port, direction)| CarrierPlan {
                port: PortIndex(*port),
                links: vec![format!("{LINK}.{}", direction.name())],
            });
            topology.carriers = carriers.collect();
        }
        Ok(topology)
    }

    /// Returns a topology with several links, each between two ports, all with the same options.
    /// With `one_way`, direction down carries no frames.
    ///
    /// # Errors
    /// The errors of [`Topology::pair`].
    pub fn pairs(
        pairs: Vec<PairPlan>,
        link: Duplex,
        one_way: bool,
        scenario: Option<&Path>,
    ) -> Result<Topology, Vec<Problem>> {
        let scenario = scenario.map(named_text).transpose()?;
        let mut diagnostics = Diagnostics::new(SOURCE, "");
        let mut check = PortCheck::default();
        for port in pairs.iter().flat_map(|pair| &pair.ports) {
            check.port(port, &(0..0), &mut diagnostics);
        }
        let indices = |pair: u16| (PortIndex(2 * pair), PortIndex(2 * pair + 1));
        let switched: Vec<_> = (0..).map(indices).take(pairs.len()).collect();
        let bridge = BridgeConfig {
            switching: Switching::Pairs(switched),
            reserved: Reserved::Pass,
            ..BridgeConfig::new(u16::try_from(2 * pairs.len()).unwrap_or(u16::MAX))
        };
        let files = link.up.files().chain(link.down.files()).collect();
        let mut builder = Builder::new(diagnostics, OptionStore::with(StartFiles::any()));
        builder.topology.bridge = bridge;
        let (up, down) = (Arc::new(link.up), Arc::new(link.down));
        // Do not check these options here: building the links reports their warnings.
        let known = [&up, &down].map(|options| Arc::as_ptr(options) as usize);
        builder.judged.extend(known);
        builder.topology.ports = pairs.iter().flat_map(|pair| pair.ports.clone()).collect();
        for (position, pair) in pairs.into_iter().enumerate() {
            let forward = format!("in-port={}", pair.ports[0].name);
            let forward = (!one_way).then_some(forward);
            builder.add_link(NewLink {
                name: pair.link,
                up: Arc::clone(&up),
                down: (!one_way).then(|| Arc::clone(&down)),
                matches: Matches {
                    forward: forward.into_iter().collect(),
                    back: Vec::new(),
                },
                place: Place::Span(0..0),
                position,
            });
            if one_way {
                builder.one_way_from(PortIndex(2 * position as u16));
            }
        }
        if let Some(scenario) = &scenario {
            builder.topology.timeline = events::read_scenario(scenario, &mut builder);
        }
        let mut topology = builder.finish()?;
        Arc::make_mut(&mut topology.files).extend::<Vec<String>>(files);
        Ok(topology)
    }
}

impl Topology {
    /// Returns a topology with one link per replay output, named after it. Frames come from a feed,
    /// so there are no ports or rules. The topology is only for viewing, not for running.
    ///
    /// # Errors
    /// If a name is invalid or duplicate.
    pub fn outputs(
        outputs: impl IntoIterator<Item = (String, LinkSpec)>,
    ) -> Result<Topology, Vec<Problem>> {
        let store = OptionStore::with(StartFiles::any());
        let mut builder = Builder::new(Diagnostics::new(SOURCE, ""), store);
        for (position, (name, link)) in outputs.into_iter().enumerate() {
            builder.add_link(NewLink {
                name,
                up: Arc::new(link),
                down: None,
                matches: Matches::default(),
                place: Place::Span(0..0),
                position,
            });
        }
        builder.topology.bridge.switching = Switching::Pairs(Vec::new());
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_output_has_a_link_in_one_direction() {
        let slow: LinkSpec = "rate=10mbit".parse().expect("a valid line");
        let outputs = [
            ("out1".to_owned(), slow),
            ("out2".to_owned(), LinkSpec::default()),
        ];
        let topology = Topology::outputs(outputs.clone()).expect("valid outputs");
        let names: Vec<&str> = topology.links.iter().map(|link| &*link.name).collect();
        assert_eq!(names, ["out1", "out2"]);
        assert!(topology.links.iter().all(|link| link.down.is_none()));
        assert_eq!(topology.links[0].up.to_string(), "rate=10mbit");
        assert_eq!((topology.rules.len(), topology.ports.len()), (0, 0));
        let twice = [outputs[0].clone(), outputs[0].clone()];
        assert!(Topology::outputs(twice).is_err());
    }
}
