//! Places networks. Agents run their parts from one secret per network.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::json;

use super::events::EventPublisher;
use super::sums::{Verdict, conditions, name_of, notices, refusal, verdicts};
use super::{MANAGER, without_version};
use crate::api::{Network, NetworkStatus, NodeStatus, Reason};
use crate::facts::{Labels, PodFacts, labels_of};
use crate::network::{Agents, LABEL, PlacedNetwork, new_key, place, secret_name};
use crate::plan::{Hindrance, ResourceKey};
use crate::slice::{ResourceKind, apply_slice, apply_status, unless_status};
use crate::watch::{Watch, Watcher, all};

/// UDP port of the first network.
const UDP_PORT: u16 = 4800;

/// Label selector of the emulators' pods.
const EMULATORS: &str = "app.kubernetes.io/name=longwire,app.kubernetes.io/component=node";

/// Networks, with the inputs to their placement.
pub(super) struct Networks {
    watcher: Watcher,
    namespace: String,
    owner: Option<OwnerReference>,
    events: EventPublisher,
    networks: Watch<Network>,
    secrets: Watch<SecretCopy>,
    /// Written networks, by secret. Needed because the cache may lag behind, and a new key would
    /// restart all hosts.
    written: BTreeMap<String, PlacedNetwork>,
    emulators: Watch<PodFacts>,
    /// All pods and namespaces; `None` until there is a network.
    all: Option<AllPods>,
    slices: BTreeMap<ResourceKey, Vec<NodeStatus>>,
}

/// A cached secret.
#[derive(Clone, Debug, PartialEq)]
struct SecretCopy {
    name: String,
    /// UID of the secret's owner.
    owner: Option<String>,
    /// `None` if the secret is invalid.
    network: Option<PlacedNetwork>,
}

/// Pods and namespaces of the whole cluster.
type AllPods = (Watch<PodFacts>, Watch<(String, Labels)>);

/// The parts of the cluster's state that affect placement.
struct PlacementInput {
    pods: Vec<PodFacts>,
    namespaces: BTreeMap<String, Labels>,
    agents: Agents,
    /// Cached secrets, by name.
    copies: BTreeMap<String, SecretCopy>,
    /// Placed networks, by secret.
    secrets: BTreeMap<String, PlacedNetwork>,
}

impl Networks {
    pub fn new(
        watcher: Watcher,
        namespace: &str,
        owner: Option<OwnerReference>,
        events: EventPublisher,
    ) -> Networks {
        let client = &watcher.client;
        let of_networks = all().labels(&format!("{LABEL}=true"));
        let secrets = Api::namespaced(client.clone(), namespace);
        let pods = Api::namespaced(client.clone(), namespace);
        Networks {
            networks: watcher.start(Api::all(client.clone()), all(), without_version),
            secrets: watcher.start(secrets, of_networks, secret_of),
            emulators: watcher.start(pods, all().labels(EMULATORS), PodFacts::of),
            all: None,
            written: BTreeMap::new(),
            owner,
            slices: BTreeMap::new(),
            watcher,
            namespace: namespace.to_owned(),
            events,
        }
    }

    /// Places all networks, and removes the secrets of deleted ones. Does nothing while a cache is
    /// incomplete.
    ///
    /// # Errors
    /// If the API server fails.
    pub async fn update(&mut self, nodes: &BTreeSet<String>) -> Result<(), kube::Error> {
        let (Some(networks), Some(secrets)) =
            (self.networks.cache.objects(), self.secrets.cache.objects())
        else {
            return Ok(());
        };
        let keys: BTreeSet<ResourceKey> = networks.iter().map(ResourceKey::of).collect();
        self.slices.retain(|key, _| keys.contains(key));
        let names: BTreeSet<String> = keys.iter().map(secret_name).collect();
        self.written.retain(|name, _| names.contains(name));
        for secret in secrets.iter().filter(|it| !names.contains(&it.name)) {
            let (secrets, parameters) = (self.secrets_api(), DeleteParams::default());
            unless_status(404, secrets.delete(&secret.name, &parameters).await)?;
        }
        if networks.is_empty() {
            return Ok(());
        }
        let Some(mut input) = self.input(secrets) else {
            return Ok(());
        };
        for network in &networks {
            self.update_network(network, &mut input, nodes).await?;
        }
        Ok(())
    }

    fn input(&mut self, copies: Vec<SecretCopy>) -> Option<PlacementInput> {
        let watcher = &self.watcher;
        let (pods, namespaces) = self.all.get_or_insert_with(|| {
            (
                watcher.start(Api::all(watcher.client.clone()), all(), PodFacts::of),
                watcher.start(Api::all(watcher.client.clone()), all(), labels_of),
            )
        });
        let emulators = self.emulators.cache.objects()?.into_iter();
        let running = emulators.filter(|pod| !pod.has_ended);
        let network_of = |copy: &SecretCopy| Some((copy.name.clone(), copy.network.clone()?));
        let mut secrets: BTreeMap<_, _> = copies.iter().filter_map(network_of).collect();
        secrets.extend(self.written.clone());
        let copies = copies.into_iter().map(|copy| (copy.name.clone(), copy));
        Some(PlacementInput {
            pods: pods.cache.objects()?,
            namespaces: namespaces.cache.objects()?.into_iter().collect(),
            agents: running
                .filter_map(|pod| Some((pod.node?, *pod.addresses.first()?)))
                .collect(),
            copies: copies.collect(),
            secrets,
        })
    }

    async fn update_network(
        &mut self,
        network: &Network,
        input: &mut PlacementInput,
        nodes: &BTreeSet<String>,
    ) -> Result<(), kube::Error> {
        let key = ResourceKey::of(network);
        let empty = NetworkStatus::default();
        let status = network.status.as_ref().unwrap_or(&empty);
        for slice in status.nodes.iter().filter(|it| !nodes.contains(&it.node)) {
            let client = &self.watcher.client;
            apply_slice(client, ResourceKind::Network, &key, &slice.node, None).await?;
        }
        let name = secret_name(&key);
        let before = input.secrets.get(&name);
        let (placed, hindrance) = match placed(network, before, input)? {
            // The network keeps its last placement, which its remaining pods still use.
            Err(hindrance) => (before.cloned(), Some(hindrance)),
            Ok(wanted) => {
                if !self.write_secret(&name, &wanted, input).await? {
                    tracing::info!(network = %key, "its secret is not in the cache yet");
                    return Ok(());
                }
                input.secrets.insert(name, wanted.clone());
                (Some(wanted), None)
            }
        };
        self.write_status(&key, network, status, placed.as_ref(), hindrance)
            .await
    }

    async fn write_status(
        &mut self,
        key: &ResourceKey,
        network: &Network,
        status: &NetworkStatus,
        placed: Option<&PlacedNetwork>,
        hindrance: Option<Hindrance>,
    ) -> Result<(), kube::Error> {
        let generation = network.metadata.generation.unwrap_or_default();
        let verdicts = network_verdicts(generation, &status.nodes, hindrance.as_ref());
        let places = placed.map(|placed| (placed.ports.clone(), placed.hosts.clone()));
        let (placement, addresses) = places.unwrap_or_default();
        let wanted = NetworkStatus {
            observed_generation: Some(generation),
            ports: Some(i64::try_from(network.spec.ports.len()).unwrap_or(i64::MAX)),
            hosts: Some(addresses.len() as i64),
            udp_port: placed.map(|placed| i64::from(placed.udp_port)),
            placement,
            addresses,
            conditions: conditions(generation, verdicts, &status.conditions),
            nodes: Vec::new(),
        };
        let before = NetworkStatus {
            nodes: Vec::new(),
            ..status.clone()
        };
        if wanted != before {
            self.watcher.metrics.count_status_write("Network");
            apply_status::<Network>(&self.watcher.client, key, MANAGER, json!(wanted)).await?;
        }
        let slices = self.slices.entry(key.clone()).or_default();
        let notices = notices(slices, &status.nodes);
        slices.clone_from(&status.nodes);
        let reference = network.object_ref(&());
        for notice in notices {
            self.events.publish(&reference, notice).await?;
        }
        Ok(())
    }

    /// Writes a secret unless it is up to date. Returns whether it is up to date now: if a secret
    /// exists but is not cached, its key is unknown.
    async fn write_secret(
        &mut self,
        name: &str,
        wanted: &PlacedNetwork,
        input: &PlacementInput,
    ) -> Result<bool, kube::Error> {
        let owner = self.owner.as_ref().map(|owner| &owner.uid);
        let copy = input.copies.get(name);
        let is_same = |copy: &SecretCopy| {
            copy.network.as_ref() == Some(wanted)
                && (owner.is_none() || copy.owner.as_ref() == owner)
        };
        if copy.is_some_and(is_same) {
            return Ok(true);
        }
        let secrets = self.secrets_api();
        let secret = secret(name, wanted, self.owner.as_ref());
        if copy.is_none() {
            let parameters = PostParams {
                field_manager: Some(MANAGER.to_owned()),
                ..PostParams::default()
            };
            if unless_status(409, secrets.create(&parameters, &secret).await)? {
                self.note_written(name, wanted);
                return Ok(true);
            }
            if !self.written.contains_key(name) {
                return Ok(false);
            }
        }
        let parameters = PatchParams::apply(MANAGER).force();
        secrets
            .patch(name, &parameters, &Patch::Apply(secret))
            .await?;
        self.note_written(name, wanted);
        Ok(true)
    }

    fn note_written(&mut self, name: &str, network: &PlacedNetwork) {
        tracing::info!(network = %network.resource(), hosts = network.hosts.len(), "placed");
        self.written.insert(name.to_owned(), network.clone());
    }

    fn secrets_api(&self) -> Api<Secret> {
        Api::namespaced(self.watcher.client.clone(), &self.namespace)
    }
}

/// Places a network; keeps the key, UDP port and pods of an earlier placement.
fn placed(
    network: &Network,
    before: Option<&PlacedNetwork>,
    input: &PlacementInput,
) -> Result<Result<PlacedNetwork, Hindrance>, kube::Error> {
    let udp_port = udp_port(&secret_name(&ResourceKey::of(network)), &input.secrets);
    let ports = before.map_or(&[][..], |before| &before.ports);
    let (pods, namespaces) = (&input.pods, &input.namespaces);
    let mut placed = place(network, pods, namespaces, &input.agents, ports, udp_port);
    if let Ok(placed) = &mut placed {
        placed.key = match before {
            Some(before) => before.key.clone(),
            None => new_key()
                .map_err(|_| kube::Error::Service("cannot get random bytes for a key".into()))?,
        };
    }
    Ok(placed)
}

fn secret(name: &str, network: &PlacedNetwork, owner: Option<&OwnerReference>) -> Secret {
    let labels = [(LABEL, "true"), ("app.kubernetes.io/name", "longwire")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.into_iter().collect()),
            owner_references: owner.map(|owner| vec![owner.clone()]),
            ..ObjectMeta::default()
        },
        data: Some(network.data()),
        type_: Some("longwire.dev/network".to_owned()),
        ..Secret::default()
    }
}

/// Returns the UDP port of a network: the current port, or else the first free one. If two networks
/// have the same port, the one whose secret comes first by name keeps it.
pub(super) fn udp_port(name: &str, networks: &BTreeMap<String, PlacedNetwork>) -> u16 {
    let port_of = |network: &PlacedNetwork| network.udp_port;
    if let Some(port) = networks.get(name).map(port_of) {
        let mut earlier = networks.iter().take_while(|(other, _)| *other != name);
        if !earlier.any(|(_, other)| port_of(other) == port) {
            return port;
        }
    }
    let used: BTreeSet<u16> = networks.values().map(port_of).collect();
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
    let message = "each port has a pod, and each node an emulator";
    let mut placed = Verdict::new("Placed", Some(true), "AllPorts", message);
    if let Some(hindrance) = hindrance {
        let (reason, message) = (name_of(hindrance.reason), &hindrance.message);
        placed = Verdict::new("Placed", Some(false), reason, message);
        if hindrance.reason == Reason::Refused {
            let slice = NodeStatus {
                message: Some(hindrance.message.clone()),
                pointer: hindrance.pointer.clone(),
                remedy: hindrance.remedy.clone(),
                ..NodeStatus::default()
            };
            let accepted = verdicts.iter_mut().find(|it| it.kind == "Accepted");
            if let Some(accepted) = accepted {
                *accepted = Verdict::new("Accepted", Some(false), "Refused", refusal(&slice));
            }
        }
    }
    verdicts.insert(1, placed);
    verdicts
}

fn secret_of(secret: Secret) -> SecretCopy {
    let owner = secret.owner_references().first();
    SecretCopy {
        name: secret.name_any(),
        owner: owner.map(|owner| owner.uid.clone()),
        network: PlacedNetwork::of(&secret),
    }
}
