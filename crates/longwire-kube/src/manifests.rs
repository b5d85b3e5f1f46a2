//! Manifests: the Helm chart's templates with its default values.
//!
//! The templates use only values and conditions on whole lines, so plain manifests are generated
//! without Helm.

use serde_norway::Value;

/// Manifests, and the templates that they are generated from.
const TEMPLATES: [(&str, &str); 3] = [
    (
        "rbac.yaml",
        include_str!("../../../packaging/helm/longwire/templates/rbac.yaml"),
    ),
    (
        "node.yaml",
        include_str!("../../../packaging/helm/longwire/templates/node.yaml"),
    ),
    (
        "controller.yaml",
        include_str!("../../../packaging/helm/longwire/templates/controller.yaml"),
    ),
];

const VALUES: &str = include_str!("../../../packaging/helm/longwire/values.yaml");

/// Namespace of plain manifests.
const NAMESPACE: &str = "longwire-system";

/// The first line of a file that is made from another.
const MADE: &str = "# Made by `longwire-kube manifests`; do not edit.\n";

/// Error of a template.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The values are not YAML.
    #[error("values.yaml: {0}")]
    Values(#[from] serde_norway::Error),
    /// An unsupported placeholder, or one without a value.
    #[error("{file}:{line}: no value for '{placeholder}'")]
    Placeholder {
        /// File.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Text between the braces.
        placeholder: String,
    },
}

/// Returns the CRDs as YAML.
///
/// # Errors
/// If serialisation fails.
pub fn crds() -> Result<String, TemplateError> {
    let mut text = MADE.to_owned();
    for definition in crate::api::definitions() {
        text += "---\n";
        text += &serde_norway::to_string(&definition)?;
    }
    Ok(text)
}

/// Returns the chart's template of the CRDs.
///
/// # Errors
/// If serialisation fails.
pub fn crds_template() -> Result<String, TemplateError> {
    let crds = crds()?;
    Ok(format!(
        "{{{{- if .Values.crds.install }}}}\n{crds}{{{{- end }}}}\n"
    ))
}

/// Returns the plain manifests: file names and contents.
///
/// # Errors
/// If a template is unsupported.
pub fn manifests() -> Result<Vec<(String, String)>, TemplateError> {
    let values: Value = serde_norway::from_str(VALUES)?;
    let mut files = vec![("crds.yaml".to_owned(), crds()?)];
    for (name, template) in TEMPLATES {
        let text = render(name, template, &values)?;
        files.push((name.to_owned(), format!("{MADE}{text}")));
    }
    Ok(files)
}

fn render(file: &str, template: &str, values: &Value) -> Result<String, TemplateError> {
    let mut text = String::new();
    for (index, line) in template.lines().enumerate() {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            let (placeholder, after) = after.split_once("}}").unwrap_or((after, ""));
            let value = value(placeholder.trim(), values);
            let value = value.ok_or_else(|| TemplateError::Placeholder {
                file: file.to_owned(),
                line: index + 1,
                placeholder: placeholder.trim().to_owned(),
            })?;
            text += before;
            text += &value;
            rest = after;
        }
        text += rest;
        text.push('\n');
    }
    Ok(text)
}

fn value(placeholder: &str, values: &Value) -> Option<String> {
    if placeholder == ".Release.Namespace" {
        return Some(NAMESPACE.to_owned());
    }
    let path = placeholder.strip_prefix(".Values.")?;
    let value = path
        .split('.')
        .try_fold(values, |value, name| value.get(name))?;
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}
