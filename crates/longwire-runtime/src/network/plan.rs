//! Network plans.

use longwire_io::port::Port;

use super::pair::{PairPlan, is_pair};
use crate::config::LinkSetup;
use crate::deciding::NetworkParts;
use crate::feed::Feed;
use crate::replay::{ReplayConfig, ReplayOutput, ReplayPlan};

/// A network's plan: its ports or feed, and the links between them.
pub struct NetworkPlan(pub(super) Carriers);

/// The links and their inputs.
pub(super) enum Carriers {
    /// Links between two ports that never change, with the least work per frame.
    Pair(Box<PairPlan>),
    /// Links in event time, which can change.
    Network(Vec<(String, Port)>, Box<NetworkParts>),
    /// Links that decide at a feed's times.
    Replay(ReplayPlan),
}

impl NetworkPlan {
    /// Returns the plan of an unchangeable link: `ab` from `a` to `b`, and `ba` back.
    pub fn link(a: Port, b: Port, ab: LinkSetup, ba: Option<LinkSetup>) -> NetworkPlan {
        let ports = [("a".to_owned(), a), ("b".to_owned(), b)];
        let links = [Some(ab), ba].into_iter().flatten().collect();
        NetworkPlan::pair(ports, links, false)
    }

    fn pair(ports: [(String, Port); 2], links: Vec<LinkSetup>, unsharded: bool) -> NetworkPlan {
        NetworkPlan(Carriers::Pair(Box::new(PairPlan {
            ports,
            links,
            unsharded,
        })))
    }

    /// Returns the plan of a network between named ports that can change at run time.
    pub fn changeable(ports: Vec<(String, Port)>, parts: NetworkParts) -> NetworkPlan {
        NetworkPlan(Carriers::Network(ports, Box::new(parts)))
    }

    /// Returns the plan of a network that changes only by the orders in its `parts`. `links`
    /// contains the link names, by number.
    pub fn fixed(
        ports: Vec<(String, Port)>,
        parts: NetworkParts,
        links: impl IntoIterator<Item = String>,
    ) -> NetworkPlan {
        match <[(String, Port); 2]>::try_from(ports) {
            Ok(ports) if is_pair(&parts) => {
                let links = links.into_iter().zip(parts.links);
                let links = links.map(|(name, (config, _))| LinkSetup::new(name, config));
                NetworkPlan::pair(ports, links.collect(), !parts.sharding.is_one())
            }
            Ok(ports) => NetworkPlan::changeable(ports.into(), parts),
            Err(ports) => NetworkPlan::changeable(ports, parts),
        }
    }

    /// Returns the plan of a replay of `feed`, whose outputs share one order of departures.
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
