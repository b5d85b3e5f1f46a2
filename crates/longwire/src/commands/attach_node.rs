//! Client of this machine's node, for the commands of `attach`.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;

use longwire_client::node::{AttachmentList, AttachmentSpec, AttachmentView};
use longwire_client::{Address, Client};
use longwire_node::names;
use serde_json::{Map, Value, json};

use super::attach_options::DirectedOptions;
use super::node;
use crate::Error;
use crate::report::stderr::print_line;

/// The path of attachments in the node's API.
const ATTACHMENTS: &str = "/v1/attachments";

/// Returns the given name, or one derived from a place and its interface.
pub(super) fn name(
    given: Option<&str>,
    label: &str,
    interface: Option<&str>,
) -> Result<String, Error> {
    let Some(name) = given else {
        return Ok(names::of_place(label, interface));
    };
    names::check(name).map_err(Error::Usage)?;
    Ok(name.to_owned())
}

/// Sends an attachment to the node.
pub(super) fn put(name: &str, spec: &AttachmentSpec) -> Result<AttachmentView, Error> {
    let Some(mut client) = client()? else {
        return Err(node::missing());
    };
    let answer = client.put(&format!("{ATTACHMENTS}/{name}"), &json!(spec))?;
    read(answer)
}

/// Returns all attachments of the node; empty without a node. Warns if a node does not
/// answer.
pub(super) fn views() -> Result<Vec<AttachmentView>, Error> {
    let Some(socket) = node::socket() else {
        return Ok(Vec::new());
    };
    let mut client = Client::new(Address::Unix(socket.clone()), None)?;
    match client.get(ATTACHMENTS) {
        Ok(answer) => {
            let list: AttachmentList = read(answer)?;
            Ok(list.attachments)
        }
        Err(error) => {
            // A killed node leaves its socket behind.
            let connected = UnixStream::connect(&socket).map_err(|error| error.kind());
            if !matches!(
                connected,
                Err(ErrorKind::ConnectionRefused | ErrorKind::NotFound)
            ) {
                print_line(format_args!("warning: without links of the node: {error}"));
            }
            Ok(Vec::new())
        }
    }
}

/// Changes options of a node's attachment, in one direction or both; `null` removes
/// one.
pub(super) fn set(
    view: &AttachmentView,
    options: &DirectedOptions,
) -> Result<AttachmentView, Error> {
    let mut spec = view.spec.clone();
    for (direction, options) in options.tables() {
        for (name, value) in options {
            change(&mut spec.link, direction, name, value);
        }
    }
    put(&view.name, &spec)
}

/// Returns whether the node has an attachment of this name.
pub(super) fn exists(name: &str) -> Result<bool, Error> {
    let Some(mut client) = client()? else {
        return Ok(false);
    };
    Ok(client.get(&format!("{ATTACHMENTS}/{name}")).is_ok())
}

/// Sets an option of a link, in one direction or both.
fn change(link: &mut Map<String, Value>, direction: Option<&str>, name: &str, value: &Value) {
    let Some(direction) = direction else {
        // An option of one direction would override this one.
        for direction in ["up", "down"] {
            if let Some(Value::Object(options)) = link.get_mut(direction) {
                options.remove(name);
            }
        }
        return assign(link, name, value);
    };
    // The option keeps its value in the other direction.
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

/// Returns a client of this user's or the system's node; `None` if there is none.
fn client() -> Result<Option<Client>, Error> {
    let client = node::socket().map(|socket| Client::new(Address::Unix(socket), None));
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
