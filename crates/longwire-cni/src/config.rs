//! Network configuration, which runtimes write to stdin.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{CniError, Reason};
use crate::options::{self, LinkOptions};
use crate::parameters::Parameters;

/// Supported versions of the specification, oldest first. 0.3.1 introduced chained plugins.
pub(crate) const VERSIONS: [&str; 4] = ["0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// Fields of the specification and of runtimes, in addition to those in `cni.dev/`.
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
/// Fields specific to this plugin.
const OWN: [&str; 8] = [
    "attach", "down", "link", "required", "seed", "socket", "to", "up",
];

/// A network configuration.
#[derive(Debug)]
pub(crate) struct NetworkConfig<'a> {
    /// Specification version; empty if missing.
    pub version: String,
    pub name: String,
    fields: BTreeMap<String, &'a RawValue>,
}

/// An attachment that is still in use, according to the runtime (GC).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ValidAttachment {
    #[serde(rename = "containerID")]
    pub container: String,
    #[serde(rename = "ifname")]
    pub interface: String,
}

/// Interfaces of a previous result.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PreviousResult {
    #[serde(default)]
    pub interfaces: Vec<ResultInterface>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ResultInterface {
    pub name: String,
    /// Network namespace; empty for interfaces of the machine.
    #[serde(default)]
    pub sandbox: String,
}

impl<'a> NetworkConfig<'a> {
    /// Parses a configuration; decodes only the version and the name.
    pub fn read(text: &'a [u8]) -> Result<NetworkConfig<'a>, CniError> {
        let fields: BTreeMap<String, &'a RawValue> =
            serde_json::from_slice(text).map_err(|error| {
                decode(format!(
                    "configuration on stdin is not a JSON object: {error}"
                ))
            })?;
        let mut config = NetworkConfig {
            version: String::new(),
            name: String::new(),
            fields,
        };
        config.version = config.field("cniVersion")?.unwrap_or_default();
        config.name = config.field("name")?.unwrap_or_default();
        Ok(config)
    }

    /// Parses a field; `None` if it is missing or null.
    fn field<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, CniError> {
        let Some(raw) = self.fields.get(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map_err(|error| decode(format!("configuration field '{name}': {error}")))
    }

    /// Refuses unknown fields, which are probably misspelt.
    pub fn refuse_unknown_fields(&self) -> Result<(), CniError> {
        let is_unknown = |name: &str| {
            !GENERAL.contains(&name) && !OWN.contains(&name) && !name.starts_with("cni.dev/")
        };
        let Some((name, value)) = self.fields.iter().find(|(name, _)| is_unknown(name)) else {
            return Ok(());
        };
        let message = format!("unsupported configuration field \"{name}\": {value}");
        let details = format!("supported fields: {}", OWN.join(", "));
        Err(CniError::new(Reason::Field, message).with_details(details))
    }

    /// Returns the result of the previous plugins, byte for byte.
    pub fn previous(&self) -> Result<&'a str, CniError> {
        let previous = self.fields.get("prevResult").map(|raw| raw.get());
        previous.filter(|text| *text != "null").ok_or_else(|| {
            CniError::new(Reason::Configuration, "no prevResult").with_details(
                "this plugin creates no interface; list it after the plugin that does",
            )
        })
    }

    /// Returns the interfaces of the previous result.
    pub fn previous_result(&self) -> Result<PreviousResult, CniError> {
        serde_json::from_str(self.previous()?)
            .map_err(|error| decode(format!("configuration field 'prevResult': {error}")))
    }

    /// Returns the configured path of the node's socket.
    pub fn socket(&self) -> Result<Option<PathBuf>, CniError> {
        self.field("socket")
    }

    /// Returns whether a container must not start without its link.
    pub fn is_required(&self) -> Result<bool, CniError> {
        Ok(self.field("required")?.unwrap_or(true))
    }

    /// Returns the attachments still in use (GC). Like the CNI project's plugins, treats a missing
    /// list as empty.
    pub fn valid_attachments(&self) -> Result<Vec<ValidAttachment>, CniError> {
        // The first edition of version 1.1 used the second name.
        for name in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
            if let Some(valid) = self.field(name)? {
                return Ok(valid);
            }
        }
        Ok(Vec::new())
    }

    /// Returns the link options. Options from the runtime, annotations and `CNI_ARGS` override
    /// those of the configuration.
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

/// Capability arguments of the plugin.
#[derive(Debug, Default, Deserialize)]
struct RuntimeFields {
    #[serde(default)]
    longwire: Option<LinkOptions>,
    /// Annotations, by the field name of containerd and CRI-O.
    #[serde(default, rename = "io.kubernetes.cri.pod-annotations")]
    annotations: BTreeMap<String, String>,
}

fn decode(message: String) -> CniError {
    CniError::new(Reason::Decode, message)
}
