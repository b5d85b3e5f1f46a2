//! Environment variables of a call (CNI specification 1.1, section 2).

use crate::error::{CniError, Reason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Del,
    Check,
    Gc,
    Status,
    Version,
}

/// Parameters of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub operation: Operation,
    /// Container ID; empty if missing, like the remaining texts.
    pub container: String,
    pub namespace: String,
    pub interface: String,
    /// Pairs in `CNI_ARGS`.
    pub arguments: Vec<(String, String)>,
}

/// Name of a variable, and the check of its value.
type Rule = (&'static str, fn(&Parameters) -> bool);

impl Parameters {
    /// Reads the variables, and checks those that the operation requires.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Parameters, CniError> {
        let text = |name| variable(name).unwrap_or_default();
        let operation = match text("CNI_COMMAND").as_str() {
            "ADD" => Operation::Add,
            "DEL" => Operation::Del,
            "CHECK" => Operation::Check,
            "GC" => Operation::Gc,
            "STATUS" => Operation::Status,
            "VERSION" => Operation::Version,
            other => return Err(unknown_command(other)),
        };
        let parameters = Parameters {
            operation,
            container: text("CNI_CONTAINERID"),
            namespace: text("CNI_NETNS"),
            interface: text("CNI_IFNAME"),
            arguments: pairs(&text("CNI_ARGS")),
        };
        parameters.check()?;
        Ok(parameters)
    }

    fn check(&self) -> Result<(), CniError> {
        let rules: [Rule; 3] = [
            ("CNI_CONTAINERID", |given| is_container(&given.container)),
            ("CNI_IFNAME", |given| is_interface(&given.interface)),
            ("CNI_NETNS", |given| given.namespace.starts_with('/')),
        ];
        let needed = match self.operation {
            Operation::Add | Operation::Check => &rules[..],
            Operation::Del => &rules[..2],
            Operation::Gc | Operation::Status | Operation::Version => &[],
        };
        let wrong = needed.iter().filter(|(_, is_right)| !is_right(self));
        let wrong: Vec<&str> = wrong.map(|(name, _)| *name).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let message = format!(
            "missing or invalid environment variables: {}",
            wrong.join(", ")
        );
        Err(CniError::new(Reason::Variables, message))
    }
}

fn unknown_command(command: &str) -> CniError {
    let message = match command {
        "" => "CNI_COMMAND is not set; this plugin is run by container runtimes".to_owned(),
        command => format!("CNI_COMMAND is '{command}'"),
    };
    CniError::new(Reason::Variables, message)
        .with_details("known commands: ADD, DEL, CHECK, GC, STATUS and VERSION")
}

/// Returns whether a container ID is valid: a letter or digit, followed by letters, digits, '_',
/// '.' and '-'.
fn is_container(id: &str) -> bool {
    let starts_well = id.starts_with(|first: char| first.is_ascii_alphanumeric());
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    starts_well && id.chars().all(is_allowed)
}

/// Returns whether the kernel accepts an interface name.
fn is_interface(name: &str) -> bool {
    let is_wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
    (1..=15).contains(&name.len()) && !matches!(name, "." | "..") && !name.contains(is_wrong)
}

/// Parses `KEY=VALUE;KEY=VALUE`. Skips texts without `=`, which are meant for other plugins.
fn pairs(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
