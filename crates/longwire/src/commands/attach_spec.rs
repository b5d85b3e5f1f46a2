//! The node's attachment for the arguments of `attach --node`.

use std::path::Path;

use longwire_attach::{FoundTarget, Target};
use longwire_client::node::{AttachmentSpec, FailSpec, TargetSpec};
use longwire_engine::LinkSpec;
use serde_json::{Map, Value};

use super::attach::{AttachArgs, FailArg};
use super::attach_traffic::SelectedTraffic;
use super::ctl;
use crate::Error;

/// Returns the attachment for the arguments.
///
/// # Errors
/// If options are invalid, or name a file by a relative path.
pub(super) fn spec(
    args: &AttachArgs,
    found: &FoundTarget,
    traffic: SelectedTraffic,
) -> Result<AttachmentSpec, Error> {
    let link = args.live.link.specs()?;
    let files = link.up.files().chain(link.down.files());
    if let Some(file) = files.into_iter().find(|file| Path::new(file).is_relative()) {
        return Err(Error::Usage(format!(
            "{file}: with --node, files are named by absolute paths: the node has another \
             working directory"
        )));
    }
    let target = match &found.target {
        Target::Netns(path) => TargetSpec::Netns(std::path::absolute(path)?),
        Target::Pid(pid) => TargetSpec::Pid(*pid),
        // By the user's name, so that a container of that name started later is
        // selected too.
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
    Ok(AttachmentSpec {
        target,
        interface: args.interface.clone(),
        to: traffic.to,
        filter: traffic.filter,
        direction: traffic.direction,
        priority: traffic.priority,
        fail: match args.fail {
            FailArg::Open => FailSpec::Open,
            FailArg::Closed => FailSpec::Closed,
        },
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
