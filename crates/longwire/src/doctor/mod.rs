//! What this machine allows, and what spoils accuracy on it.
