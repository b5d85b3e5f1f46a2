//! Messages before a run: the whole link, and warnings.

use std::io;

use longwire_engine::LinkConfig;
use longwire_engine::models::order::OrderPolicy;
use longwire_runtime::LinkSetup;

use super::stderr::print_line;
use crate::Globals;
use crate::cli::Paint;

/// Prints the configuration of each direction, and warnings. Returns the
/// warnings, for the report.
///
/// # Errors
/// If stderr cannot be written, unless its reader is gone.
pub fn announce<'a>(
    links: impl IntoIterator<Item = &'a LinkSetup>,
    globals: &Globals,
) -> io::Result<Vec<String>> {
    let paint = Paint::new(globals, &io::stderr());
    let mut said = Vec::new();
    for LinkSetup { name, config } in links {
        let warnings = warnings(name, config);
        if globals.talks() {
            let name = paint.bold(format_args!("{name}:"));
            print_line(format_args!("{name} {}", line(config)));
            warn(&warnings, globals)?;
        }
        said.extend(warnings);
    }
    Ok(said)
}

/// Prints warnings about configurations that may not be intended.
///
/// # Errors
/// If stderr cannot be written, unless its reader is gone.
pub fn warn(warnings: &[String], globals: &Globals) -> io::Result<()> {
    let paint = Paint::new(globals, &io::stderr());
    for warning in warnings.iter().filter(|_| globals.talks()) {
        print_line(format_args!("{} {warning}", paint.warn("warning:")));
    }
    Ok(())
}

/// Prints decisions and facts of the start with --verbose.
///
/// # Errors
/// If stderr cannot be written, unless its reader is gone.
pub fn notes<'a>(notes: impl IntoIterator<Item = &'a String>, globals: &Globals) -> io::Result<()> {
    let paint = Paint::new(globals, &io::stderr());
    for note in notes.into_iter().filter(|_| globals.talks()) {
        let note = paint.dim(format_args!("note: {note}"));
        print_line(format_args!("{note}"));
    }
    Ok(())
}

/// Formats the whole link: configured and derived values.
fn line(config: &LinkConfig) -> String {
    let derived = config.queue.is_none() && !config.rate.is_unlimited();
    // Rare features are omitted if the link lacks them.
    let said = |(key, value): &(&str, String)| {
        !matches!(*key, "corrupt" | "duplicate" | "reorder" | "rewrite") || value != "none"
    };
    let parts = config.describe().into_iter().filter(said);
    let parts = parts.map(|(key, value)| match key {
        "queue" if derived => format!("{key} {value} (derived from rate and delay)"),
        _ => format!("{key} {value}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns warnings about this link, in sentences.
fn warnings(name: &str, config: &LinkConfig) -> Vec<String> {
    let doubts = config.doubts.iter();
    let doubts = doubts.map(|doubt| format!("{name}: {}: {}", doubt.option, doubt.message));
    let mut warnings: Vec<String> = doubts.collect();
    let undersized = config.queue.as_ref().and_then(|queue| {
        let enough = config.queue_undersized()?;
        Some((queue, enough))
    });
    if let Some((queue, enough)) = undersized {
        warnings.push(format!(
            "{name}: a queue of {queue} is less than one TCP flow needs to fill this link; \
             {enough} would do"
        ));
    }
    if config.delay.fixed().is_none() && config.order == OrderPolicy::InOrder {
        warnings.push(format!(
            "{name}: jitter that keeps the order raises releases to the frame before, so that \
             frames bunch into bursts; --order reorder lets them overtake"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use longwire_engine::{LinkSpec, NoLoader};

    use super::*;

    fn link(rate: &str, queue: Option<&str>, delay: &str, order: &str) -> LinkConfig {
        let queue = queue.map_or(String::new(), |queue| format!("queue={queue}"));
        let spec = format!("rate={rate} {queue} delay={delay} order={order}");
        let spec: LinkSpec = spec.parse().unwrap_or_else(|error| panic!("{error}"));
        spec.build(&NoLoader)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_derived_queue_is_marked_as_derived() {
        let derived = line(&link("10mbit", None, "20ms", "in-order"));
        assert!(derived.contains("rate 10mbit"), "{derived}");
        assert!(
            derived.contains("(derived from rate and delay)"),
            "{derived}"
        );
        let given = line(&link("10mbit", Some("100p"), "20ms", "in-order"));
        assert!(given.contains("queue 100p,"), "{given}");
        assert!(!given.contains("derived"), "{given}");
    }

    #[test]
    fn an_undersized_queue_is_warned_of_with_the_number_that_would_do() {
        // 10 Mbit/s for 40 ms: 50,000 bytes, 34 full frames.
        let small = link("10mbit", Some("10p"), "20ms", "in-order");
        let said = warnings("up", &small);
        assert_eq!(said.len(), 1);
        assert!(
            said[0].starts_with("up: a queue of 10p is less"),
            "{said:?}"
        );
        assert!(said[0].contains("34p would do"), "{said:?}");
        assert!(warnings("up", &link("10mbit", Some("34p"), "20ms", "in-order")).is_empty());
    }

    #[test]
    fn doubtful_values_are_warned_of() {
        let said = warnings("up", &link("10Mbps", None, "20ms", "in-order"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("up: rate: 10Mbps is 80mbit"),
            "{said:?}"
        );
    }

    #[test]
    fn jitter_in_order_is_warned_of() {
        let jitter = "uniform:min=10ms,max=20ms";
        assert_eq!(
            warnings("up", &link("10mbit", None, jitter, "in-order")).len(),
            1
        );
        assert!(warnings("up", &link("10mbit", None, jitter, "reorder")).is_empty());
    }
}
