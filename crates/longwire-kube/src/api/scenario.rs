//! The resource `Scenario`.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::link::options_schema;

/// Timed changes of links.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "longwire.dev",
    version = "v1alpha1",
    kind = "Scenario",
    namespaced,
    derive = "PartialEq",
    shortname = "lws",
    category = "longwire",
    doc = "Timed changes of the Links that name it.",
    printcolumn(name = "First", type_ = "string", json_path = ".spec.steps[0].at"),
    printcolumn(name = "Every", type_ = "string", json_path = ".spec.repeat.every"),
    printcolumn(name = "Times", type_ = "integer", json_path = ".spec.repeat.times"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ScenarioSpec {
    /// Changes in order of time; each adds to the previous ones.
    #[schemars(length(min = 1, max = 1000))]
    pub steps: Vec<Step>,
    /// Repetition; default: the last step holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// Timed change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Step {
    /// Time since the start of the scenario or of the repetition, such as `90s`, `1m30s` or
    /// `500ms`.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub at: String,
    /// Options to set, like `link` of a Link; null removes an option (`kubectl apply` drops
    /// nulls unless `--server-side` is given).
    #[schemars(schema_with = "options_schema")]
    pub set: Map<String, Value>,
}

/// Repetition of all steps, each from the options of the Link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Repeat {
    /// Repetition period, such as `60s`; longer than all steps.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('100ms')")
        .message("every must be at least 100ms"))]
    pub every: String,
    /// Number of repetitions; default: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub times: Option<i64>,
}
