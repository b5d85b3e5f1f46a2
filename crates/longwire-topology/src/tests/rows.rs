//! Links from CSV files.

use std::fs;
use std::path::PathBuf;

use crate::{Problem, Topology};

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("longwire-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }

    fn read(&self, csv: &str, more: &str) -> Result<Topology, Vec<Problem>> {
        fs::write(self.0.join("links.csv"), csv).expect("written");
        let text = format!(
            "[ports]\na = \"packet:eth1\"\nb = \"packet:eth2\"\n[templates.slow]\nrate = \"1mbit\"\n\
             [[link]]\ncsv = \"links.csv\"\n{more}"
        );
        Topology::parse("net.toml", &text, &self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn rows_become_links_with_their_options() {
    let folder = Folder::new("rows-good");
    let csv = "name,match,template,up-delay,down-rate,shared\n# a remark\n\
               x,\"src=1.1.1.1,dst=2.2.2.2\",slow,5ms,8mbit,\ny,vlan=7,,,,true\n";
    let topology = folder.read(csv, "delay = \"1ms\"\n").expect("good");
    let [x, y] = topology.links.as_slice() else {
        panic!("{:?}", topology.links);
    };
    let down = x.down.as_ref().expect("two directions");
    assert_eq!(x.up.to_string(), "rate=1mbit delay=5ms");
    assert_eq!(down.to_string(), "rate=8mbit delay=1ms");
    assert_eq!((y.up.to_string(), &y.down), ("delay=1ms".to_owned(), &None));
    assert_eq!(topology.rules.len(), 3);
}

#[test]
fn a_bad_row_refuses_all_with_its_line() {
    let folder = Folder::new("rows-bad");
    let good: String = (0..5000).map(|n| format!("l{n},1mbit\n")).collect();
    for (csv, line, said) in [
        (format!("name,rate\n{good}bad,fast\n"), 5002, "fast"),
        (format!("name,rate\n{good}l7,1mbit\n"), 5002, "used twice"),
        (
            format!("name,rate\n{good}short\n"),
            5002,
            "1 columns, and 2",
        ),
        ("name,raet\nx,1mbit\n".to_owned(), 1, "did you mean 'rate'?"),
        ("rate\n1mbit\n".to_owned(), 1, "no column 'name'"),
        (
            "name,rate,rate\nx,1mbit,1mbit\n".to_owned(),
            1,
            "there twice",
        ),
        (
            "name,template\nx,fast\n".to_owned(),
            2,
            "no template 'fast'",
        ),
        (
            "name,shared\nx,maybe\n".to_owned(),
            2,
            "neither true nor false",
        ),
        (
            "name,shared,up-rate\nx,true,1mbit\n".to_owned(),
            2,
            "directions differ",
        ),
    ] {
        let problems = folder.read(&csv, "").expect_err(said);
        let problem = &problems[0];
        assert_eq!(
            (problem.file.as_str(), problem.line),
            ("links.csv", line),
            "{problem}"
        );
        assert!(problem.to_string().contains(said), "{said}: {problem}");
    }
    let beside = folder.read("name\nx\n", "count = 2\n").expect_err("both");
    assert!(
        beside[0].reason.contains("'count' beside csv"),
        "{beside:?}"
    );
}
