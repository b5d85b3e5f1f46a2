//! The verdict log: both formats return rows as written, and errors state the location of the
//! fault.

use longwire_capture::log::{COLUMNS, Fate, LogError, LogReader, LogWriter, Name, Row};
use longwire_testbed::support::{Folder, rows};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn logs(folder: &Folder) -> [String; 2] {
    ["log.csv", "log.parquet"].map(|name| folder.file(name))
}

fn row(frame: u64) -> Row {
    let arrival_ns = 1_700_000_000_000_000_000 + frame as i64 * 1_000;
    let dropped = frame % 7 == 3;
    Row {
        frame,
        link: Name::from(["up", "down"][frame as usize % 2]),
        arrival_ns,
        length: 60 + (frame % 1_455) as u32,
        verdict: if dropped { Fate::Drop } else { Fate::Deliver },
        departure_ns: (!dropped).then_some(arrival_ns + 700),
        release_ns: (!dropped).then_some(arrival_ns + 20_000_700),
        reason: dropped.then(|| Name::from("queue_full")),
        ecn_marked: frame.is_multiple_of(5),
        corrupted: frame.is_multiple_of(11),
        copy: (frame % 3) as u16,
        queue_packets: (frame % 100) as u32,
        queue_bytes: frame % 100 * 1_500,
    }
}

fn write(path: &str, rows: &[Row]) {
    write_from(path, None, rows);
}

fn write_from(path: &str, epoch: Option<i64>, rows: &[Row]) {
    let mut log = LogWriter::create(path).unwrap();
    epoch.into_iter().for_each(|epoch| log.set_epoch(epoch));
    rows.iter().for_each(|row| log.write(row).unwrap());
    log.finish().unwrap();
}

fn read(path: &str) -> Result<Vec<Row>, LogError> {
    LogReader::open(path)?.collect()
}

/// Returns the error that ends the reading of a file.
fn complaint(path: &str) -> String {
    read(path).expect_err(path).to_string()
}

fn any_text() -> impl Strategy<Value = Name> {
    // Includes characters that must be quoted in CSV.
    "[a-z\",;\n\r é]{1,12}".prop_map(|text| Name::from(text.as_str()))
}

prop_compose! {
    /// Any consistent row, including extreme values.
    fn any_row()(
        (frame, arrival_ns, length, copy) in any::<(u64, i64, u32, u16)>(),
        link in any_text(),
        reason in any_text(),
        fate in 0..3usize,
        departure in option::of(0..i64::MAX),
        (ecn_marked, corrupted, queue_packets, queue_bytes)
            in any::<(bool, bool, u32, u64)>(),
        transit in 0..i64::MAX,
    ) -> Row {
        let verdict = Fate::ALL[fate];
        let delivered = verdict == Fate::Deliver;
        Row {
            frame,
            link,
            arrival_ns,
            length,
            verdict,
            departure_ns: match delivered {
                true => Some(arrival_ns),
                false => departure.map(|after| arrival_ns.saturating_add(after)),
            },
            release_ns: delivered.then(|| arrival_ns.saturating_add(transit)),
            reason: (verdict == Fate::Drop).then_some(reason),
            ecn_marked,
            corrupted,
            copy,
            queue_packets,
            queue_bytes,
        }
    }
}

proptest! {
    #[test]
    fn any_rows_come_back_as_they_were_written(rows in vec(any_row(), 0..200)) {
        let dir = Folder::new();
for path in logs(&dir) {
for rows in [&rows[..], &[]] {
write(&path, rows);
prop_assert_eq!(&read(&path).unwrap(), rows, "{}", path);
}
}
    }

    /// Reading a damaged file yields rows, or an error that contains the file name.
    #[test]
    fn damaged_files_are_errors_and_not_panics(
        at in 0..10_000usize, bits in 1..=255u8, cut in option::of(0..10_000usize),
    ) {
        let dir = Folder::new();
        let rows: Vec<Row> = (0..300).map(row).collect();
for path in logs(&dir) {
write(&path, &rows);
            let mut bytes = std::fs::read(&path).unwrap_or_default();
            let place = |share: usize| bytes.len() * share / 10_000;
            let (at, cut) = (place(at), cut.map(place));
            bytes[at] ^= bits;
            bytes.truncate(cut.unwrap_or(bytes.len()));
            crate::common::write(&path, &bytes);
            if let Err(error) = read(&path) {
                prop_assert!(error.to_string().contains(&path), "{}", error);
            }
        }
    }
}

#[test]
fn many_rows_pass_through_several_row_groups() {
    let dir = Folder::new();
    let rows: Vec<Row> = (0..300_000).map(row).collect();
    let path = dir.file("log.parquet");
    write(&path, &rows);
    let mut log = LogReader::open(&path).unwrap();
    let first = rows[0].arrival_ns;
    let last = rows.iter().filter_map(|row| row.release_ns).max();
    assert_eq!(log.span(), last.map(|last| (first, last)));
    assert_eq!(log.progress(), (0, 300_000));
    for row in &rows {
        assert_eq!(log.next().and_then(Result::ok).as_ref(), Some(row));
    }
    assert!(log.next().is_none());
    assert_eq!(log.progress(), (300_000, 300_000));

    let text = dir.file("log.csv");
    write(&text, &rows);
    let [packed, text] = [path, text].map(|path| std::fs::metadata(path).unwrap().len());
    assert!(packed * 5 < text, "{packed} against {text} bytes of text");
}

#[test]
fn the_name_selects_the_written_and_the_bytes_the_read_format() {
    let dir = Folder::new();
    for name in ["log", "log.txt", "log.csv.gz", "parquet"] {
        let said = LogWriter::create(dir.file(name)).err().unwrap().to_string();
        assert!(said.contains(".csv or .parquet"), "{name}: {said}");
    }
    let (parquet, renamed) = (dir.file("log.PARQUET"), dir.file("log.dat"));
    write(&parquet, &[row(0), row(1)]);
    assert!(std::fs::rename(parquet, &renamed).is_ok());
    assert!(matches!(read(&renamed), Ok(rows) if rows == [row(0), row(1)]));
}

#[test]
fn csv_is_read_by_the_names_of_its_columns() {
    let dir = Folder::new();
    let path = dir.file("log.csv");
    // A different column order, an additional column, and booleans as written by other programs.
    let text = "\
note,queue_bytes,queue_packets,copy,corrupted,ecn_marked,reason,release_ns,departure_ns,verdict,length,arrival_ns,link,frame
mine,1500,1,0,False,1,,300,200,deliver,1500,100,up,7
,0,0,0,0,TRUE,\"loss, far\",,,drop,60,150,up,8
";
    crate::common::write(&path, text.as_bytes());
    let rows = read(&path).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].frame, rows[0].release_ns), (7, Some(300)));
    assert!(rows[0].ecn_marked && !rows[0].corrupted);
    assert_eq!(rows[1].reason.as_deref(), Some("loss, far"));
}

#[test]
fn times_are_whole_numbers_of_moderate_size_in_every_row() {
    let dir = Folder::new();
    let path = dir.file("log.csv");
    let rows: Vec<Row> = (0..8).map(row).collect();
    write_from(&path, Some(1_700_000_000_000_000_000 - 500), &rows);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let header = "frame,link,arrival_ns,length,verdict,sojourn_ns,delay_ns,reason,ecn_marked,\
                  corrupted,copy,queue_packets,queue_bytes,epoch_ns";
    assert_eq!(lines[0], header);
    let end = "1699999999999999500";
    for (line, row) in [
        (1, "0,up,500,60,deliver,700,20000700,,true,true,0,0,0"),
        (
            4,
            "3,down,3500,63,drop,-1,-1,queue_full,false,false,0,3,4500",
        ),
        (
            6,
            "5,down,5500,65,deliver,700,20000700,,true,false,2,5,7500",
        ),
    ] {
        assert_eq!(lines[line], format!("{row},{end}"));
    }
    assert_eq!(read(&path).unwrap_or_default(), rows);
}

#[test]
fn a_parquet_file_has_its_epoch_in_the_metadata_and_no_absent_number() {
    use parquet::basic::Repetition;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let dir = Folder::new();
    let path = dir.file("log.parquet");
    write(&path, &(0..8).map(row).collect::<Vec<_>>());
    let file = std::fs::File::open(&path).unwrap();
    let file = SerializedFileReader::new(file).unwrap();
    let metadata = file.metadata().file_metadata();
    let mut entries = metadata.key_value_metadata().unwrap().iter();
    let epoch = entries.find(|entry| entry.key == "longwire.epoch_ns");
    assert_eq!(epoch.unwrap().value.as_deref(), Some("1700000000000000000"));
    for column in metadata.schema_descr().columns() {
        let repetition = column.self_type().get_basic_info().repetition();
        let expected = match column.name() {
            "reason" => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        assert_eq!(repetition, expected, "{}", column.name());
    }
}

#[test]
fn wrong_lines_are_named() {
    let dir = Folder::new();
    let path = dir.file("log.csv");
    let old = ["departure_ns", "release_ns"];
    let header = [&COLUMNS[..5], &old, &COLUMNS[7..13]].concat().join(",");
    let good = "0,up,100,60,deliver,150,200,,false,false,0,1,60";
    for [bad, expected] in rows(
        "
        x,up,100,60,deliver,150,200,,false,false,0,1,60 | frame 'x' is not a whole number
        1,up,100,60,lost,150,200,,false,false,0,1,60 | verdict 'lost' is not one of
        1,up,100,60,deliver,150,,,false,false,0,1,60 | needs release_ns
        1,up,100,60,deliver,,200,,false,false,0,1,60 | needs departure_ns
        1,up,100,60,deliver,150,90,,false,false,0,1,60 | before arrival_ns 100
        1,up,100,60,drop,,,,false,false,0,1,60 | needs a reason
        1,up,100,60,deliver,150,200,,maybe,false,0,1,60 | ecn_marked 'maybe'
        1,up,100,60,deliver,150,200,,false,false,70000,1,60 | copy '70000'
        1,up,100 | 3 fields, but the header has 13
    ",
    ) {
        let text = format!("{header}\n{good}\n{bad}\n{good}\n");
        crate::common::write(&path, text.as_bytes());
        let said = complaint(&path);
        assert!(said.contains(&format!("{path}: line 3: ")), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    // Relative times have other column names.
    let header = COLUMNS.join(",");
    for (times, column) in [("-7,20", "sojourn_ns"), ("10,-20", "delay_ns")] {
        let line = format!("0,up,100,60,deliver,{times},,false,false,0,1,60,5");
        crate::common::write(&path, format!("{header}\n{line}\n").as_bytes());
        let said = complaint(&path);
        assert!(
            said.contains(&format!("needs {column} of at least 0")),
            "{said}"
        );
    }
}

#[test]
fn non_logs_are_refused() {
    let dir = Folder::new();
    let refused = |name: &str, text: &str, expected: &str| {
        let path = dir.file(name);
        crate::common::write(&path, text.as_bytes());
        let said = complaint(&path);
        assert!(said.contains(expected), "{said}");
    };
    let expected = "missing all columns; a log has the columns frame, link";
    refused("log.csv", "time,rate\n1,2\n", expected);
    let renamed = COLUMNS.join(",").replace("copy", "copies") + "\n";
    refused("log.csv", &renamed, "missing copy; a log has the columns");
    let killed = "empty: the run was killed before its first record";
    refused("log.csv", "", killed);
    refused("log.parquet", "", killed);
    let damaged = "PAR1 and nothing else that would be Parquet";
    refused("log.csv", damaged, "not readable as Parquet");
    let missing = dir.file("none.parquet");
    assert!(complaint(&missing).contains(&missing));
}

#[test]
fn a_parquet_file_cut_off_anywhere_is_an_error() {
    let dir = Folder::new();
    let path = dir.file("log.parquet");
    let rows: Vec<Row> = (0..50).map(row).collect();
    write(&path, &rows);
    let bytes = std::fs::read(&path).unwrap_or_default();
    for len in 0..bytes.len() {
        crate::common::write(&path, &bytes[..len]);
        let said = complaint(&path);
        assert!(said.contains(&path), "{len}: {said}");
    }
}

#[test]
fn rows_that_contradict_themselves_are_not_written() {
    let dir = Folder::new();
    for path in logs(&dir) {
        let mut log = LogWriter::create(&path).unwrap();
        assert!(log.write(&row(0)).is_ok());
        let bad = Row {
            release_ns: None,
            ..row(1)
        };
        let said = log.write(&bad).unwrap_err().to_string();
        assert!(said.contains(&format!("{path}: row 2: ")), "{said}");
    }
}

#[test]
fn a_full_disk_is_reported() {
    // Every write to this device fails with "no space left".
    let link = Folder::new();
    for path in logs(&link) {
        assert!(std::os::unix::fs::symlink("/dev/full", &path).is_ok());
        let mut log = LogWriter::create(&path).unwrap();
        let written = (0..300_000).try_for_each(|frame| log.write(&row(frame)));
        let said = written.and_then(|()| log.finish()).unwrap_err().to_string();
        for part in [&path, "No space left"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
