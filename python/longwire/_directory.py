"""Private directories of links, which a killed process leaves and a later link removes."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile

PREFIX = "longwire-py-"

_LOCK = "lock"
"""The file whose lock shows that the owner lives. The program locks the directory itself."""


class PrivateDirectory:
    """A directory that only this user may read. It is locked while its owner lives."""

    def __init__(self) -> None:
        remove_stale()
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        self._lock = os.open(self.file("new"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # It has its name when it is locked: nothing takes it for a stale one before.
        os.rename(self.file("new"), self.file(_LOCK))

    def file(self, name: str) -> str:
        """Returns the path of a file in it."""
        return os.path.join(self.path, name)

    def remove(self) -> None:
        """Removes it with its files. Further calls do nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_stale() -> None:
    """Removes directories of this user whose owners have ended."""
    parent = tempfile.gettempdir()
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
