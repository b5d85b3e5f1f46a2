//! Attachments of the node of this machine, for the commands of `attach`.

use std::path::{Path, PathBuf};

use longwire_attach::{Found, Target};
use longwire_control::Address;
use longwire_control::client::Client;
use longwire_control::node::{AttachmentList, AttachmentSpec, AttachmentView, TargetSpec};
use longwire_engine::LinkSpec;
use longwire_io::run_directory;
use serde_json::{Map, Value, json};

use super::attach::AttachArgs;
use super::{attach_runs, ctl, node};
use crate::{Error, Globals};

/// The path of attachments in the node's API.
const ATTACHMENTS: &str = "/v1/attachments";

/// Asks the node to attach a link, and returns.
pub(super) fn attach(args: &AttachArgs, found: &Found, globals: &Globals) -> Result<(), Error> {
    let link = args.link.specs()?;
    let files = link.up.files().chain(link.down.files());
    if let Some(file) = files.into_iter().find(|file| Path::new(file).is_relative()) {
        return Err(Error::Usage(format!(
            "{file}: with --node, files are named by absolute paths: the node has another \
             working directory"
        )));
    }
    let target = match &found.target {
        Target::Netns(path) => TargetSpec::Netns(absolute(path)?),
        Target::Pid(pid) => TargetSpec::Pid(*pid),
        // As the user names them: one of that name that is started later is meant too.
        Target::Container(_) | Target::Pod(_) => match (&args.container, &args.pod) {
            (Some(name), _) => TargetSpec::Container(name.to_string()),
            (_, Some(name)) => TargetSpec::Pod(name.to_string()),
            (None, None) => unreachable!("one of them found it"),
        },
    };
    let (up, down) = (options(&link.up), options(&link.down));
    let link = if up == down {
        up
    } else {
        Map::from_iter([
            ("up".to_owned(), up.into()),
            ("down".to_owned(), down.into()),
        ])
    };
    let spec = AttachmentSpec {
        target,
        interface: args.interface.clone(),
        to: args.to.iter().map(ToString::to_string).collect(),
        host_network: args.host_network,
        link,
        seed: Some(args.seed.seed),
        wait: false,
    };
    let interface = args.interface.as_deref();
    let name = attach_runs::name(args.name.as_deref(), &found.label, interface)?;
    let view = put(&name, &spec)?;
    if globals.json {
        println!("{}", json!(view));
    } else if !globals.quiet {
        let interfaces = view.interfaces.join(", ");
        println!("attached to {interfaces} as '{name}', by the node");
    }
    Ok(())
}

/// A path that the node understands; names of `ip netns` stay.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    if path.components().count() == 1 && path.is_relative() {
        return Ok(path.to_owned());
    }
    Ok(std::path::absolute(path)?)
}

fn options(spec: &LinkSpec) -> Map<String, Value> {
    let given = spec.given().into_iter();
    ctl::table(given.map(|(name, text)| (name.to_owned(), text)))
}

/// Sends an attachment to the node.
fn put(name: &str, spec: &AttachmentSpec) -> Result<AttachmentView, Error> {
    let Some(mut client) = client()? else {
        return Err(Error::Usage(
            "no node runs on this machine: start one with `longwire node`, or attach without \
             --node"
                .to_owned(),
        ));
    };
    let answer = client.put(&format!("{ATTACHMENTS}/{name}"), &json!(spec))?;
    read(answer)
}

/// Returns all attachments of the node; none without a node.
pub(super) fn views() -> Result<Vec<AttachmentView>, Error> {
    let Some(mut client) = client()? else {
        return Ok(Vec::new());
    };
    // A node that ended a moment ago, or whose socket only root may open.
    let Ok(answer) = client.get(ATTACHMENTS) else {
        return Ok(Vec::new());
    };
    let list: AttachmentList = read(answer)?;
    Ok(list.attachments)
}

/// Changes options of an attachment of the node; `null` takes one away.
pub(super) fn set(
    view: &AttachmentView,
    direction: Option<&str>,
    options: &Map<String, Value>,
) -> Result<AttachmentView, Error> {
    let mut spec = view.spec.clone();
    for (name, value) in options {
        change(&mut spec.link, direction, name, value);
    }
    put(&view.name, &spec)
}

/// Sets an option of a link, in one direction or both.
fn change(link: &mut Map<String, Value>, direction: Option<&str>, name: &str, value: &Value) {
    let Some(direction) = direction else {
        // Those of one direction would be over it.
        for direction in ["up", "down"] {
            if let Some(Value::Object(options)) = link.get_mut(direction) {
                options.remove(name);
            }
        }
        return assign(link, name, value);
    };
    // Of the other direction, the option stays as it is.
    if value.is_null()
        && let Some(both) = link.remove(name)
    {
        let other = if direction == "up" { "down" } else { "up" };
        if let Value::Object(options) = link.entry(other).or_insert_with(|| json!({})) {
            options.entry(name).or_insert(both);
        }
    }
    if let Value::Object(options) = link.entry(direction).or_insert_with(|| json!({})) {
        assign(options, name, value);
    }
}

fn assign(options: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        options.remove(name);
    } else {
        options.insert(name.to_owned(), value.clone());
    }
}

/// Removes an attachment of the node.
pub(super) fn detach(name: &str) -> Result<(), Error> {
    if let Some(mut client) = client()? {
        client.delete(&format!("{ATTACHMENTS}/{name}"))?;
    }
    Ok(())
}

/// Returns a client of the node of this user or of the system; `None` if there is none.
fn client() -> Result<Option<Client>, Error> {
    let directories = run_directory::all(std::env::var_os(run_directory::VARIABLE));
    let mut sockets = directories.iter().map(|run| run.join(node::SOCKET));
    let socket = sockets.find(|socket| socket.exists());
    let client = socket.map(|socket| Client::new(Address::Unix(socket), None));
    Ok(client.transpose()?)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Error> {
    serde_json::from_value(answer).map_err(|error| {
        Error::Failed(format!("the node answers as another version does: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(link: Value, direction: Option<&str>, (name, value): (&str, Value)) -> Value {
        let Value::Object(mut link) = link else {
            panic!("an object");
        };
        change(&mut link, direction, name, &value);
        link.into()
    }

    #[test]
    fn an_option_is_set_where_it_is_meant() {
        let link = json!({ "delay": "1ms", "up": { "delay": "2ms", "loss": "1%" } });
        assert_eq!(
            changed(link.clone(), None, ("delay", json!("9ms"))),
            json!({ "delay": "9ms", "up": { "loss": "1%" } })
        );
        assert_eq!(
            changed(link.clone(), Some("down"), ("delay", json!("9ms"))),
            json!({ "delay": "1ms", "up": { "delay": "2ms", "loss": "1%" },
                    "down": { "delay": "9ms" } })
        );
        assert_eq!(
            changed(json!({ "loss": "1%" }), Some("up"), ("loss", Value::Null)),
            json!({ "down": { "loss": "1%" }, "up": {} })
        );
    }
}
