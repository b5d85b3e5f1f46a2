//! Network parts, and their simulation.

use std::sync::Arc;

use longwire_engine::{Bytes, FrameMeta, LinkConfig, LinkId, LinkSpec, Nanos, NoLoader, PathId};
use longwire_packet::bridge::{BridgeConfig, PortIndex, Switching};
use longwire_packet::classify::{Classifier, Matcher, Order};
use longwire_runtime::OnPortLoss;
use longwire_runtime::deciding::pipeline::run_to_end;
use longwire_runtime::deciding::{
    LinkCells, NetworkParts, OutputFrame, Sharding, Simulation, Target,
};
use longwire_runtime::record::Recorder;

use crate::composed::ports::{Frame, Sink, arrivals};

/// Counters of each link.
pub type AllCells = Vec<Arc<LinkCells>>;

pub fn spec(line: &str) -> LinkSpec {
    line.parse().expect("a valid line")
}

pub fn link(line: &str) -> LinkConfig {
    spec(line).build(&NoLoader).expect("no plugins")
}

/// Returns rules from pairs of a matcher and a path.
pub fn rules(unmatched: Target, rules: &[(&str, u32)]) -> Classifier<Target> {
    let mut classifier = Classifier::new(Order::First, unmatched);
    for (matcher, path) in rules {
        let matcher: Matcher = matcher.parse().expect("a valid matcher");
        let target = Target::Path(PathId(*path));
        classifier.insert(matcher, target, 0).expect("room for it");
    }
    classifier
}

/// Returns a switch that joins two ports.
pub fn pair() -> BridgeConfig {
    BridgeConfig {
        switching: Switching::Pairs(vec![(PortIndex(0), PortIndex(1))]),
        ..BridgeConfig::new(2)
    }
}

/// Returns a network's parts, without orders, and its counters.
pub fn parts(
    switch: BridgeConfig,
    classifier: Classifier<Target>,
    links: impl IntoIterator<Item = LinkConfig>,
    paths: &[&[u32]],
) -> (NetworkParts, AllCells) {
    let links: Vec<_> = links
        .into_iter()
        .map(|link| (link, Arc::default()))
        .collect();
    let cells = links.iter().map(|(_, cells)| Arc::clone(cells)).collect();
    let ids = |path: &&[u32]| path.iter().map(|link| LinkId(*link)).collect();
    let parts = NetworkParts {
        switch,
        classifier,
        links,
        paths: paths.iter().map(ids).collect(),
        orders: Vec::new(),
        on_port_loss: OnPortLoss::End,
        sharding: Sharding::one(),
        remote: None,
    };
    (parts, cells)
}

/// Runs the stages of a live run in virtual time. Inputs provide up to 7 frames at once, and
/// outputs accept 3 per flush. Returns the frames that left each port, with their releases.
pub fn run_stages(parts: NetworkParts, seed: u64, inputs: Vec<Vec<Frame>>) -> Vec<Vec<Frame>> {
    let sinks: Vec<Sink> = inputs.iter().map(|_| Sink::default()).collect();
    let ports = inputs.into_iter().zip(&sinks).map(|(frames, sink)| {
        let mut port = sink.port(false);
        port.room = 3;
        (arrivals(frames, 7), port)
    });
    run_to_end(ports.collect(), parts, (seed, Bytes(64 << 20)), None).expect("it runs");
    sinks.iter().map(Sink::take).collect()
}

/// Simulates a two-port network frame by frame until all frames have left. Each frame has a port
/// and an arrival. Returns the frames that leave each port.
pub fn simulate<'a, T>(
    parts: NetworkParts,
    recorder: Option<Box<dyn Recorder>>,
    frames: impl IntoIterator<Item = (usize, Nanos, &'a [u8])>,
    mut taken: impl FnMut(&OutputFrame<'_>) -> T,
) -> Vec<Vec<T>> {
    let simulation = Simulation::new(&["a", "b"], parts, 3, Nanos::ZERO, recorder);
    let mut simulation = simulation.expect("it starts");
    let mut left = vec![Vec::new(), Vec::new()];
    let mut out = |frame: OutputFrame<'_>| {
        left[usize::from(frame.port.0)].push(taken(&frame));
        Ok::<(), ()>(())
    };
    let mut frames: Vec<_> = frames.into_iter().collect();
    frames.sort_by_key(|(port, at, _)| (*at, *port));
    for (port, at, bytes) in frames {
        let meta = FrameMeta::new(at, bytes.len() as u32);
        let entered = simulation.frame(PortIndex(port as u16), meta, bytes, &mut out);
        entered.expect("nothing fails");
    }
    let advanced = simulation.advance(Nanos::MAX, &mut out);
    advanced.expect("nothing fails");
    assert_eq!(simulation.stop().error, None);
    left
}
