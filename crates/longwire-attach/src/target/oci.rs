//! Annotations in a container's configuration.
//!
//! The configuration is `config.json` from the OCI runtime specification. Kubernetes names are in
//! the annotations of containerd (`pkg/cri/annotations`) and CRI-O (`pkg/annotations`); nerdctl
//! copies its labels to annotations.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::container::{Container, Runtime};
use super::name::PodName;

/// Annotations of containerd's CRI plugin.
const CONTAINERD: Keys = Keys {
    pod_name: &["io.kubernetes.cri.sandbox-name"],
    pod_namespace: &["io.kubernetes.cri.sandbox-namespace"],
    kind: "io.kubernetes.cri.container-type",
    names: &["io.kubernetes.cri.container-name", "nerdctl/name"],
};

/// Annotations of CRI-O. Keys without `cri-o` are the kubelet's labels.
const CRI_O: Keys = Keys {
    pod_name: &["io.kubernetes.pod.name", "io.kubernetes.cri-o.KubeName"],
    pod_namespace: &[
        "io.kubernetes.pod.namespace",
        "io.kubernetes.cri-o.Namespace",
    ],
    kind: "io.kubernetes.cri-o.ContainerType",
    names: &["io.kubernetes.container.name", "io.kubernetes.cri-o.Name"],
};

/// The annotation that names a container's manager: `cri-o` or `libpod`.
const MANAGER: &str = "io.container.manager";

/// Annotation keys. The first key present is used.
struct Keys {
    pod_name: &'static [&'static str],
    pod_namespace: &'static [&'static str],
    /// The value is `sandbox` or `container`.
    kind: &'static str,
    names: &'static [&'static str],
}

/// The relevant parts of `config.json`.
#[derive(Debug, Default, Deserialize)]
pub struct Configuration {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    #[serde(default)]
    linux: Linux,
}

#[derive(Debug, Default, Deserialize)]
struct Linux {
    #[serde(default)]
    namespaces: Vec<Namespace>,
}

/// A container's namespace: a new one, or an existing one at a path.
#[derive(Debug, Deserialize)]
struct Namespace {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    path: PathBuf,
}

impl Configuration {
    /// Returns the runtime named by the annotations.
    pub fn manager(&self) -> Option<Runtime> {
        match self.annotations.get(MANAGER).map(String::as_str) {
            Some("cri-o") => Some(Runtime::CriO),
            Some("libpod") => Some(Runtime::Podman),
            _ if self.annotations.contains_key(CRI_O.kind) => Some(Runtime::CriO),
            _ => None,
        }
    }

    /// Copies names, pod and network to a container.
    pub fn apply(&self, container: &mut Container) {
        for keys in [&CONTAINERD, &CRI_O] {
            keys.apply(&self.annotations, container);
        }
        let mut namespaces = self.linux.namespaces.iter();
        let network = namespaces.find(|namespace| namespace.kind == "network");
        // A path in `/proc` may belong to another process by now.
        container.network = network
            .map(|network| network.path.clone())
            .filter(|path| path.is_absolute() && !path.starts_with("/proc"));
    }
}

impl Keys {
    fn apply(&self, annotations: &BTreeMap<String, String>, container: &mut Container) {
        let first = |keys: &[&str]| -> Option<String> {
            let mut values = keys.iter().filter_map(|key| annotations.get(*key));
            values.find(|value| !value.is_empty()).cloned()
        };
        let is_sandbox = annotations
            .get(self.kind)
            .is_some_and(|kind| kind == "sandbox");
        container.is_sandbox |= is_sandbox;
        if let (Some(name), Some(namespace)) = (first(self.pod_name), first(self.pod_namespace)) {
            container.pod = Some(PodName { namespace, name });
        }
        // Use the pod's name for a sandbox, because CRI-O names every sandbox "POD".
        if !is_sandbox {
            let names = self.names.iter().filter_map(|key| annotations.get(*key));
            container
                .names
                .extend(names.filter(|name| !name.is_empty()).cloned());
        }
    }
}
