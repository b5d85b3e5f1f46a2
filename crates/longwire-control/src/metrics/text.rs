//! Formats: OpenMetrics 1.0 on request, else Prometheus' text format 0.0.4.

use std::fmt::Write;

/// Whether `Accept` prefers OpenMetrics to plain text. Wildcards get plain text.
pub fn prefers_open_metrics(accept: &str) -> bool {
    let (mut open, mut plain) = (0, 0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut version) = (1000, "");
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => quality = thousandths(value),
                "version" => version = value,
                _ => {}
            }
        }
        match (kind.as_str(), version) {
            ("application/openmetrics-text", "" | "0.0.1" | "1.0.0") => open = quality.max(open),
            ("text/plain", "" | "0.0.4") | ("text/*" | "*/*", _) => plain = quality.max(plain),
            _ => {}
        }
    }
    open > 0 && open >= plain
}

/// Parses a quality (RFC 9110, section 12.4.2) in thousandths; 0 if it is invalid.
fn thousandths(text: &str) -> u32 {
    let quality = text.parse::<f64>().unwrap_or(0.0);
    (quality.clamp(0.0, 1.0) * 1000.0) as u32
}

/// Converts OpenMetrics to the text format 0.0.4: families of counters take the name of their
/// samples, infos become gauges, and units are omitted.
pub fn plain(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = "";
    for line in open_metrics.lines() {
        let described = line.strip_prefix("# ");
        let described = described.and_then(|rest| rest.split_once(' '));
        // Writing to a string does not fail.
        let _ = match described {
            Some(("HELP", rest)) => {
                help = rest;
                Ok(())
            }
            Some(("TYPE", rest)) => {
                let (name, kind) = rest.split_once(' ').unwrap_or((rest, "unknown"));
                let (suffix, kind) = match kind {
                    "counter" => ("_total", kind),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                let help = help.strip_prefix(name).unwrap_or_default().trim_start();
                write!(
                    text,
                    "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}\n"
                )
            }
            Some(("UNIT", _)) => Ok(()),
            _ if line == "# EOF" => Ok(()),
            _ => writeln!(text, "{line}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_metrics_is_negotiated() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, open) in [
            ("", false),
            ("*/*", false),
            ("text/plain", false),
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", false),
            ("application/openmetrics-text", true),
            (
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                true,
            ),
            ("Application/OpenMetrics-Text;version=\"1.0.0\"", true),
            ("application/openmetrics-text;version=2.0.0", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text;q=0.2,text/plain;q=0.3", false),
            ("application/openmetrics-text;q=0.3,text/*;q=0.3", true),
            ("text/html,*/*;q=0.8", false),
            (prometheus, true),
        ] {
            assert_eq!(prefers_open_metrics(accept), open, "{accept}");
        }
    }

    #[test]
    fn plain_families_match_their_samples() {
        let open = "# HELP a Count of a.\n# TYPE a counter\na_total{x=\"# HELP\"} 1\n\
                    # HELP b Build.\n# TYPE b info\nb_info{v=\"1\"} 1\n\
                    # HELP c_seconds Time.\n# TYPE c_seconds gauge\n# UNIT c_seconds seconds\n\
                    c_seconds 1.5\n# EOF\n";
        let plain = plain(open);
        assert_eq!(
            plain,
            "# HELP a_total Count of a.\n# TYPE a_total counter\na_total{x=\"# HELP\"} 1\n\
             # HELP b_info Build.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n\
             # HELP c_seconds Time.\n# TYPE c_seconds gauge\nc_seconds 1.5\n"
        );
    }
}
