//! Changes under load: nothing is lost or reordered but what the link says.

use crate::common::longwire;
use crate::common::wire::namespace;

/// Set to run what SPECIFICATION.md promises: 100,000 packets and 1,000
/// changes a second for ten seconds. The machines that tests share do not all
/// carry that.
const FULL: &str = "LONGWIRE_FULL_LOAD";

#[test]
fn changes_lose_and_reorder_nothing() {
    if namespace().is_none() {
        return;
    }
    let bench = ["bench", "control", "--json"];
    let small = ["--time", "2s", "--pps", "5000", "--links", "1000"];
    let arguments: Vec<&str> = match std::env::var_os(FULL) {
        Some(_) => bench.to_vec(),
        None => bench.into_iter().chain(small).collect(),
    };
    let ran = longwire(&arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    let rows = ran.json();
    for row in rows.as_array().expect("rows") {
        for none in [
            "changes_failed",
            "lost",
            "reordered",
            "duplicates",
            "artifacts",
            "dropped",
        ] {
            assert_eq!(row[none], 0, "{none}: {row}");
        }
        assert!(row["sent"].as_u64() >= Some(10_000), "{row}");
    }
    // How fast is for the bench to say; that many are made, for this.
    let changed = rows[1]["changed_per_s"].as_f64();
    assert!(changed > Some(5.0), "{rows}");
}
