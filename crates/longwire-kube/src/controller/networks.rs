//! Placement of networks: a secret for each, from which the agents run their parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Pod, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::runtime::events::Recorder;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use tokio::sync::Notify;

use super::MANAGER;
use super::links::publish;
use super::sums::{Verdict, name_of, notices, refusal, verdicts};
use crate::api::{Network, NetworkStatus, NodeStatus, Reason};
use crate::facts::{Labels, PodFacts};
use crate::metrics::Metrics;
use crate::network::{Agents, LABEL, PlacedNetwork, SecretNetwork, new_key, place, secret_name};
use crate::plan::{Hindrance, ResourceKey};
use crate::slice::{ResourceKind, apply_slice, apply_status, field_manager};
use crate::watch::{Watch, all, start};

/// The UDP port of the first network.
const UDP_PORT: u16 = 4800;

/// The labels of the pods with emulators.
const EMULATORS: &str = "app.kubernetes.io/name=longwire,app.kubernetes.io/component=node";

/// Networks, and what their placement follows from.
pub(super) struct Networks {
    client: Client,
    namespace: String,
    recorder: Recorder,
    metrics: Metrics,
    changed: Arc<Notify>,
    networks: Watch<Network>,
    secrets: Watch<(String, Option<SecretNetwork>)>,
    emulators: Watch<PodFacts>,
    /// All pods and namespaces, from the first network on.
    all: Option<AllPods>,
    slices: BTreeMap<ResourceKey, Vec<NodeStatus>>,
}

/// The pods and the labels of namespaces of the whole cluster.
struct AllPods {
    pods: Watch<PodFacts>,
    namespaces: Watch<(String, Labels)>,
}

/// The part of the cluster that placements follow from.
struct Placeable {
    pods: Vec<PodFacts>,
    namespaces: BTreeMap<String, Labels>,
    agents: Agents,
    secrets: BTreeMap<String, SecretNetwork>,
}

impl Networks {
    pub fn new(
        client: Client,
        namespace: &str,
        recorder: Recorder,
        changed: &Arc<Notify>,
        metrics: Metrics,
    ) -> Networks {
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        let emulators = Api::<Pod>::namespaced(client.clone(), namespace);
        let of_networks = all().labels(&format!("{LABEL}=true"));
        Networks {
            networks: start(
                Api::all(client.clone()),
                all(),
                network_of,
                changed,
                &metrics,
            ),
            secrets: start(secrets, of_networks, secret_of, changed, &metrics),
            emulators: start(
                emulators,
                all().labels(EMULATORS),
                facts_of,
                changed,
                &metrics,
            ),
            all: None,
            slices: BTreeMap::new(),
            client,
            namespace: namespace.to_owned(),
            recorder,
            metrics,
            changed: Arc::clone(changed),
        }
    }

    /// Places all networks, and removes the secrets of those that do not exist any more.
    /// Does nothing while a cache is not complete.
    ///
    /// # Errors
    /// The API server does not answer, or refuses something.
    pub async fn update(&mut self, nodes: &BTreeSet<String>) -> Result<(), kube::Error> {
        let (Some(networks), Some(secrets)) =
            (self.networks.cache.objects(), self.secrets.cache.objects())
        else {
            return Ok(());
        };
        let keys: BTreeSet<ResourceKey> = networks.iter().map(key_of).collect();
        self.slices.retain(|key, _| keys.contains(key));
        let names: BTreeSet<String> = keys.iter().map(secret_name).collect();
        for (name, _) in secrets.iter().filter(|(name, _)| !names.contains(name)) {
            self.remove_secret(name).await?;
        }
        if networks.is_empty() {
            return Ok(());
        }
        let Some(mut placeable) = self.placeable(secrets) else {
            return Ok(());
        };
        for network in &networks {
            self.update_network(network, &mut placeable, nodes).await?;
        }
        Ok(())
    }

    fn placeable(&mut self, secrets: Vec<(String, Option<SecretNetwork>)>) -> Option<Placeable> {
        let (client, changed, metrics) = (&self.client, &self.changed, &self.metrics);
        let AllPods { pods, namespaces } = self.all.get_or_insert_with(|| {
            let pods = Api::<Pod>::all(client.clone());
            let namespaces = Api::<Namespace>::all(client.clone());
            AllPods {
                pods: start(pods, all(), facts_of, changed, metrics),
                namespaces: start(namespaces, all(), labels_of, changed, metrics),
            }
        });
        let emulators = self.emulators.cache.objects()?.into_iter();
        let running = emulators.filter(|pod| !pod.has_ended);
        let secrets = secrets.into_iter();
        Some(Placeable {
            pods: pods.cache.objects()?,
            namespaces: namespaces.cache.objects()?.into_iter().collect(),
            agents: running
                .filter_map(|pod| Some((pod.node?, *pod.addresses.first()?)))
                .collect(),
            secrets: secrets
                .filter_map(|(name, network)| Some((name, network?)))
                .collect(),
        })
    }

    async fn update_network(
        &mut self,
        network: &Network,
        placeable: &mut Placeable,
        nodes: &BTreeSet<String>,
    ) -> Result<(), kube::Error> {
        let key = key_of(network);
        let empty = NetworkStatus::default();
        let status = network.status.as_ref().unwrap_or(&empty);
        for slice in status.nodes.iter().filter(|it| !nodes.contains(&it.node)) {
            let manager = field_manager(&slice.node);
            apply_slice(&self.client, ResourceKind::Network, &key, &manager, None).await?;
        }
        let name = secret_name(&key);
        let before = placeable.secrets.get(&name).cloned();
        let udp_port = udp_port(before.as_ref(), &placeable.secrets);
        let old_ports = before.as_ref().map(|before| before.network.ports.clone());
        let placement = place(
            &key.namespace,
            &network.spec,
            &placeable.pods,
            &placeable.namespaces,
            &placeable.agents,
            &old_ports.unwrap_or_default(),
            udp_port,
        );
        let mut hindrance = None;
        // A network that cannot be placed now goes on as it was: its other pods keep it.
        let mut placed = before.clone();
        match placement {
            Err(reason) => hindrance = Some(reason),
            Ok(placement) => {
                let key_text = match &before {
                    Some(before) => before.key.clone(),
                    None => new_key().map_err(|_| no_random())?,
                };
                let wanted = SecretNetwork {
                    key: key_text,
                    network: PlacedNetwork {
                        namespace: key.namespace.clone(),
                        name: key.name.clone(),
                        generation: network.metadata.generation.unwrap_or_default(),
                        udp_port,
                        file: placement.file,
                        hosts: placement.hosts,
                        ports: placement.ports,
                        seed: network.spec.seed,
                    },
                };
                if before.as_ref() != Some(&wanted) {
                    self.write_secret(&name, &wanted).await?;
                    tracing::info!(network = %key, hosts = wanted.network.hosts.len(), "placed");
                }
                placeable.secrets.insert(name, wanted.clone());
                placed = Some(wanted);
            }
        }
        self.write_status(&key, network, status, placed.as_ref(), hindrance)
            .await
    }

    async fn write_status(
        &mut self,
        key: &ResourceKey,
        network: &Network,
        status: &NetworkStatus,
        placed: Option<&SecretNetwork>,
        hindrance: Option<Hindrance>,
    ) -> Result<(), kube::Error> {
        let generation = network.metadata.generation.unwrap_or_default();
        let verdicts = network_verdicts(generation, &status.nodes, hindrance.as_ref());
        let now = Timestamp::now();
        let conditions = verdicts
            .into_iter()
            .map(|verdict| verdict.into_condition(generation, &status.conditions, now));
        let placed = placed.map(|placed| &placed.network);
        let wanted = NetworkStatus {
            observed_generation: Some(generation),
            ports: Some(i64::try_from(network.spec.ports.len()).unwrap_or(i64::MAX)),
            hosts: Some(placed.map_or(0, |it| it.hosts.len() as i64)),
            udp_port: placed.map(|placed| i64::from(placed.udp_port)),
            placement: placed
                .map(|placed| placed.ports.clone())
                .unwrap_or_default(),
            addresses: placed
                .map(|placed| placed.hosts.clone())
                .unwrap_or_default(),
            conditions: conditions.collect(),
            nodes: Vec::new(),
        };
        let before = NetworkStatus {
            nodes: Vec::new(),
            ..status.clone()
        };
        if wanted != before {
            self.metrics.count_status_write("Network");
            apply_status::<Network>(&self.client, key, MANAGER, json!(wanted)).await?;
        }
        let slices = self.slices.entry(key.clone()).or_default();
        let notices = notices(slices, &status.nodes);
        slices.clone_from(&status.nodes);
        let reference = network.object_ref(&());
        for notice in notices {
            publish(&self.recorder, &reference, notice).await?;
        }
        Ok(())
    }

    async fn write_secret(&self, name: &str, network: &SecretNetwork) -> Result<(), kube::Error> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        let labels = [(LABEL, "true"), ("app.kubernetes.io/name", "longwire")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels.into_iter().collect()),
                ..ObjectMeta::default()
            },
            data: Some(network.data()),
            type_: Some("longwire.dev/network".to_owned()),
            ..Secret::default()
        };
        let parameters = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(secret);
        secrets.patch(name, &parameters, &patch).await?;
        Ok(())
    }

    async fn remove_secret(&self, name: &str) -> Result<(), kube::Error> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        match secrets.delete(name, &DeleteParams::default()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the UDP port of a network: the one that it has, or the first that is free.
fn udp_port(before: Option<&SecretNetwork>, others: &BTreeMap<String, SecretNetwork>) -> u16 {
    if let Some(before) = before {
        return before.network.udp_port;
    }
    let used: BTreeSet<u16> = others.values().map(|it| it.network.udp_port).collect();
    let free = (UDP_PORT..=u16::MAX).find(|port| !used.contains(port));
    free.unwrap_or(UDP_PORT)
}

/// Returns the conditions of a network.
fn network_verdicts(
    generation: i64,
    slices: &[NodeStatus],
    hindrance: Option<&Hindrance>,
) -> Vec<Verdict> {
    let mut verdicts = verdicts(generation, slices);
    let mut placed = Verdict {
        kind: "Placed",
        is_true: Some(true),
        reason: "AllPorts",
        message: "each port has a pod, and each of their nodes an emulator".to_owned(),
    };
    if let Some(hindrance) = hindrance {
        placed.is_true = Some(false);
        placed.reason = name_of(hindrance.reason);
        placed.message.clone_from(&hindrance.message);
        if hindrance.reason == Reason::Refused {
            let slice = NodeStatus {
                message: Some(hindrance.message.clone()),
                pointer: hindrance.pointer.clone(),
                remedy: hindrance.remedy.clone(),
                ..NodeStatus::default()
            };
            let accepted = verdicts.iter_mut().find(|it| it.kind == "Accepted");
            if let Some(accepted) = accepted {
                accepted.is_true = Some(false);
                accepted.reason = "Refused";
                accepted.message = refusal(&slice);
            }
        }
    }
    verdicts.insert(1, placed);
    verdicts
}

/// An error of the kernel's random numbers, as one of a request that was not sent.
fn no_random() -> kube::Error {
    kube::Error::Service("no random bytes for a key".into())
}

fn key_of(network: &Network) -> ResourceKey {
    ResourceKey {
        namespace: network.namespace().unwrap_or_default(),
        name: network.name_any(),
    }
}

fn network_of(mut network: Network) -> Network {
    network.metadata.managed_fields = None;
    network.metadata.resource_version = None;
    network
}

fn secret_of(secret: Secret) -> (String, Option<SecretNetwork>) {
    (secret.name_any(), SecretNetwork::of(&secret))
}

fn facts_of(pod: Pod) -> PodFacts {
    PodFacts::of(&pod)
}

fn labels_of(namespace: Namespace) -> (String, Labels) {
    (namespace.name_any(), namespace.labels().clone())
}
