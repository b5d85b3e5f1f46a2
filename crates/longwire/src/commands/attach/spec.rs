//! The attachment that the arguments of `attach` describe.

use std::path::Path;

use longwire_client::node::{AttachmentSpec, TargetSpec};
use longwire_engine::LinkSpec;
use serde_json::{Map, Value};

use super::AttachArgs;
use crate::Error;
use crate::commands::ctl;

/// Returns the attachment for the arguments.
///
/// # Errors
/// If options are invalid.
pub(super) fn spec(args: &AttachArgs) -> Result<AttachmentSpec, Error> {
    let link = args.live.link.specs()?;
    let netns = args.netns.clone().map(TargetSpec::Netns);
    let container = args.container.as_ref();
    let pod = args.pod.as_ref();
    let target = netns
        .or(args.pid.map(TargetSpec::Pid))
        .or(container.map(|name| TargetSpec::Container(name.to_string())))
        .or(pod.map(|name| TargetSpec::Pod(name.to_string())));
    let (up, down) = (options(&link.up), options(&link.down));
    let link = if up == down {
        up
    } else {
        Map::from_iter([
            ("up".to_owned(), up.into()),
            ("down".to_owned(), down.into()),
        ])
    };
    Ok(AttachmentSpec {
        target: target.unwrap_or_else(|| unreachable!("one target is required")),
        interface: args.interface.clone(),
        to: args.to.iter().map(ToString::to_string).collect(),
        filter: args.filter.clone(),
        direction: args.direction,
        priority: args.priority,
        fail: args.fail,
        host_network: args.host_network,
        link,
        seed: Some(args.live.seed.seed),
        wait: false,
        files: true,
    })
}

fn options(spec: &LinkSpec) -> Map<String, Value> {
    let given = spec.given().into_iter();
    ctl::table(given.map(|(name, text)| (name.to_owned(), text)))
}

/// Refuses files by relative paths, which the node would look up in another directory.
pub(super) fn check_paths(args: &AttachArgs) -> Result<(), Error> {
    let link = args.live.link.specs()?;
    let mut files = link.up.files().chain(link.down.files());
    match files.find(|file| Path::new(file).is_relative()) {
        None => Ok(()),
        Some(file) => Err(Error::usage(format!(
            "{file}: with --node, files are named by absolute paths: the node has another \
             working directory"
        ))),
    }
}
