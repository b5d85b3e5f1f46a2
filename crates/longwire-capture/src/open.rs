//! Opens files by user-supplied names, without waiting for other programs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

/// Opens a file for reading.
///
/// # Errors
/// The kernel's error; `InvalidInput` for a FIFO (see [`check`]).
pub fn to_read(path: impl AsRef<Path>) -> io::Result<File> {
    check(path.as_ref())?;
    File::open(path)
}

/// Creates or truncates a file for writing. A FIFO is accepted if a program is already reading it.
///
/// # Errors
/// The kernel's error; `InvalidInput` for a FIFO without a reader.
pub fn to_write(path: impl AsRef<Path>) -> io::Result<File> {
    let path = path.as_ref();
    let Err(refused) = check(path) else {
        return File::create(path);
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
    use longwire_testbed::support::Folder;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

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
