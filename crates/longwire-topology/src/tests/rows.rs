//! Links from CSV files.

use longwire_testbed::support::{self, Folder};
use std::fs;

use crate::{Problem, Topology};

/// Reads a topology with links from this CSV text and additional TOML.
fn read(csv: &str, more: &str) -> Result<Topology, Vec<Problem>> {
    let folder = Folder::new();
    fs::write(folder.file("links.csv"), csv).expect("written");
    let text = format!(
        "[ports]\na = \"packet:eth1\"\nb = \"packet:eth2\"\n[templates.slow]\nrate = \"1mbit\"\n\
         [[link]]\ncsv = \"links.csv\"\n{more}"
    );
    Topology::parse("net.toml", &text, folder.path())
}

#[test]
fn rows_are_links_with_their_options() {
    let csv = "name,match,template,up-delay,down-rate,shared\n# a remark\n\
               x,\"src=1.1.1.1,dst=2.2.2.2\",slow,5ms,8mbit,\ny,vlan=7,,,,true\n";
    let topology = read(csv, "delay = \"1ms\"\n").expect("good");
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
fn an_invalid_row_is_refused_with_its_line() {
    let good: String = (0..5000).map(|n| format!("l{n},1mbit\n")).collect();
    // A slash stands for a line break.
    for [csv, line, said] in support::rows(
        "
        name,rate/GOOD/bad,fast/ | 5002 | fast
        name,rate/GOOD/l7,1mbit/ | 5002 | used twice
        name,rate/GOOD/short/ | 5002 | 1 columns, but the header has 2
        name,raet/x,1mbit/ | 1 | did you mean 'rate'?
        rate/1mbit/ | 1 | no column named 'name'
        name,rate,rate/x,1mbit,1mbit/ | 1 | occurs twice
        name,template/x,fast/ | 2 | no template named 'fast'
        name,shared/x,maybe/ | 2 | neither true nor false
        name,shared,up-rate/x,true,1mbit/ | 2 | directions have different options
        ",
    ) {
        let csv = csv.replace("GOOD/", &good).replace('/', "\n");
        let problems = read(&csv, "").expect_err(said);
        let problem = &problems[0];
        let place = format!("{}:{}", problem.file, problem.line);
        assert_eq!(place, format!("links.csv:{line}"), "{problem}");
        assert!(problem.to_string().contains(said), "{said}: {problem}");
    }
    let both = read("name\nx\n", "count = 2\n").expect_err("both");
    let said = "'count' cannot be combined with csv";
    assert!(both[0].reason.contains(said), "{both:?}");
}
