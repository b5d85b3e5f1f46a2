//! Tests of the feed of traces.
