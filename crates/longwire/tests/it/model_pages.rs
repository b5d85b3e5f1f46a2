//! The documentation of models matches the registry.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use longwire::commands::model_pages::pages;
use longwire::commands::models::registered;

#[test]
fn the_pages_are_those_of_the_registry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models");
    let mut expected = BTreeSet::new();
    for page in pages() {
        let path = folder.join(&page.file);
        let there = fs::read_to_string(&path).unwrap_or_default();
        let same = there == page.text;
        assert!(
            same,
            "docs/models/{} is out of date; run `longwire models --pages docs/models`",
            page.file
        );
        expected.insert(page.file);
    }
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .expect("docs/models is there")
        .map(|entry| entry.expect("readable").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    assert_eq!(
        there, expected,
        "pages in docs/models differ from those generated"
    );
}

#[test]
fn every_model_has_its_section() {
    let pages = pages();
    for (kind, info) in registered() {
        let file = format!("{kind}.md");
        let page = pages.iter().find(|page| page.file == file);
        let page = page.unwrap_or_else(|| panic!("no page for {kind}"));
        let heading = format!("\n## {}\n", info.name);
        assert!(page.text.contains(&heading), "{kind} {}", info.name);
        for param in info.params {
            let row = format!("\n| `{}` |", param.name);
            assert!(page.text.contains(&row), "{} {}", info.name, param.name);
        }
    }
}
