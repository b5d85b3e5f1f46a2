//! Output generated from the command line's definition: help, completions and manual
//! pages; also `models` and `doctor`.

use crate::common::longwire;
use longwire::commands::models::registered;
use longwire_testbed::support::{Folder, words};

const COMMANDS: &str = "exec run receive simulate plot bench models preset doctor completions man";

#[test]
fn every_command_has_help_with_examples() {
    let overview = longwire(&["--help"]);
    assert_eq!(overview.code, 0);
    for command in words(COMMANDS) {
        assert!(
            overview.stdout.contains(&format!("  {command}")),
            "{command}"
        );
        let help = longwire(&[command, "--help"]);
        assert_eq!(help.code, 0, "{help:?}");
        assert!(
            help.stdout.contains("Examples:"),
            "{command}: {}",
            help.stdout
        );
        let short = longwire(&[command, "-h"]);
        assert_eq!(short.code, 0);
        assert!(short.stdout.len() <= help.stdout.len());
    }
}

#[test]
fn help_lists_every_registered_model() {
    for command in ["exec", "run", "simulate", "generate"] {
        let help = longwire(&[command, "--help"]).stdout;
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
    let models = longwire(&["models"]).stdout;
    for (_, info) in registered() {
        assert!(models.contains(info.name), "{}", info.name);
        let detail = longwire(&["models", info.name]).stdout;
        for param in info.params {
            assert!(detail.contains(param.help), "{}: {}", info.name, param.name);
        }
    }
}

#[test]
fn prefixed_options_exist_for_every_link_option() {
    for command in ["exec", "run"] {
        let help = longwire(&[command, "--help"]).stdout;
        let options =
            words("rate framing queue loss corrupt duplicate delay reorder order mtu rewrite");
        for option in options {
            for prefix in ["", "up-", "down-"] {
                assert!(
                    help.contains(&format!("--{prefix}{option} ")),
                    "{prefix}{option}"
                );
            }
        }
    }
    let short = longwire(&["exec", "-h"]).stdout;
    assert!(!short.contains("--up-rate <"), "the short help stays short");
}

#[test]
fn models_are_machine_readable() {
    let json = longwire(&["models", "--json"]).json();
    let all = json.as_array().map(Vec::len);
    assert_eq!(all, Some(registered().len()));
    let delay = longwire(&["models", "delay", "--json"]).json();
    assert_eq!(delay[0]["kind"], "delay");
    assert_eq!(delay[0]["name"], "constant");
    assert_eq!(delay[0]["params"][0]["name"], "delay");
}

#[test]
fn completions_know_every_command_and_option() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = longwire(&["completions", shell]);
        assert_eq!(ran.code, 0, "{ran:?}");
        for word in words(COMMANDS)
            .iter()
            .chain(&["up-delay", "down-loss", "require"])
        {
            assert!(ran.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let dir = Folder::new();
    let ran = longwire(&["man", &dir.file("man1")]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = |name: &str| {
        let path = dir.path().join("man1").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    };
    assert!(page("longwire.1").contains(".TH longwire 1"));
    for command in words(COMMANDS) {
        assert!(
            page(&format!("longwire-{command}.1")).contains(".TH"),
            "{command}"
        );
    }
    assert!(longwire(&["man"]).stdout.contains(".TH longwire 1"));
}

#[test]
fn doctor_works_for_every_user() {
    let ran = longwire(&["doctor", "--json"]);
    assert!(ran.code == 0 || ran.code == 1, "{ran:?}");
    let report = ran.json();
    let groups = report["groups"].as_array().cloned().unwrap_or_default();
    assert!(groups.len() >= 5, "{report}");
    for finding in groups
        .iter()
        .filter_map(|group| group["findings"].as_array())
        .flatten()
    {
        assert!(finding["topic"].is_string(), "{finding}");
        assert!(["ok", "warn", "fail"].contains(&finding["status"].as_str().unwrap_or("")));
    }
    assert!(longwire(&["doctor"]).stdout.contains("wake-up"));
}

#[test]
fn a_closed_reader_is_no_error() {
    let ran = std::process::Command::new("sh")
        .arg("-c")
        .arg("{ \"$1\" models; echo code $? >&2; } | true")
        .args(["sh", env!("CARGO_BIN_EXE_longwire")])
        .output()
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "code 0\n");
}
