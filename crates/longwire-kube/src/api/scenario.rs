//! The resource `Scenario`.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::link::options_schema;

/// Changes of links with time.
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
    /// The changes. Each one adds to those before it.
    #[schemars(length(min = 1, max = 1000))]
    pub steps: Vec<Step>,
    /// The repetition; without it, the last step stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
}

/// A change at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Step {
    /// The time since the start, or since the start of the repetition, as in `90s`, `1m30s`
    /// or `500ms`.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub at: String,
    /// Options that change, as in the `link` of a Link; null takes an option away
    /// (`kubectl apply` without `--server-side` leaves nulls out).
    #[schemars(schema_with = "options_schema")]
    pub set: Map<String, Value>,
}

/// A repetition of all steps, each time from the options of the Link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Repeat {
    /// The time from one start to the next, as in `60s`; longer than all steps.
    #[schemars(length(max = 32), regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    #[x_kube(validation = Rule::new("duration(self) >= duration('100ms')")
        .message("every must be at least 100ms"))]
    pub every: String,
    /// The number of times in all; without end if there is none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub times: Option<i64>,
}
