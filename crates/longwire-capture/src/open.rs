//! Opens files by user-supplied names, without waiting for other programs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Opens a file for reading.
///
/// # Errors
/// The kernel's error; `InvalidInput` for a FIFO (see [`check`]).
pub fn to_read(path: impl AsRef<Path>) -> io::Result<File> {
    check(path.as_ref())?;
    File::open(path)
}

/// Creates or truncates a file for writing. A regular file is locked until the returned file and
/// its duplicates are closed. A FIFO is accepted if a program is already reading it.
///
/// # Errors
/// The kernel's error; `ResourceBusy` for a file that is open through this function, which is
/// unchanged; `InvalidInput` for a FIFO without a reader.
pub fn to_write(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let Err(refused) = check(path) else {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        if file.metadata()?.is_file() {
            lock(&file)?;
            // ext4 flushes a truncated file when it is closed, even if it was empty.
            if file.metadata()?.len() > 0 {
                file.set_len(0)?;
            }
        }
        return Ok(file);
    };
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NONBLOCK);
    let file = options
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => refused,
            _ => error,
        })?;
    // Later writes may block until the reader is ready.
    fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
    Ok(file)
}

/// Locks a file against other writers, here and in other processes. The lock belongs to the open
/// file description, so closing another descriptor of the file does not release it.
fn lock(file: &File) -> io::Result<()> {
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    match fcntl(file, FcntlArg::F_OFD_SETLK(&whole)) {
        Err(Errno::EAGAIN | Errno::EACCES) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another run or option is writing this file; choose another name",
        )),
        // Best effort: some file systems have no locks.
        _ => Ok(()),
    }
}

/// Rejects FIFOs: opening one blocks until another program opens the other end, and no signal
/// interrupts that. A pipe with a descriptor, such as `/dev/stdin` or a process substitution,
/// already has another end.
///
/// # Errors
/// `InvalidInput`, with a remedy in the message.
pub fn check(path: &Path) -> io::Result<()> {
    let by_descriptor = [
        "/dev/fd",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/proc",
    ];
    let is_fifo = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    if !is_fifo || by_descriptor.iter().any(|place| path.starts_with(place)) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "opening a FIFO blocks until another program opens it; use a regular file, or pipe through \
         /dev/stdin or /dev/stdout",
    ))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use longwire_testbed::support::Folder;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_file_with_a_writer_is_refused_and_unchanged() {
        let folder = Folder::new();
        let path = folder.path().join("same.csv");
        let mut writer = to_write(&path).expect("writable");
        writer.write_all(b"rows").expect("written");
        let link = folder.path().join("link.csv");
        fs::hard_link(&path, &link).expect("a link");
        for name in [&path, &link] {
            let error = to_write(name).expect_err("it has a writer");
            assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
            assert_eq!(fs::read(&path).expect("it is there"), b"rows");
        }
        to_read(&path).expect("readers are not affected");
        // A duplicate keeps the lock.
        let duplicate = writer.try_clone().expect("a duplicate");
        drop(writer);
        to_write(&path).expect_err("it has a writer");
        drop(duplicate);
        to_write(&path).expect("no writer is left");
        assert_eq!(fs::read(&path).expect("it is there"), b"");
        let [_first, _second] = [(); 2].map(|()| to_write("/dev/null").expect("a device"));
    }

    #[test]
    fn a_fifo_is_refused_at_once_and_a_pipe_is_not() {
        let folder = Folder::new();
        let path = folder.path().join("fifo");
        mkfifo(&path, Mode::S_IRWXU).expect("a FIFO");
        let opened = [to_read(&path), to_write(&path)];
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        let _reader = options.open(&path).expect("a FIFO");
        to_write(&path).expect("there is a reader");
        for opened in opened {
            let error = opened.expect_err("it is a FIFO");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        let (reader, _writer) = io::pipe().expect("a pipe");
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&reader);
        check(Path::new(&format!("/proc/self/fd/{descriptor}"))).expect("a pipe");
        check(Path::new("/dev/null")).expect("a device");
        check(Path::new("/nowhere")).expect("the kernel says so");
    }
}
