//! Finds the network namespaces of running containers, pods and processes.
//!
//! ```
//! use longwire_attach::{Target, TargetError};
//!
//! let found = Target::Pid(std::process::id()).resolve()?;
//! println!("{}: namespace {}", found.description, found.inode());
//! # Ok::<(), TargetError>(())
//! ```
//!
//! [`Target`] is the user's notation, [`FoundTarget`] the open namespace. [`target`]
//! describes the sources of containers.

pub mod target;

pub use target::{
    Container, ContainerName, FoundTarget, Machine, NameError, Place, PlaceState, PodName, Runtime,
    State, Survey, Target, TargetError, UnknownTarget, process_start,
};
