//! Plans of networks.

use longwire_io::port::Port;

use super::pair::{PairPlan, is_pair};
use crate::config::LinkSetup;
use crate::fabric::FabricParts;
use crate::feed::Feed;
use crate::replay::{ReplayConfig, ReplayOutput, ReplayPlan};

/// The plan of a network: its ports or feeds, and the links between them.
pub struct NetworkPlan(pub(super) Carriers);

/// The links and their inputs.
pub(super) enum Carriers {
    /// A link that decides at arrival: the least work per frame.
    Pair(Box<PairPlan>),
    /// Links in event time, which can be changed.
    Fabric(Vec<(String, Port)>, Box<FabricParts>),
    /// Links that decide at the times of a feed.
    Replay(ReplayPlan),
}

impl NetworkPlan {
    /// Returns the plan of an unchangeable link: `ab` from `a` to `b`, `ba` back.
    pub fn link(a: Port, b: Port, ab: LinkSetup, ba: Option<LinkSetup>) -> NetworkPlan {
        NetworkPlan(Carriers::Pair(Box::new(PairPlan {
            a,
            b,
            ab,
            ba,
            names: ["a", "b"].map(str::to_owned),
        })))
    }

    /// Returns the plan of a network between named ports that can be changed at run time.
    pub fn changeable(ports: Vec<(String, Port)>, parts: FabricParts) -> NetworkPlan {
        NetworkPlan(Carriers::Fabric(ports, Box::new(parts)))
    }

    /// Returns the plan of a network that changes only by the orders of its `parts`;
    /// `links` are its link names by number.
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

    /// Returns the plan of a replay of `feed`; its outputs share the order of departures.
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
