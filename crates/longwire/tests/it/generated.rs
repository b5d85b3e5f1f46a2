//! Output generated from the command line's definition: help, completions and manual pages. Also
//! tests `models` and `doctor`.

use longwire::commands::models::registered;
use longwire_testbed::support::{Folder, words};

use crate::common::list;
use crate::common::program::{command, longwire, run};

const COMMANDS: &str = "exec run receive simulate plot bench models preset doctor completions man";

#[test]
fn every_command_has_help_with_examples() {
    let mut overview = longwire("--help").well();
    for command in words(COMMANDS) {
        overview = overview.prints(format!("  {command}"));
        let help = longwire(format!("{command} --help"))
            .well()
            .prints("Examples:");
        let short = longwire(format!("{command} -h")).well();
        assert!(short.stdout.len() <= help.stdout.len());
    }
}

#[test]
fn help_lists_every_registered_model() {
    for command in ["exec", "run", "simulate", "generate"] {
        let help = longwire(format!("{command} --help")).stdout;
        let models = match command {
            "generate" => registered(),
            _ => longwire_engine::all_models(),
        };
        for (kind, info) in models {
            assert!(help.contains(&format!("--{kind}")), "{command}: --{kind}");
            assert!(
                help.contains(&format!("* {}", info.name)),
                "{command}: {}",
                info.name
            );
        }
    }
    let models = longwire("models").stdout;
    for (_, info) in registered() {
        assert!(models.contains(info.name), "{}", info.name);
        let detail = longwire(format!("models {}", info.name)).stdout;
        for param in info.params {
            assert!(detail.contains(param.help), "{}: {}", info.name, param.name);
        }
    }
}

#[test]
fn the_help_named_by_the_content_model_lists_the_filter_language() {
    let summary = longwire("models content").stdout;
    let named = summary.split('`').nth(1).expect("a command");
    let help = run(named).stdout;
    for line in longwire_packet::filter::LANGUAGE.lines() {
        assert!(help.contains(line), "{named}: {line}");
    }
}

#[test]
fn prefixed_options_exist_for_every_link_option() {
    let options = "rate framing queue loss corrupt duplicate delay reorder order mtu rewrite";
    for command in ["exec", "run"] {
        let help = longwire(format!("{command} --help")).stdout;
        for option in words(options) {
            for prefix in ["", "up-", "down-"] {
                let option = format!("--{prefix}{option} ");
                assert!(help.contains(&option), "{option}");
            }
        }
    }
    let short = longwire("exec -h").stdout;
    assert!(!short.contains("--up-rate <"), "the short help stays short");
}

#[test]
fn models_are_machine_readable() {
    let json = longwire("models --json").json();
    let all = json.as_array().map(Vec::len);
    assert_eq!(all, Some(registered().len()));
    let delay = &longwire("models delay --json").json()[0];
    let found = [&delay["kind"], &delay["name"], &delay["params"][0]["name"]];
    assert_eq!(found, ["delay", "constant", "delay"]);
}

#[test]
fn completions_know_every_command_and_option() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let mut ran = longwire(format!("completions {shell}")).well();
        for word in words(&format!("{COMMANDS} up-delay down-loss require")) {
            ran = ran.prints(word);
        }
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let dir = Folder::new();
    longwire(format!("man {}", dir.file("man1"))).well();
    let page = |name: &str| crate::common::read(dir.file(&format!("man1/{name}")));
    assert!(page("longwire.1").contains(".TH longwire 1"));
    for command in words(COMMANDS) {
        assert!(
            page(&format!("longwire-{command}.1")).contains(".TH"),
            "{command}"
        );
    }
    longwire("man").prints(".TH longwire 1");
}

#[test]
fn doctor_works_for_every_user() {
    let ran = longwire("doctor --json");
    assert!(ran.code == 0 || ran.code == 1, "{ran:?}");
    let report = ran.json();
    let groups = list(&report["groups"]);
    assert!(groups.len() >= 5, "{report}");
    for finding in groups.iter().flat_map(|group| list(&group["findings"])) {
        assert!(finding["topic"].is_string(), "{finding}");
        assert!(["ok", "warn", "fail"].contains(&finding["status"].as_str().unwrap_or("")));
    }
    longwire("doctor").prints("wake-up");
}

#[test]
fn a_closed_reader_is_no_error() {
    let program = command("longwire")
        .get_program()
        .to_string_lossy()
        .into_owned();
    let ran = run(format!(
        "sh -c '{{ {program} models; echo code $? >&2; }} | true'"
    ));
    assert_eq!(ran.stderr, "code 0\n");
}
