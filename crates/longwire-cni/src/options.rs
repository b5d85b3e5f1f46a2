//! Link options from several sources.

use std::collections::BTreeMap;

use longwire_runtime::{FileAccess, FileLoader, PluginUse};
use longwire_topology::{StartFiles, duplex_of_json};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::{CniError, Reason};

/// Prefix of annotation names.
const ANNOTATION: &str = "longwire.dev/";
/// Prefix of names in `CNI_ARGS`.
const ARGUMENT: &str = "LONGWIRE_";

/// Error for files named in annotations.
const NO_FILES: &str = "annotations cannot name files or plugins; use the network's configuration";

/// Link options from one source.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LinkOptions {
    /// Options for both directions.
    pub link: Map<String, Value>,
    /// Options for packets that the container sends.
    pub up: Map<String, Value>,
    /// Options for packets that the container receives.
    pub down: Map<String, Value>,
    /// Prefixes of remote addresses.
    pub to: Option<Vec<String>>,
    pub seed: Option<u64>,
    /// Whether to attach a link, if stated.
    pub attach: Option<bool>,
}

impl LinkOptions {
    /// Overrides these options with those of another source. Options for both directions in `over`
    /// also override options for one direction in `self`.
    pub fn overlay(&mut self, over: LinkOptions) {
        for name in over.link.keys() {
            self.up.remove(name);
            self.down.remove(name);
        }
        // Options imply a link, unless their source disables it.
        let asks = over.has_options().then_some(true);
        self.attach = over.attach.or(asks).or(self.attach);
        self.link.extend(over.link);
        self.up.extend(over.up);
        self.down.extend(over.down);
        self.to = over.to.or(self.to.take());
        self.seed = over.seed.or(self.seed);
    }

    fn has_options(&self) -> bool {
        let tables = [&self.link, &self.up, &self.down];
        tables.iter().any(|table| !table.is_empty()) || self.to.is_some() || self.seed.is_some()
    }

    /// Returns whether to attach a link.
    pub fn is_attached(&self) -> bool {
        self.attach.unwrap_or(true)
    }

    /// Returns the link options, including `up` and `down`.
    fn directed(&self) -> Map<String, Value> {
        let mut link = self.link.clone();
        for (name, table) in [("up", &self.up), ("down", &self.down)] {
            if !table.is_empty() {
                link.insert(name.to_owned(), json!(table));
            }
        }
        link
    }

    /// Returns the request for an interface in a namespace.
    pub fn request(&self, namespace: &str, interface: &str) -> Value {
        let mut request = json!({
            "target": { "netns": namespace },
            "interface": interface,
            "link": self.directed(),
        });
        if let Some(to) = &self.to {
            request["to"] = json!(to);
        }
        if let Some(seed) = self.seed {
            request["seed"] = json!(seed);
        }
        request
    }

    /// Parses `text` into a field. The error continues a sentence about the field.
    fn set(&mut self, field: &str, text: &str) -> Result<(), String> {
        match field {
            "link" => self.link = table(text)?,
            "up" => self.up = table(text)?,
            "down" => self.down = table(text)?,
            "to" => {
                let words = text.split([',', ' ']).filter(|word| !word.is_empty());
                self.to = Some(words.map(str::to_owned).collect());
            }
            "seed" => self.seed = Some(text.parse().map_err(|_| "is not a number")?),
            "attach" => self.attach = Some(text.parse().map_err(|_| "is not true or false")?),
            _ => return Err("is unknown; known: link, up, down, to, seed and attach".into()),
        }
        Ok(())
    }
}

/// Parses `delay=80ms loss=1%`, or a JSON object.
fn table(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let mut table = Map::new();
    for word in text.split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if !name.is_empty() => add(&mut table, name, value),
            _ => {
                return Err(format!(
                    "'{word}' is not OPTION=VALUE, such as delay=80ms loss=1%"
                ));
            }
        }
    }
    Ok(table)
}

/// Adds an option; repeated options become a list.
fn add(table: &mut Map<String, Value>, name: &str, value: &str) {
    let value = Value::from(value);
    match table.get_mut(name) {
        None => drop(table.insert(name.to_owned(), value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

/// Parses a pod's annotations, such as `longwire.dev/link`.
pub(crate) fn of_annotations(
    annotations: &BTreeMap<String, String>,
) -> Result<LinkOptions, CniError> {
    let mut options = LinkOptions::default();
    for (name, text) in annotations {
        let Some(field) = name.strip_prefix(ANNOTATION) else {
            continue;
        };
        let wrong = |reason: String| {
            let message = format!("pod annotation {name}: {reason}");
            CniError::new(Reason::Configuration, message)
        };
        options.set(field, text).map_err(wrong)?;
    }
    // Do not read files: the node reads them as root, but the pod's author may have no access.
    let loader = FileLoader::new()
        .with_access(FileAccess::Nothing(NO_FILES))
        .with_plugins(PluginUse::Refuse(NO_FILES));
    duplex_of_json(&options.directed(), &StartFiles::of(loader)).map_err(|problems| {
        let problems: Vec<String> = problems
            .iter()
            .map(|problem| format!("{}: {}", problem.field, problem.reason))
            .collect();
        let message = format!("pod annotations: {}", problems.join("; "));
        CniError::new(Reason::Configuration, message)
    })?;
    Ok(options)
}

/// Parses `CNI_ARGS` pairs: `LONGWIRE_DELAY=80ms`, `LONGWIRE_UP_RATE=5mbit`,
/// `LONGWIRE_TO=10.0.0.0/8`.
pub(crate) fn of_arguments(arguments: &[(String, String)]) -> Result<LinkOptions, CniError> {
    let mut options = LinkOptions::default();
    for (name, value) in arguments {
        let Some(option) = name.strip_prefix(ARGUMENT) else {
            continue;
        };
        let option = option.to_ascii_lowercase().replace('_', "-");
        match option.split_once('-') {
            _ if ["attach", "seed", "to"].contains(&&*option) => {
                options.set(&option, value).map_err(|reason| {
                    let message = format!("'{name}={value}' in CNI_ARGS {reason}");
                    CniError::new(Reason::Configuration, message)
                })?;
            }
            Some(("up", option)) => add(&mut options.up, option, value),
            Some(("down", option)) => add(&mut options.down, option, value),
            _ => add(&mut options.link, &option, value),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use longwire_testbed::support::{FileOption, Folder};

    use super::*;

    fn options(value: Value) -> LinkOptions {
        serde_json::from_value(value).expect("options")
    }

    fn annotated(pairs: &[(&str, &str)]) -> Result<LinkOptions, CniError> {
        let pairs = pairs
            .iter()
            .map(|(name, text)| (name.to_string(), text.to_string()));
        of_annotations(&pairs.collect())
    }

    #[test]
    fn options_of_both_directions_override() {
        let mut network = options(json!({
            "link": { "delay": "20ms", "rate": "1mbit" },
            "up": { "delay": "5ms", "loss": "1%" }, "seed": 3,
        }));
        let pod = options(json!({ "link": { "delay": "80ms" }, "down": { "rate": "2mbit" } }));
        network.overlay(pod);
        let request = network.request("/run/netns/a", "eth0");
        let expected = json!({
            "target": { "netns": "/run/netns/a" }, "interface": "eth0", "seed": 3,
            "link": {
                "delay": "80ms", "rate": "1mbit",
                "up": { "loss": "1%" }, "down": { "rate": "2mbit" },
            },
        });
        assert_eq!(request, expected);
    }

    #[test]
    fn options_imply_a_link() {
        let delay = options(json!({ "link": { "delay": "1ms" } }));
        let no = options(json!({ "attach": false }));
        for (sources, expected) in [
            (vec![], true),
            (vec![no.clone()], false),
            (vec![no.clone(), delay.clone()], true),
            (vec![no.clone(), LinkOptions::default()], false),
            (vec![delay.clone(), no.clone()], false),
            (vec![no, options(json!({ "attach": true }))], true),
        ] {
            let mut all = LinkOptions::default();
            sources
                .iter()
                .for_each(|source| all.overlay(source.clone()));
            assert_eq!(all.is_attached(), expected, "{sources:?}");
        }
    }

    #[test]
    fn annotations_are_words_or_json() {
        let found = annotated(&[
            ("example.com/x", "/"),
            (
                "longwire.dev/link",
                " delay=80ms loss=1%\nloss=nth:every=7 ",
            ),
            ("longwire.dev/up", r#"{ "rate": "5mbit" }"#),
            ("longwire.dev/to", "10.0.0.0/8, fd00::/8"),
            ("longwire.dev/attach", "true"),
            ("longwire.dev/seed", "7"),
        ]);
        let expected = options(json!({
            "link": { "delay": "80ms", "loss": ["1%", "nth:every=7"] }, "up": { "rate": "5mbit" },
            "to": ["10.0.0.0/8", "fd00::/8"], "attach": true, "seed": 7,
        }));
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn invalid_annotations_are_refused() {
        for (name, text, part) in [
            ("link", "80ms", "OPTION=VALUE"),
            ("link", "{", "EOF"),
            ("link", "rate=trace:/etc/shadow", "cannot name files"),
            ("link", r#"{"rate":"trace:\u002fetc"}"#, "cannot name files"),
            ("up", "loss=plugin:x.so", "cannot name files"),
            ("down", "delay=soon", "link.down.delay: "),
            ("seed", "-1", "not a number"),
            ("attach", "yes", "true or false"),
            ("lnik", "delay=1ms", "unknown"),
        ] {
            let error = annotated(&[(&format!("longwire.dev/{name}"), text)]);
            let error = error.expect_err(text);
            assert_eq!(error.reason, Reason::Configuration);
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    /// Refuses every file option, including paths without a `/`.
    #[test]
    fn annotations_name_no_files() {
        let folder = Folder::new();
        let present = folder.path().join("present");
        std::fs::write(&present, "swordfish").expect("a file");
        let present = present.display().to_string();
        for option in FileOption::all() {
            for path in [
                &*present,
                "/etc/shadow",
                "/nowhere",
                "Cargo.toml",
                "nowhere",
            ] {
                let text = option.text(path, folder.path());
                let words = format!("mtu=1500 {}={text}", option.option);
                let json = json!({ option.option: text }).to_string();
                for (name, text) in [("link", &words), ("link", &json), ("up", &json)] {
                    // A preset covers both directions.
                    if (name, option.option) == ("up", "preset") {
                        continue;
                    }
                    let refused = annotated(&[(&format!("longwire.dev/{name}"), text)]);
                    let refused = refused.expect_err(text).message;
                    assert!(refused.contains("cannot name files"), "{text}: {refused}");
                    assert!(!refused.contains("swordfish"), "{refused}");
                }
            }
        }
    }

    #[test]
    fn annotations_may_have_slashes() {
        let steps = "rate=steps:at=0s/10mbit;5s/2mbit";
        let found = annotated(&[("longwire.dev/link", steps)]).expect("it names no file");
        assert_eq!(found.link["rate"], "steps:at=0s/10mbit;5s/2mbit");
    }

    #[test]
    fn arguments_are_options() {
        let arguments = [
            ("IgnoreUnknown", "1"),
            ("LONGWIRE_DELAY", "80ms"),
            ("LONGWIRE_LOSS", "gilbert:p=1%,r=25%"),
            ("LONGWIRE_UP_RATE", "5mbit"),
            ("LONGWIRE_DOWN_QUEUE_LIMIT", "10"),
            ("LONGWIRE_TO", "10.0.0.0/8"),
        ];
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let expected = options(json!({
            "link": { "delay": "80ms", "loss": "gilbert:p=1%,r=25%" },
            "up": { "rate": "5mbit" }, "down": { "queue-limit": "10" }, "to": ["10.0.0.0/8"],
        }));
        assert_eq!(of_arguments(&arguments), Ok(expected));
        let wrong = [("LONGWIRE_ATTACH".to_owned(), "perhaps".to_owned())];
        assert!(of_arguments(&wrong).is_err());
    }
}
