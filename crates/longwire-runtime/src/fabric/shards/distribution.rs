//! The distribution of a network's parts over shards, by the planner.

use std::num::NonZero;

use longwire_engine::{LinkConfig, LinkId};

use super::Sharding;
use crate::fabric::FabricParts;
use crate::host;
use crate::shards::{ShardCount, ShardLink, ShardPlan, plan};

impl FabricParts {
    /// Distributes the links over as many shards as are asked for and useful, which as
    /// many threads process as there are cores.
    ///
    /// The load of a link is the number of paths that cross it: nothing else is known
    /// before frames arrive.
    pub fn distribute(&mut self, shards: ShardCount) -> ShardPlan {
        let wanted = shards.wanted(self.links.len(), host::cores());
        let mut loads = vec![0; self.links.len()];
        for link in self.paths.iter().flatten() {
            if let Some(load) = loads.get_mut(link.0 as usize) {
                *load += 1;
            }
        }
        let links = self.links.iter().zip(loads);
        let links: Vec<ShardLink> = links
            .map(|((config, _), load)| ShardLink {
                lookahead: config.lookahead(),
                load,
                is_fixed: has_plugins(config),
            })
            .collect();
        let indices = |path: &Vec<LinkId>| path.iter().map(|link| link.0).collect();
        let paths: Vec<Vec<u32>> = self.paths.iter().map(indices).collect();
        let plan = plan(&links, paths.iter().map(Vec::as_slice), wanted);
        let threads = NonZero::new(plan.shards.min(host::cores())).unwrap_or(NonZero::<usize>::MIN);
        let is_one = plan.shards == 1;
        self.sharding =
            (!is_one).then(|| Sharding::new(plan.shard_of.clone(), plan.shards, threads));
        plan
    }
}

/// Whether models of a link are plugins, whose functions one thread calls.
fn has_plugins(config: &LinkConfig) -> bool {
    let models = config.describe();
    models.iter().any(|(_, model)| model.starts_with("plugin:"))
}
