//! Links that change while they run.

use crate::common::any_options;

mod driven;
mod fifo;
mod properties;
mod rules;
