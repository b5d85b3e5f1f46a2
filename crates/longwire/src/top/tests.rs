//! Tests of the screen text and key bindings.

use longwire_control::responses::Columns;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::draw::{draw, rows_of, sparks};
use super::screen::{Sort, Step, TopScreen};
use super::source::{ChangeRequest, Detail, Snapshot, Update};

fn row(name: &str, bits: f64) -> Value {
    json!({
        "name": name, "state": "on", "bits_in_per_s": bits, "bits_out_per_s": bits,
        "packets_in_per_s": 0.0, "packets_out_per_s": 0.0, "drops_per_s": 7.0, "queued": 3,
        "late": 1, "overload": 0, "recent": [0.0, bits]
    })
}

fn totals() -> Value {
    serde_json::to_value(longwire_control::responses::Totals::default()).expect("JSON")
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("its type")
}

fn snapshot(may_change: bool, rows: &[Value]) -> Snapshot {
    Snapshot {
        overview: read(json!({
            "program": "longwire", "version": "0.1.0", "elapsed_s": 61.0, "seed": 1, "links": 1,
            "paths": 0, "may_change": may_change, "view": true
        })),
        stats: read(json!({ "elapsed_s": 61.0, "links": 2, "totals": totals() })),
        rates: Some([10e6, 9e6, 7.0]),
        fidelity: read(json!({
            "elapsed_s": 61.0, "verdict": "faithful: 12 frames delivered", "grade": "faithful",
            "lateness_us": { "p50": 1.0, "p99": 20.0, "p999": 30.0, "max": 40.0 },
            "histogram": [], "artifacts": { "late": 2 }, "first": null,
            "pauses": { "count": 0, "max_us": 0.0, "total_us": 0.0 }
        })),
        page: read(json!({
            "elapsed_s": 61.0, "directions": rows.len(), "fitting": rows.len(), "rows": rows
        })),
        detail: None,
    }
}

/// Returns an 80 × 24 screen with these rows.
fn shown(may_change: bool, rows: &[Value]) -> TopScreen {
    let mut screen = TopScreen::new(None, Sort::Rate);
    assert!(screen.new_query(rows_of(24)).is_some());
    screen.update(Update::Shown(Box::new(snapshot(may_change, rows))));
    screen
}

fn text(screen: &TopScreen) -> String {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(frame, screen));
    drawn.expect("it is drawn");
    terminal.backend().to_string()
}

fn assert_shows(screen: &TopScreen, wanted: &str) {
    let text = text(screen);
    assert!(text.contains(wanted), "{wanted}: {text}");
}

fn change_of(step: Step) -> ChangeRequest {
    match step {
        Step::Change(change) => change,
        other => panic!("{other:?}"),
    }
}

fn press(screen: &mut TopScreen, code: KeyCode) -> Step {
    screen.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn key(screen: &mut TopScreen, character: char) -> Step {
    press(screen, KeyCode::Char(character))
}

fn control(screen: &mut TopScreen, character: char) -> Step {
    let code = KeyCode::Char(character);
    screen.press(KeyEvent::new(code, KeyModifiers::CONTROL))
}

fn write(screen: &mut TopScreen, text: &str) -> Step {
    for character in text.chars() {
        assert_eq!(key(screen, character), Step::Stay);
    }
    press(screen, KeyCode::Enter)
}

#[test]
fn a_screen_of_80_by_24_has_sums_fidelity_and_rows() {
    let screen = shown(true, &[row("link.up", 9e6), row("link.down", 1e3)]);
    for wanted in "1:01|2 directions|live|out 9|faithful|artifacts 2|link.up|? keys  q".split('|') {
        assert_shows(&screen, wanted);
    }
    assert_eq!(sparks(&[0.0, 1.0, 2.0, 4.0], 3), "▃▅█");
    assert_eq!(sparks(&[0.0], 3), "▁");
}

#[test]
fn the_table_scrolls_with_the_chosen_row() {
    let rows = (0..100).map(|number| row(&format!("l{number}.up"), 1.0));
    let mut screen = shown(true, &rows.collect::<Vec<_>>());
    press(&mut screen, KeyCode::End);
    let query = screen.new_query(rows_of(24)).expect("other rows");
    assert_eq!((screen.chosen, query.offset, query.limit), (99, 85, 15));
    press(&mut screen, KeyCode::Home);
    let query = screen.new_query(rows_of(24)).expect("the first rows");
    assert_eq!(query.offset, 0);
    // The same rows are not requested again.
    assert_eq!(screen.new_query(rows_of(24)), None);
}

#[test]
fn options_become_a_change_of_the_chosen_direction() {
    let mut screen = shown(true, &[row("link.up", 2.0), row("link.down", 1.0)]);
    press(&mut screen, KeyCode::Down);
    key(&mut screen, 'e');
    let change = change_of(write(&mut screen, "rate=5mbit loss=1%"));
    let wanted = json!({ "set": { "link.down": { "rate": "5mbit", "loss": "1%" } } });
    assert_eq!(change.body, wanted);
    key(&mut screen, 'e');
    assert_eq!(write(&mut screen, "fast"), Step::Stay);
    assert_shows(&screen, "link.down: fast▏  'fast' is not OPTION=VALUE");
    press(&mut screen, KeyCode::Esc);
    let change = change_of(key(&mut screen, 'p'));
    assert_eq!(change.body, json!({ "pause": ["link.down"] }));
    // Escape and p, read at once.
    key(&mut screen, 'e');
    let key = KeyEvent::new(KeyCode::Char('p'), KeyModifiers::ALT);
    assert_eq!(change_of(screen.press(key)).body, change.body);
}

#[test]
fn a_line_is_cleared_as_in_a_shell() {
    let mut screen = shown(true, &[row("link.up", 2.0)]);
    key(&mut screen, 'e');
    for character in "loss=5% rate=1mbit".chars() {
        key(&mut screen, character);
    }
    control(&mut screen, 'w');
    assert_shows(&screen, "link.up: loss=5% ▏");
    control(&mut screen, 'u');
    control(&mut screen, 'x');
    let change = change_of(write(&mut screen, "delay=9ms"));
    let wanted = json!({ "set": { "link.up": { "delay": "9ms" } } });
    assert_eq!(change.body, wanted);
}

#[test]
fn a_refused_line_stays_open() {
    let mut screen = shown(true, &[row("link.up", 2.0)]);
    key(&mut screen, 'e');
    change_of(write(&mut screen, "dealy=60ms"));
    // The prompt stays closed until the run answers, so editing keys must have no effect.
    assert_eq!(control(&mut screen, 'u'), Step::Stay);
    screen.update(Update::Refused("refused: no 'dealy'".to_owned()));
    assert_shows(&screen, "link.up: dealy=60ms▏  refused: no 'dealy'");
    control(&mut screen, 'u');
    let change = change_of(write(&mut screen, "delay=60ms"));
    let wanted = json!({ "set": { "link.up": { "delay": "60ms" } } });
    assert_eq!(change.body, wanted);
    screen.update(Update::Made("link.up: delay=60ms".to_owned(), None));
    assert!(!text(&screen).contains('▏'), "{}", text(&screen));
}

#[test]
fn long_lines_go_on_in_the_next() {
    let mut screen = shown(true, &[row("link.up", 2.0)]);
    let mut long = snapshot(true, &[row("link.up", 2.0)]);
    long.fidelity.verdict = format!("{}the last word", "the network fell short ".repeat(5));
    screen.update(Update::Shown(Box::new(long)));
    assert_shows(&screen, "the last word");
    let refusal = format!("{}write 5mbit", "'fast' is not a rate; ".repeat(6));
    screen.update(Update::Refused(refusal));
    assert_shows(&screen, "write 5mbit");
}

#[test]
fn a_token_that_may_only_read_changes_nothing() {
    let mut screen = shown(false, &[row("link.up", 2.0)]);
    for key in ['e', 'f', 'p', 'o'] {
        assert_eq!(self::key(&mut screen, key), Step::Stay);
        assert_shows(&screen, "read-only token");
    }
}

#[test]
fn a_change_is_taken_back_once() {
    let mut screen = shown(true, &[row("link.up", 2.0)]);
    assert_eq!(key(&mut screen, 'z'), Step::Stay);
    let back = ChangeRequest {
        body: json!({ "set": { "link.up": { "delay": "20ms" } } }),
        text: "link.up: delay=20ms".to_owned(),
        of: None,
    };
    let text = "link.up: delay=50ms".to_owned();
    screen.update(Update::Made(text, Some(back.clone())));
    assert_shows(&screen, "z undoes it");
    assert_eq!(key(&mut screen, 'z'), Step::Change(back));
    assert_eq!(key(&mut screen, 'z'), Step::Stay);
}

#[test]
fn a_search_and_a_lost_run_are_on_the_screen() {
    let mut screen = shown(true, &[row("adsl7.up", 2.0)]);
    key(&mut screen, '/');
    assert_eq!(write(&mut screen, "adsl"), Step::Stay);
    let query = screen.new_query(rows_of(24)).expect("another selection");
    assert_eq!(query.pattern, "*adsl*");
    screen.update(Update::Lost("it is stuck".to_owned()));
    assert_shows(&screen, "no response");
    assert_shows(&screen, "it is stuck");
    screen.update(Update::Ended);
    assert_shows(&screen, "THE RUN HAS ENDED");
    key(&mut screen, '?');
    assert_shows(&screen, "undo the last change");
}

#[test]
fn a_direction_in_detail_has_its_history() {
    let mut screen = shown(true, &[row("link.up", 2.0)]);
    assert_eq!(press(&mut screen, KeyCode::Enter), Step::Stay);
    assert_shows(&screen, "loading link.up");
    let mut with = snapshot(true, &[row("link.up", 2.0)]);
    let mut way = totals();
    way["state"] = json!("on");
    way["options"] = json!({ "rate": "5mbit", "loss": ["1%"] });
    let link = json!({ "name": "link", "shared": true, "match": [], "up": way });
    with.detail = Some(Detail {
        name: "link.up".to_owned(),
        link: read(link),
        columns: Columns {
            elapsed_s: vec![60.9, 61.0],
            bits_out_per_s: vec![0.0, 4.9e6],
            queued_frames: vec![0, 12],
            delay_p50_us: vec![None, Some(20_000.0)],
            ..Columns::default()
        },
        changes: read(json!({ "changes": [], "forgotten": 0 })),
    });
    screen.update(Update::Shown(Box::new(with)));
    for wanted in ["rate=5mbit", "loss=1%", "4.9", "12 frames", "20"] {
        assert_shows(&screen, wanted);
    }
}
