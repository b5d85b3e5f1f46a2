//! `longwire exec` as root and as an ordinary user: traffic over the link, separate outputs, and
//! links that change.
//!
//! Skipped without permission to create namespaces, except in CI.

mod carrier;
mod changing;
mod closed;
mod environment;
mod hosts;
mod peer;
mod router;
mod threads;
mod top;
mod view;
mod wire;

pub(super) use crate::common::user::User;
