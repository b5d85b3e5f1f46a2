//! Suggestions for unknown names.

use longwire_runtime::suggest::*;

#[test]
fn near_misses_are_found() {
    let known = ["rate", "delay", "duplicate", "loss"];
    for (text, expected) in [
        ("dely", Some("delay")),
        ("delay ", Some("delay")),
        ("Delay", Some("delay")),
        ("DEALY", Some("delay")),
        ("dulpicat", Some("duplicate")),
        ("lss", Some("loss")),
        ("los", Some("loss")),
        ("queue", None),
        ("la", None),
        ("x", None),
        ("", None),
    ] {
        assert_eq!(closest(text, known), expected, "{text}");
    }
    assert_eq!(closest(&"x".repeat(1 << 20), known), None);
    assert_eq!(aside("lss", "rate, loss"), " (did you mean 'loss'?)");
    assert_eq!(aside("queue", "rate, loss"), "");
}

#[test]
fn the_nearest_names_have_a_close_word() {
    let known = "artifacts, artifacts-lost, drops, drops.mtu, drops.entry_loss, drops.loss";
    let nearest = |text| nearest(text, known.split(", "), 3);
    assert_eq!(
        nearest("loss"),
        ["drops.loss", "drops.entry_loss", "artifacts-lost"]
    );
    assert_eq!(nearest("drop")[0], "drops");
    assert_eq!(nearest("jitter"), Vec::<&str>::new());
    assert_eq!(either(&nearest("mtu")[..1]), "'drops.mtu'");
    assert_eq!(either(&["a", "b", "c"]), "'a', 'b' or 'c'");
}
