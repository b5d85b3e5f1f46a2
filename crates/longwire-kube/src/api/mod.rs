//! Custom resources of the group `longwire.dev`.

// Fields of two printer columns of one resource are not duplicates.
#![allow(clippy::duplicated_attributes)]

mod link;
mod network;
mod scenario;
mod selection;
mod status;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use link::{FailMode, Link, LinkSpec, LinkStatus};
pub use network::{HostPlacement, Network, NetworkSpec, NetworkStatus, PortPlacement};
pub use scenario::{Repeat, Scenario, ScenarioSpec, Step};
pub use selection::{Peers, PodSelection};
pub use status::{NodeStatus, Reason};

/// API group.
pub const GROUP: &str = "longwire.dev";

/// API version.
pub const VERSION: &str = "v1alpha1";

/// Returns the definitions of all resources, ordered by name.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Link::crd(), Network::crd(), Scenario::crd()]
}
