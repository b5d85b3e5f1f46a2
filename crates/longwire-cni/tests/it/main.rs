//! The plugin with a scripted node.
#![allow(missing_docs, reason = "tests")]

mod add;
mod node;
mod others;

use std::collections::BTreeMap;
use std::path::Path;

use longwire_cni::Answer;
use serde_json::{Value, json};

/// Result of previous plugins, with spaces that would not survive parsing.
const PREVIOUS: &str = r#"{ "cniVersion":"1.1.0","interfaces":[{"name":"cni0"},
  {"name":"eth0","sandbox":"/proc/self/ns/net"}],"ips":[], "x": 1.50 }"#;

/// Name of the attachment of a call's container.
const NAME: &str = "cni-pods-3fa9c0ffee123-eth0-6cccd2360e708fe4";

/// A socket that no node listens on.
const AWAY: &str = "/nonexistent/node.sock";

struct Call {
    variables: BTreeMap<&'static str, String>,
    config: Value,
    previous: Option<&'static str>,
}

impl Call {
    /// Creates a call to the node at this socket, with all variables set.
    fn new(operation: &str, socket: &Path) -> Call {
        let variables = [
            ("CNI_COMMAND", operation),
            ("CNI_CONTAINERID", "3fa9c0ffee1234567890"),
            ("CNI_NETNS", "/proc/self/ns/net"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", "/opt/cni/bin"),
        ];
        let variables = variables.map(|(name, text)| (name, text.to_owned()));
        let config = json!({
            "cniVersion": "1.1.0", "name": "pods", "type": "longwire-cni", "socket": socket,
        });
        Call {
            variables: BTreeMap::from(variables),
            config,
            previous: Some(PREVIOUS),
        }
    }

    fn variable(mut self, name: &'static str, text: &str) -> Call {
        self.variables.insert(name, text.to_owned());
        self
    }

    fn field(mut self, name: &str, value: Value) -> Call {
        self.config[name] = value;
        self
    }

    fn without_previous(mut self) -> Call {
        self.previous = None;
        self
    }

    fn run(&self) -> Answer {
        let mut text = self.config.to_string();
        if let Some(previous) = self.previous {
            text.truncate(text.len() - 1);
            text += &format!(",\"prevResult\":{previous}}}");
        }
        self.run_with(&text)
    }

    /// Runs the call with different text on stdin.
    fn run_with(&self, text: &str) -> Answer {
        let variable = |name: &str| self.variables.get(name).cloned();
        longwire_cni::answer(&variable, || Ok(text.as_bytes().to_vec()))
    }

    /// Runs a call that must succeed; returns its output.
    #[track_caller]
    fn well(&self) -> String {
        let answer = self.run();
        assert!(answer.is_success, "{answer:?}");
        answer.output
    }

    /// Runs a call that must fail with this code, and with this part in its message or details.
    #[track_caller]
    fn fails(&self, code: u64, part: &str) {
        let said = error_of(&self.run(), code);
        assert!(said.contains(part), "{said}");
    }
}

/// Returns the message of an error with this code.
#[track_caller]
fn error_of(answer: &Answer, code: u64) -> String {
    assert!(!answer.is_success, "{answer:?}");
    let error: Value = serde_json::from_str(&answer.output).expect("JSON");
    assert_eq!(error["code"], code, "{error}");
    assert_eq!(error["cniVersion"], "1.1.0", "{error}");
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    format!("{}; {}", text("msg"), text("details"))
}
