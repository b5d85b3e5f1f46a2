//! Files and plugins that requests to a node may name.
//!
//! A node reads files as root. Although only root can connect to its socket, clients forward
//! untrusted input: pod annotations and cluster resources. Attachments, their changes and networks
//! read files only through this module, which does not even look up refused paths.

use std::sync::Arc;

use longwire_runtime::{Faults, FileAccess, FileLoader, PluginUse};
use longwire_topology::{Files, StartFiles};

/// Error for files named by a request with `"files": false`.
const NO_FILES: &str = "this request has files: false, so it cannot name files or plugins";

/// Error for plugins.
const NO_PLUGINS: &str = "a node loads no plugins, since a crash would end all links on this \
                          machine; use `longwire attach` without --node";

/// Returns the files that a request may name; `files` is the field of that name.
pub(crate) fn access(files: bool) -> FileAccess {
    if files {
        FileAccess::Absolute
    } else {
        FileAccess::Nothing(NO_FILES)
    }
}

/// Returns the loader for links in the process of the node.
pub(crate) fn loader(files: bool, faults: &Faults) -> FileLoader {
    FileLoader::reporting_to(faults)
        .with_access(access(files))
        .with_plugins(PluginUse::Refuse(NO_PLUGINS))
}

/// Returns the files that a request for an attachment may name.
pub(crate) fn of_attachment(files: bool) -> Arc<dyn Files> {
    StartFiles::of(loader(files, &Faults::new()))
}

/// Returns the files that a network's topology may name. The network's process loads its plugins.
pub(crate) fn of_network(files: bool) -> Arc<dyn Files> {
    let loader = FileLoader::new().with_access(access(files));
    StartFiles::of(loader.with_plugins(PluginUse::Defer))
}

#[cfg(test)]
mod tests;
