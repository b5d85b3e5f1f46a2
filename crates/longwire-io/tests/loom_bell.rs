//! Models the bell under loom: a publishing and a sleeping thread, in every interleaving and with
//! every value that the memory model allows. After a lost wake-up the sleeper waits forever, which
//! loom reports as a deadlock. Run with
//! `cargo test -p longwire-io --features loom --test loom_bell`.
#![cfg(feature = "loom")]

use longwire_engine::{Bytes, Nanos};
use longwire_io::delay_line::{
    DelayLineConfig, DelayLineReader, DelayLineWriter, Note, delay_line,
};
use longwire_io::{Bell, Offload};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

fn line() -> (DelayLineWriter, DelayLineReader) {
    delay_line(&DelayLineConfig {
        budget: Bytes(2 * 96),
        huge_pages: false,
    })
    .expect("a small budget")
}

fn bell() -> Arc<Bell> {
    Arc::new(Bell::new().expect("an event"))
}

/// Publishes one frame and wakes the reader, as a stage's loop does.
fn send(writer: &mut DelayLineWriter, bell: &Bell) {
    let note = Note {
        release: Nanos::ZERO,
        tag: 1,
        offload: Offload::NONE,
        part: None,
        wire_len: 0,
    };
    writer.push(&[7; 16], note).expect("there is room");
    writer.publish();
    bell.ring_if_asleep();
}

/// Takes `count` frames off the lines and sleeps while there are none.
fn take(readers: &mut [DelayLineReader], bell: &Bell, count: usize) {
    let mut taken = 0;
    while taken < count {
        for reader in readers.iter_mut() {
            while reader.front().is_some() {
                reader.advance();
                taken += 1;
            }
        }
        if taken == count {
            return;
        }
        bell.asleep();
        // The last check: the thread must not sleep while work is available.
        if readers.iter_mut().all(|reader| reader.front().is_none()) {
            bell.event().wait();
            bell.event().clear();
        }
        bell.awake();
    }
}

#[test]
fn each_published_frame_wakes_its_reader() {
    for count in [1, 2] {
        loom::model(move || {
            let (mut writer, reader) = line();
            let bell = bell();
            let ringing = Arc::clone(&bell);
            let sender =
                thread::spawn(move || (0..count).for_each(|_| send(&mut writer, &ringing)));
            take(&mut [reader], &bell, count);
            sender.join().unwrap();
        });
    }
}

#[test]
fn two_threads_wake_one_reader() {
    loom::model(|| {
        let bell = bell();
        let (senders, mut readers): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (mut writer, reader) = line();
                let ringing = Arc::clone(&bell);
                (thread::spawn(move || send(&mut writer, &ringing)), reader)
            })
            .unzip();
        take(&mut readers, &bell, 2);
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn a_stop_wakes_an_idle_reader() {
    loom::model(|| {
        let bell = bell();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = (Arc::clone(&bell), Arc::clone(&stop));
        let stopper = thread::spawn(move || {
            let (bell, stop) = stopping;
            stop.store(true, Ordering::Relaxed);
            bell.ring();
        });
        while !stop.load(Ordering::Relaxed) {
            bell.asleep();
            bell.event().wait();
            bell.event().clear();
            bell.awake();
        }
        stopper.join().unwrap();
    });
}
