//! The table of `bench replay`.

use super::{ReplayFindings, ReplayRow};
use longwire::table::Table;

/// Prints the results, next to the published figures.
pub(crate) fn print(findings: &ReplayFindings) {
    println!(
        "Each trace is sent into a veth pair and judged at its other end by the kernel's stamps."
    );
    println!("gap: between frames, in us. error: |gap - the trace's gap|, in us.");
    println!("CPU: of the replaying process, in % of a core. Pauses: of the machine itself, seen");
    println!("by a thread on the receiver's core that runs when the core is otherwise idle.");
    for remark in &findings.remarks {
        println!("* {remark}");
    }
    let mut table = Table::headed(
        "trace | stress | sender | packets | lost | gap p50 | p99 | error p50 | p99 | p99.9 | \
         max | drift ppm | CPU % | pauses | longest | watched s | stolen s",
    );
    for row in &findings.rows {
        table.row(cells(row));
    }
    table.print();
    println!();
    println!("Published, or measured elsewhere:");
    let mut table = Table::headed("tool | trace | stress | gap p50 | p99 | CPU % | source");
    for figures in &findings.published {
        let micros = |value: Option<f64>| value.map_or("-".to_owned(), |us| us.to_string());
        table.row(vec![
            figures.tool.to_owned(),
            figures.workload.to_owned(),
            figures.stress.to_owned(),
            micros(figures.gap_p50_us),
            micros(figures.gap_p99_us),
            figures.cpu_percent.to_string(),
            figures.source.to_owned(),
        ]);
    }
    table.print();
}

fn cells(row: &ReplayRow) -> Vec<String> {
    let micros = |value: f64| match value {
        v if v < 100.0 => format!("{v:.2}"),
        v => format!("{v:.0}"),
    };
    let sender = match row.version.as_str() {
        "" => row.sender.to_owned(),
        version => format!("{} ({version})", row.sender),
    };
    vec![
        row.workload.to_owned(),
        row.stress.to_owned(),
        sender,
        row.packets.to_string(),
        match row.unseen {
            0 => row.lost.to_string(),
            unseen => format!("{} ({unseen} by the receiver)", row.lost),
        },
        micros(row.gap_p50_us),
        micros(row.gap_p99_us),
        micros(row.error_p50_us),
        micros(row.error_p99_us),
        micros(row.error_p999_us),
        micros(row.error_max_us),
        row.drift_ppm
            .map_or("-".to_owned(), |ppm| format!("{ppm:+.2}")),
        format!("{:.1}", row.cpu_percent),
        row.pauses.count.to_string(),
        micros(row.pauses.max_us),
        format!("{:.1}", row.watched_s),
        format!("{:.2}", row.stolen_s),
    ]
}
