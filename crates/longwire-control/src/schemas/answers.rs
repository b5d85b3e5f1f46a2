//! The schemas of answers.

use longwire_engine::DropReason;
use serde_json::{Value, json};

use super::{
    count, counts, flag, list, object, object_with, or_null, real, reference, text, texts,
};

/// The schemas of answers, by name.
pub fn all() -> impl Iterator<Item = (&'static str, Value)> {
    let lists = [
        (
            "Links",
            page("links", "Link", &or_null(text("after of the next page"))),
        ),
        (
            "Rules",
            page("rules", "Rule", &or_null(count("skip of the next page"))),
        ),
        (
            "Paths",
            object("Paths", &[("paths", list(&reference("Path")))]),
        ),
        (
            "Ports",
            object("Ports", &[("ports", list(&reference("Port")))]),
        ),
        ("Changes", changes()),
    ];
    let single = [
        ("Error", error()),
        ("Overview", overview()),
        ("Link", link()),
        ("Direction", direction()),
        ("Path", path()),
        ("Rule", rule()),
        ("Port", port()),
        ("Report", report()),
        ("Changed", changed()),
        ("Done", done()),
    ];
    let counted = [
        ("Totals", totals()),
        ("Stats", stats()),
        ("Rates", rates()),
        ("StatsEvent", event()),
    ];
    lists.into_iter().chain(single).chain(counted)
}

fn page(name: &str, of: &str, next: &Value) -> Value {
    object(
        "A page",
        &[(name, list(&reference(of))), ("next", next.clone())],
    )
}

fn error() -> Value {
    let problem = object(
        "What is wrong with a change",
        &[
            ("field", text("which field, as in set.adsl1.rate")),
            ("reason", text("what is wrong")),
            ("remedy", text("what to do")),
        ],
    );
    object(
        "Why a request is refused",
        &[("error", text("in one line")), ("problems", list(&problem))],
    )
}

fn overview() -> Value {
    object(
        "What runs",
        &[
            ("program", json!({ "const": "longwire" })),
            ("version", text("the program's version")),
            ("elapsed_s", real("since the start of the run, in seconds")),
            ("seed", count("what all chance follows from")),
            ("links", count("links by name")),
            ("paths", count("paths of several links")),
        ],
    )
}

fn link() -> Value {
    object_with(
        "A link",
        &[
            ("name", text("its name")),
            (
                "shared",
                flag("whether both directions share one queue and rate"),
            ),
            ("match", texts("which frames cross it, in either direction")),
            ("up", reference("Direction")),
        ],
        &[
            ("down", reference("Direction")),
            ("moved_to", text("whose links its frames take instead")),
        ],
    )
}

fn direction() -> Value {
    let mut direction = totals();
    direction["description"] = json!("One direction of a link");
    direction["properties"]["state"] = json!({ "enum": ["up", "down", "paused"] });
    direction["properties"]["options"] = reference("Options");
    let queue = json!({
        "type": "object",
        "description": "what is in it and what it may hold, of a link asked for alone",
    });
    direction["properties"]["queue"] = queue;
    if let Some(required) = direction["required"].as_array_mut() {
        required.extend([json!("state"), json!("options")]);
    }
    direction
}

fn totals() -> Value {
    let reasons = DropReason::ALL.iter().map(|reason| reason.name());
    let reasons = reasons.collect::<Vec<_>>().join(", ");
    let drops = format!("frames lost by reason: {reasons}");
    let dropped = "of drops, the reasons that there were; will be left out one day";
    object(
        "What was counted",
        &[
            ("packets_in", count("frames that came")),
            ("bytes_in", count("their bytes")),
            (
                "packets_out",
                count("frames delivered, duplicates included"),
            ),
            ("bytes_out", count("their bytes")),
            ("drops", counts(&drops)),
            ("dropped", counts(dropped)),
            ("raised", count("deliveries held back to stay in order")),
            (
                "ecn_marked",
                count("frames marked as having met congestion"),
            ),
            ("corrupted", count("frames spoilt")),
            (
                "duplicated",
                count("deliveries beside the first of a frame"),
            ),
            (
                "late",
                count("frames handed over later than the tolerance allows"),
            ),
            (
                "overload",
                count("frames handed over late while the network was overloaded"),
            ),
            (
                "late_max_ns",
                count("the greatest lateness of these, in nanoseconds"),
            ),
            ("queued", count("frames in the queue and in service")),
        ],
    )
}

fn rates() -> Value {
    object(
        "What was counted a second, since the event before",
        &[
            ("packets_in_per_s", real("frames that came")),
            ("bits_in_per_s", real("their bits")),
            ("packets_out_per_s", real("frames delivered")),
            ("bits_out_per_s", real("their bits")),
            ("drops_per_s", real("frames lost")),
        ],
    )
}

fn stats() -> Value {
    object(
        "Sums over links that fit",
        &[
            ("elapsed_s", real("since the start of the run, in seconds")),
            ("links", count("how many, directions apart")),
            ("totals", reference("Totals")),
        ],
    )
}

fn event() -> Value {
    let rates = || or_null(reference("Rates"));
    let row = object(
        "A link, its direction behind its name where they are apart",
        &[
            ("name", text("its name")),
            ("totals", reference("Totals")),
            ("rates", rates()),
        ],
    );
    object_with(
        "What was counted. Rates are null in the first event, and those of the sum when links came \
         or went since the one before",
        &[
            ("elapsed_s", real("since the start of the run, in seconds")),
            ("interval_s", real("since the event before, in seconds")),
            ("links", count("how many, directions apart")),
            ("totals", reference("Totals")),
            ("rates", rates()),
        ],
        &[("each", list(&row))],
    )
}

fn path() -> Value {
    object_with(
        "A path",
        &[
            ("name", text("its name")),
            (
                "via",
                texts("its links in order, with the direction they are crossed in"),
            ),
            ("match", texts("which frames cross it, in either direction")),
        ],
        &[("moved_to", text("whose links its frames take instead"))],
    )
}

fn rule() -> Value {
    object(
        "A rule",
        &[
            (
                "rule",
                count("its number, in the order in which rules were added"),
            ),
            ("match", text("which frames")),
            (
                "leads_to",
                text("the link or path that they cross, with its direction"),
            ),
        ],
    )
}

fn lateness() -> Value {
    let quantiles = ["p50", "p99", "p999", "max", "mean", "stddev"];
    object(
        "Handover minus release, in microseconds",
        &quantiles.map(|name| (name, real("microseconds"))),
    )
}

fn port() -> Value {
    let lost = object(
        "When and why it went away",
        &[
            ("after_s", real("seconds since the start of the run")),
            ("error", text("what the port reported")),
        ],
    );
    object_with(
        "A port",
        &[
            ("name", text("its name")),
            ("packets_in", count("frames that came in")),
            ("bytes_in", count("their bytes")),
            ("packets_out", count("frames that left")),
            ("bytes_out", count("their bytes")),
            (
                "artifacts",
                counts("what the emulator itself could not do, by kind"),
            ),
            ("lateness_us", lateness()),
            ("lateness_own_us", lateness()),
            (
                "memory_max",
                count("the most memory that its frames took, in bytes"),
            ),
        ],
        &[("lost", lost)],
    )
}

fn report() -> Value {
    let switch = object(
        "What the switch did",
        &[
            ("forwarded", count("frames to one port")),
            (
                "flooded",
                list(&count("broadcast, multicast, to unknown stations")),
            ),
            ("not_forwarded", counts("frames to no port, by reason")),
            ("learnt", count("stations")),
            (
                "moved",
                count("stations heard of at another port than before"),
            ),
            (
                "not_learnt",
                count("frames of stations without room in the table"),
            ),
            ("loop_signs", count("signs of a loop among the ports")),
        ],
    );
    object(
        "The report so far",
        &[
            ("seed", count("what all chance follows from")),
            ("epoch_ns", count("the start, in nanoseconds since 1970")),
            ("duration_s", real("since then, in seconds")),
            ("ports", list(&reference("Port"))),
            ("switch", switch),
            ("passed", count("frames that crossed no link")),
            (
                "port_lost",
                count("frames without a link for a port that went away"),
            ),
            (
                "unmatched_dropped",
                count("frames dropped because no rule matched"),
            ),
            (
                "moved",
                count("frames taken to have arrived later than they did"),
            ),
            (
                "unrecorded",
                count("arrivals and verdicts that were to be recorded and were not"),
            ),
            ("in_flight", count("frames inside")),
            ("notes", texts("what was decided or found")),
        ],
    )
}

fn changed() -> Value {
    object(
        "What a change came to",
        &[
            (
                "at_ns",
                count("when, in nanoseconds since the start of the run"),
            ),
            (
                "links",
                count("how many times a link's options or state were set"),
            ),
            ("added", count("links and paths that came")),
            ("removed", count("links and paths that went")),
            ("warnings", list(&json!({ "type": "object" }))),
        ],
    )
}

fn done() -> Value {
    let ramp = json!({
        "type": "object",
        "description": "a ramp of the scenario, by names of links",
        "properties": { "ramp": { "type": "object" } },
        "required": ["ramp"],
    });
    object_with(
        "A change that was made, or will be",
        &[
            (
                "at_ns",
                count("when, in nanoseconds since the start of the run"),
            ),
            ("by", json!({ "enum": ["scenario", "control"] })),
            ("change", json!({ "anyOf": [reference("Change"), ramp] })),
            (
                "links",
                count("how many times a link's options or state were set"),
            ),
        ],
        &[
            ("error", text("why it was not made")),
            (
                "until_ns",
                count("when the last step of a ramp was made, or will be"),
            ),
        ],
    )
}

fn changes() -> Value {
    object(
        "Changes, the oldest first",
        &[
            ("changes", list(&reference("Done"))),
            ("forgotten", count("older ones that are not kept")),
        ],
    )
}
