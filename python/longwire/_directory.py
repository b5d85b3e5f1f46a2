"""Private directories of links, which a killed process leaves and a later link removes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import weakref

PREFIX = "longwire-py-"

_PARENT_MAX = 60
"""Bytes of a parent directory: a Unix socket's path has 107 at most."""

_LOCK = "lock"
"""The file whose lock shows that the owner lives. The program locks the directory itself."""


class PrivateDirectory:
    """A directory that only this user may read. It is locked while its owner lives."""

    def __init__(self) -> None:
        remove_stale()
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=_parent())
        self._lock = os.open(self.file("new"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # It has its name when it is locked: nothing takes it for a stale one before.
        os.rename(self.file("new"), self.file(_LOCK))
        self._removal = weakref.finalize(self, _remove, self.path, self._lock, os.getpid())

    def file(self, name: str) -> str:
        """Returns the path of a file in it."""
        return os.path.join(self.path, name)

    def remove(self) -> None:
        """Removes it with its files. Further calls do nothing."""
        self._removal()


def _remove(path: str, lock: int, owner: int) -> None:
    # A forked process has a copy of everything, and removes nothing.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _parent() -> str:
    """Returns the directory for private directories: that for temporary files, unless its path
    is too long for the socket in it.
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
        # A directory that has just been made has no such file yet.
        lock = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            # Fails while the owner has it.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass
    finally:
        os.close(lock)
