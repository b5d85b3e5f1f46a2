//! Plans of networks.

use longwire_io::port::Port;

use super::pair::{PairPlan, is_pair};
use crate::config::LinkSetup;
use crate::fabric::FabricParts;
use crate::feed::Feed;
use crate::replay::{ReplayConfig, ReplayOutput, ReplayPlan};

/// The plan of a network: its ports or feeds, and what carries frames between
/// them.
pub struct NetworkPlan(pub(super) Carriers);

/// The carriers of the frames.
pub(super) enum Carriers {
    /// A link that decides frames as they arrive: the least work for a frame.
    Pair(Box<PairPlan>),
    /// Links that decide in event time, so that they can be changed.
    Fabric(Vec<(String, Port)>, Box<FabricParts>),
    /// Links that decide as of the times of feeds.
    Replay(ReplayPlan),
}

impl NetworkPlan {
    /// Returns the plan of a link between two ports that no one changes: `ab`
    /// from `a` to `b`, `ba` back.
    pub fn link(a: Port, b: Port, ab: LinkSetup, ba: Option<LinkSetup>) -> NetworkPlan {
        NetworkPlan(Carriers::Pair(Box::new(PairPlan {
            a,
            b,
            ab,
            ba,
            names: ["a", "b"].map(str::to_owned),
        })))
    }

    /// Returns the plan of a network between these ports, each with its name,
    /// that can be changed while it runs.
    pub fn changeable(ports: Vec<(String, Port)>, parts: FabricParts) -> NetworkPlan {
        NetworkPlan(Carriers::Fabric(ports, Box::new(parts)))
    }

    /// Returns the plan of a network between these ports that nothing changes but the orders
    /// of its `parts`; `links` are the names of its links, by number.
    pub fn fixed(
        ports: Vec<(String, Port)>,
        parts: FabricParts,
        links: impl IntoIterator<Item = String>,
    ) -> NetworkPlan {
        if ports.len() == 2 && is_pair(&parts) {
            let pair = PairPlan::of(ports, parts, links);
            return NetworkPlan(Carriers::Pair(Box::new(pair)));
        }
        NetworkPlan::changeable(ports, parts)
    }

    /// Returns the plan of a replay of `feed` to its outputs, which share its order.
    pub fn replay(
        feed: Box<dyn Feed>,
        outputs: Vec<ReplayOutput>,
        config: ReplayConfig,
    ) -> NetworkPlan {
        NetworkPlan(Carriers::Replay(ReplayPlan {
            feed,
            outputs,
            config,
        }))
    }
}
