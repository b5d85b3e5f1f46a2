//! The commands of docs/control.md, run in a shell.

use longwire_testbed::support::Folder;

use crate::common::program::{Ran, command, path_with_program};
use crate::common::site::Site;
use crate::common::{have, write};
use crate::control::ControlledRun;

const PAGE: &str = include_str!("../../../../../docs/control.md");

/// Returns the page's blocks in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let inside = PAGE.split("```").skip(1).step_by(2);
    let blocks = inside.filter_map(|block| block.split_once('\n'));
    let blocks = blocks.filter(|(found, _)| *found == language);
    blocks.map(|(_, text)| text).collect()
}

#[test]
fn every_command_of_the_page_works() {
    if !have("curl") {
        return;
    }
    let Some(site) = Site::new(2) else { return };
    let toml = blocks("toml");
    let dir = Folder::new();
    let file = dir.file("network.toml");
    write(&file, toml[0].replace("eth1", "p0").replace("eth2", "p1"));
    write(dir.file("change.toml"), toml[1]);
    let controlled = ControlledRun::of(site, dir, &file);
    let mut commands = 0;
    for block in blocks("sh") {
        // Skip lines that start a run, because one is already active.
        let lines = block.lines().filter(|line| !line.starts_with("sudo"));
        let lines = lines.filter(|line| !line.starts_with("export"));
        // The run belongs to the test's user, and sudo may not be installed.
        let lines = lines.map(|line| line.replace("{ sudo ", "{ "));
        let script: String = lines.map(|line| format!("{line}\n")).collect();
        let file = controlled.dir.file("commands.sh");
        write(&file, &script);
        let mut shell = command(format!("sh -e -x {file}"));
        shell.current_dir(controlled.dir.path());
        shell.env("PATH", path_with_program());
        Ran::of(shell.env("LONGWIRE_CONTROL", &controlled.socket)).well();
        commands += script.lines().count();
    }
    assert!(commands > 30, "{commands} commands were found");
    // Check the state after the previous commands.
    let satellite = controlled.json("get satellite");
    assert_eq!(satellite["up"]["options"]["delay"], "270ms");
    assert_eq!(controlled.json("get adsl1")["up"]["state"], "off");
    controlled.stop();
}
