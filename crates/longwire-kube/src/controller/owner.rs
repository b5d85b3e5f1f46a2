//! Owner of the objects that the controller creates.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, ResourceExt};

/// Name of the controller's Deployment.
const DEPLOYMENT: &str = "longwire-controller";

/// Returns a reference to the controller's Deployment, with which the cluster removes secrets and
/// the lease. `None` for a controller outside of the cluster.
///
/// # Errors
/// If the API server fails.
pub(super) async fn owner(
    client: &Client,
    namespace: &str,
) -> Result<Option<OwnerReference>, kube::Error> {
    let deployments = Api::<Deployment>::namespaced(client.clone(), namespace);
    let deployment = deployments.get_opt(DEPLOYMENT).await?;
    Ok(deployment.and_then(|deployment| {
        Some(OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            name: deployment.name_any(),
            uid: deployment.uid()?,
            controller: None,
            block_owner_deletion: None,
        })
    }))
}
