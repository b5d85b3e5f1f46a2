"""Private directories of runs. A killed process leaves its directory behind; a later run
removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref

PREFIX = "longwire-py-"

_PARENT_MAX = 60
"""Maximum length of the parent directory in bytes, since a Unix socket path has at most 107."""

_LOCK = "lock"
"""Lock file of a live owner. The program locks the directory itself."""


class PrivateDirectory:
    """A directory accessible to this user only, locked while its owner lives."""

    def __init__(self) -> None:
        remove_stale()
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=_parent())
        self._lock = os.open(self.file("new"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # Renamed once locked, so that it never appears stale.
        os.rename(self.file("new"), self.file(_LOCK))
        self._removal = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def file(self, name: str) -> str:
        """Returns the path of a file in the directory."""
        return os.path.join(self.path, name)

    def remove(self) -> None:
        """Removes the directory with its files. Idempotent."""
        self._removal()


def _remove(path: str, lock: int, owner: int) -> None:
    # A forked process must not remove anything.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _parent() -> str:
    """Returns the parent of private directories: the temporary directory, unless its path is too
    long for a socket.
    """
    directory = tempfile.gettempdir()
    return directory if len(os.fsencode(directory)) <= _PARENT_MAX else "/tmp"


def remove_stale() -> None:
    """Removes directories of this user whose owners have ended."""
    parent = _parent()
    for name in os.listdir(parent):
        if name.startswith(PREFIX):
            _remove_if_stale(os.path.join(parent, name))


def _remove_if_stale(path: str) -> None:
    try:
        # A new directory does not have the file yet.
        lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            # Fails while the owner lives.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(lock)
