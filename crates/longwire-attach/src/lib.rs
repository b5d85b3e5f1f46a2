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
//! [`Target`] is what a user names, [`FoundTarget`] its open namespace. [`target`] describes
//! where containers are looked for.

pub mod target;

pub use target::{
    Container, ContainerName, FoundTarget, Machine, NameError, Place, PlaceState, PodName, Runtime,
    State, Survey, Target, TargetError, UnknownTarget, containers,
};
