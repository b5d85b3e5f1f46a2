//! Model files, read from the real file system.

use longwire_testbed::support::Folder;
use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use longwire_engine::{LinkSpec, Loader, NoLoader};
use longwire_runtime::{FileAccess, FileError, FileLoader, FileReader, ReadLimits};

/// Returns a file with these contents, in a folder that is removed with the test.
fn scratch(contents: &[u8]) -> (Folder, String) {
    let folder = Folder::new();
    let path = folder.file("file");
    fs::write(&path, contents).expect("the temporary folder is writable");
    (folder, path)
}

fn refusal(path: &str) -> String {
    let read = FileLoader::new().read(path, &mut |_| Ok(()));
    read.expect_err("it was read")
}

#[test]
fn a_file_is_read_completely_and_in_order() {
    let contents: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let (_folder, file) = scratch(&contents);
    let (mut read, mut pieces) = (Vec::new(), 0);
    let whole = FileLoader::new().read(&file, &mut |piece| {
        pieces += 1;
        read.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(whole, Ok(()));
    assert!(read == contents && pieces > 1);
}

#[test]
fn the_consumer_can_end_reading() {
    let (_folder, file) = scratch(&[0; 1 << 20]);
    let mut pieces = 0;
    let ended = FileLoader::new().read(&file, &mut |_| {
        pieces += 1;
        Err("enough".to_owned())
    });
    assert_eq!((ended, pieces), (Err("enough".to_owned()), 1));
}

#[test]
fn non_files_are_refused_with_a_reason() {
    assert!(refusal("-").contains("name a file"));
    let folder = std::env::temp_dir();
    assert!(refusal(folder.to_str().expect("a plain name")).contains("directory"));
    assert!(refusal("no/such/file").contains("no such file"));
}

/// Returns the result of work that must not block.
fn soon<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(work()));
    let came = receiver.recv_timeout(Duration::from_secs(20));
    came.expect("it does not wait for ever")
}

#[test]
fn only_regular_files_are_read_and_opened() {
    let folder = Folder::new();
    // The FIFO has no writer.
    let fifo = folder.file("fifo");
    nix::unistd::mkfifo(fifo.as_str(), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let path = fifo.clone();
    assert!(soon(move || refusal(&path)).contains("a FIFO, not a regular file"));
    assert!(soon(|| refusal("/dev/null")).contains("a device, not a regular file"));
    let plugin = soon(move || {
        let text = format!("plugin:{fifo}");
        LinkSpec::new().set("loss", &text, &FileLoader::new())
    });
    let error = plugin.expect_err("no plugin").to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let (_folder, file) = scratch(&[b'1'; 1 << 20]);
    let read = |bytes: u64| {
        let limits = ReadLimits {
            bytes,
            ..ReadLimits::default()
        };
        let path = Path::new(&file);
        let mut reader = FileReader::open(path, &FileAccess::Any, limits, None).expect("a thread");
        let mut text = Vec::new();
        let read = std::io::Read::read_to_end(&mut reader, &mut text);
        read.map_err(|error| error.to_string())
    };
    assert_eq!(read(1 << 20), Ok(1 << 20));
    let error = read((1 << 20) - 1).expect_err("it is too large");
    assert!(error.contains("larger than 0 MiB"), "{error}");
    // Growing files are refused too: the system reports a size of zero for them.
    let endless = Path::new("/proc/self/maps");
    let limits = ReadLimits {
        bytes: 10,
        ..ReadLimits::default()
    };
    let reader = FileReader::open(endless, &FileAccess::Any, limits, None);
    let piece = reader.expect("a thread").next_piece();
    assert!(matches!(piece, Err(FileError::TooLarge(10))), "{piece:?}");
}

#[test]
fn no_thread_is_left_after_a_file_was_read() {
    let (_folder, file) = scratch(b"1ms\n");
    let threads = || {
        let tasks = fs::read_dir("/proc/self/task").expect("a process");
        let names =
            tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.trim() == "longwire-file").count()
    };
    // Other tests read files too, so the thread count fluctuates.
    let before = threads();
    for _ in 0..200 {
        let read = FileLoader::new().read(&file, &mut |_| Ok(()));
        assert_eq!(read, Ok(()));
    }
    assert!(
        threads() <= before.max(4),
        "{before} before, {} after",
        threads()
    );
}

#[test]
fn models_read_their_files_through_it() {
    let (_folder, file) = scratch(b"time,rate_mbps\n0,8\n1,4\n");
    let read = |file: &str| LinkSpec::parse(&format!("rate=trace:{file}"), &FileLoader::new());
    let spec = read(&file).expect("a table of rates");
    let rate = spec.build(&NoLoader).expect("no plugins").rate.bit_rate();
    assert_eq!(rate.map(|rate| rate.bits_per_sec()), Some(6_000_000));

    let (_other, broken) = scratch(b"time,rate_mbps\n0,8\n1,x\n");
    let error = read(&broken).expect_err("it was read").to_string();
    for part in ["rate: ", &broken, "line 3", "'x' is not a number"] {
        assert!(error.contains(part), "{error}");
    }
}
