//! The topology of a replay: one link per output.

use std::sync::Arc;

use longwire_engine::LinkSpec;
use longwire_packet::bridge::Switching;

use super::builder::{Builder, Matches, NewLink};
use super::options::OptionStore;
use super::plan::Topology;
use super::problem::{Diagnostics, Place, Problem};

impl Topology {
    /// Returns a topology with one link per output of a replay, by name. Frames come from a
    /// feed, so it has no ports or rules; it can be viewed but not run.
    ///
    /// # Errors
    /// An invalid or duplicate name.
    pub fn outputs(
        outputs: impl IntoIterator<Item = (String, LinkSpec)>,
    ) -> Result<Topology, Vec<Problem>> {
        let diagnostics = Diagnostics::new("the command line", "");
        let mut builder = Builder::new(diagnostics, OptionStore::default());
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
        let topology = Topology::outputs(outputs.clone()).expect("it is right");
        let names: Vec<&str> = topology.links.iter().map(|link| &*link.name).collect();
        assert_eq!(names, ["out1", "out2"]);
        assert!(topology.links.iter().all(|link| link.down.is_none()));
        assert_eq!(topology.links[0].up.to_string(), "rate=10mbit");
        assert_eq!((topology.rules.len(), topology.ports.len()), (0, 0));
        let twice = [outputs[0].clone(), outputs[0].clone()];
        assert!(Topology::outputs(twice).is_err());
    }
}
