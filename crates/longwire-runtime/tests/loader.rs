//! Files for models, as the system has them.

use std::fs;
use std::path::PathBuf;

use longwire_engine::{LinkOptions, Loader};
use longwire_runtime::FileLoader;

/// A file of this test's own, removed with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, contents: &[u8]) -> Scratch {
        let name = format!("longwire-loader-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, contents).expect("the temporary folder is writable");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain name")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn refusal(path: &str) -> String {
    let read = FileLoader::new().read(path, &mut |_| Ok(()));
    read.expect_err("it was read")
}

#[test]
fn a_file_comes_whole_and_in_order() {
    let contents: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let file = Scratch::new("whole", &contents);
    let (mut read, mut pieces) = (Vec::new(), 0);
    let whole = FileLoader::new().read(file.path(), &mut |piece| {
        pieces += 1;
        read.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(whole, Ok(()));
    assert!(read == contents && pieces > 1);
}

#[test]
fn what_takes_the_pieces_ends_the_reading() {
    let file = Scratch::new("ended", &[0; 1 << 20]);
    let mut pieces = 0;
    let ended = FileLoader::new().read(file.path(), &mut |_| {
        pieces += 1;
        Err("enough".to_owned())
    });
    assert_eq!((ended, pieces), (Err("enough".to_owned()), 1));
}

#[test]
fn what_is_no_file_is_refused_with_the_reason() {
    assert!(refusal("-").contains("name a file"));
    let folder = std::env::temp_dir();
    assert!(refusal(folder.to_str().expect("a plain name")).contains("directory"));
    assert!(refusal("no/such/file").contains("no such file"));
}

#[test]
fn models_read_their_files_through_it() {
    let file = Scratch::new("rates.csv", b"time,rate_mbps\n0,8\n1,4\n");
    let options = |path: &str| LinkOptions {
        rate: Some(format!("trace:{path}")),
        ..LinkOptions::default()
    };
    let config = options(file.path()).parse_with(&FileLoader::new());
    let rate = config.expect("a table of rates").rate.bit_rate();
    assert_eq!(rate.map(|rate| rate.bits_per_sec()), Some(6_000_000));

    let broken = Scratch::new("broken.csv", b"time,rate_mbps\n0,8\n1,x\n");
    let error = options(broken.path()).parse_with(&FileLoader::new());
    let error = error.expect_err("it was read").to_string();
    for part in ["rate: ", broken.path(), "line 3", "'x' is not a number"] {
        assert!(error.contains(part), "{error}");
    }
}
