//! The configuration of a call, as the runtime writes it to stdin.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{CniError, Reason};
use crate::options::{self, LinkOptions};
use crate::parameters::Parameters;

/// Versions of the specification, oldest first. Chained plugins are as in 0.3.1 since then.
pub(crate) const VERSIONS: [&str; 4] = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// Fields that the specification or a runtime has in each configuration, in addition to those
/// with names that start with `cni.dev/`.
const GENERAL: [&str; 13] = [
    "args",
    "capabilities",
    "cniVersion",
    "cniVersions",
    "disableCheck",
    "disableGC",
    "dns",
    "ipMasq",
    "ipam",
    "name",
    "prevResult",
    "runtimeConfig",
    "type",
];
/// Fields of this plugin.
const OWN: [&str; 8] = [
    "attach", "down", "link", "required", "seed", "socket", "to", "up",
];

/// A configuration.
#[derive(Debug)]
pub(crate) struct NetworkConfig<'a> {
    /// The version of the specification; empty if there is none.
    pub version: String,
    /// The name of the network.
    pub name: String,
    fields: BTreeMap<String, &'a RawValue>,
}

/// An attachment that a runtime still has (GC).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ValidAttachment {
    #[serde(rename = "containerID")]
    pub container: String,
    #[serde(rename = "ifname")]
    pub interface: String,
}

/// The part of a result that says which interfaces there are.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PreviousResult {
    #[serde(default)]
    pub interfaces: Vec<ResultInterface>,
}

/// An interface of a result.
#[derive(Debug, Deserialize)]
pub(crate) struct ResultInterface {
    pub name: String,
    /// The namespace; empty for interfaces of the machine.
    #[serde(default)]
    pub sandbox: String,
}

impl<'a> NetworkConfig<'a> {
    /// Reads a configuration, of which only version and name must be right.
    pub fn read(text: &'a [u8]) -> Result<NetworkConfig<'a>, CniError> {
        let fields: BTreeMap<String, &'a RawValue> = serde_json::from_slice(text)
            .map_err(|error| decode(format!("the configuration on stdin is no object: {error}")))?;
        let mut config = NetworkConfig {
            version: String::new(),
            name: String::new(),
            fields,
        };
        config.version = config.field("cniVersion")?.unwrap_or_default();
        config.name = config.field("name")?.unwrap_or_default();
        Ok(config)
    }

    /// Reads a field; `None` if it is not there, or null.
    fn field<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, CniError> {
        let Some(raw) = self.fields.get(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map_err(|error| decode(format!("field '{name}' of the configuration: {error}")))
    }

    /// Refuses fields that nothing reads: a link would lack what one of them says.
    pub fn refuse_unknown_fields(&self) -> Result<(), CniError> {
        let is_unknown = |name: &str| {
            !GENERAL.contains(&name) && !OWN.contains(&name) && !name.starts_with("cni.dev/")
        };
        let Some((name, value)) = self.fields.iter().find(|(name, _)| is_unknown(name)) else {
            return Ok(());
        };
        let message = format!("unsupported field in the configuration: \"{name}\": {value}");
        let details = format!("fields of this plugin are {}", OWN.join(", "));
        Err(CniError::new(Reason::Field, message).with_details(details))
    }

    /// Returns the result of the plugins before, byte for byte.
    pub fn previous(&self) -> Result<&'a str, CniError> {
        let previous = self.fields.get("prevResult").map(|raw| raw.get());
        previous.filter(|text| *text != "null").ok_or_else(|| {
            CniError::new(Reason::Configuration, "there is no prevResult").with_details(
                "this plugin creates no interface: put it into a list of plugins, after the one \
                 that does",
            )
        })
    }

    /// Returns the interfaces of that result.
    pub fn previous_result(&self) -> Result<PreviousResult, CniError> {
        serde_json::from_str(self.previous()?)
            .map_err(|error| decode(format!("field 'prevResult' of the configuration: {error}")))
    }

    /// Returns the path of the node's socket, if one is given.
    pub fn socket(&self) -> Result<Option<PathBuf>, CniError> {
        self.field("socket")
    }

    /// Whether a container without its link must not run.
    pub fn is_required(&self) -> Result<bool, CniError> {
        Ok(self.field("required")?.unwrap_or(true))
    }

    /// Returns the attachments that are valid (GC). Without a list, none is, as for the
    /// plugins of the CNI project.
    pub fn valid_attachments(&self) -> Result<Vec<ValidAttachment>, CniError> {
        // The second was the name in the first text of the specification 1.1.
        for name in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            if let Some(valid) = self.field(name)? {
                return Ok(valid);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the options of the link: those of the network, under those of the runtime,
    /// of the pod's annotations and of `CNI_ARGS`.
    pub fn options(&self, parameters: &Parameters) -> Result<LinkOptions, CniError> {
        let mut options = LinkOptions {
            link: self.field("link")?.unwrap_or_default(),
            up: self.field("up")?.unwrap_or_default(),
            down: self.field("down")?.unwrap_or_default(),
            to: self.field("to")?,
            seed: self.field("seed")?,
            attach: self.field("attach")?,
        };
        let runtime: Option<RuntimeFields> = self.field("runtimeConfig")?;
        let runtime = runtime.unwrap_or_default();
        options.overlay(runtime.longwire.unwrap_or_default());
        options.overlay(options::of_annotations(&runtime.annotations)?);
        options.overlay(options::of_arguments(&parameters.arguments)?);
        Ok(options)
    }
}

/// Capability arguments that the plugin reads.
#[derive(Debug, Default, Deserialize)]
struct RuntimeFields {
    #[serde(default)]
    longwire: Option<LinkOptions>,
    /// As containerd and CRI-O name it.
    #[serde(default, rename = "io.kubernetes.cri.pod-annotations")]
    annotations: BTreeMap<String, String>,
}

fn decode(message: String) -> CniError {
    CniError::new(Reason::Decode, message)
}
