"""Starts a command in one of a link's networks.

It is started as ``python -I -S _enter.py PID COMMAND...``, where PID is a process in that network,
and replaces itself by the command, so that its parent has the command as its child.
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

# As a shell has them.
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def set_namespace(fd: int, kind: int) -> None:
    """Moves this process into a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_network(process: str) -> None:
    """Moves this process into the user and network namespaces of another."""
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    user = os.open(f"/proc/{process}/ns/user", os.O_RDONLY)
    # Root needs no user namespace, and cannot enter the one that it is in.
    if os.fstat(user).st_ino != os.stat("/proc/self/ns/user").st_ino:
        set_namespace(user, CLONE_NEWUSER)
    set_namespace(network, CLONE_NEWNET)


def enter(process: str) -> None:
    """Moves this process into the networks and the root directory of another."""
    directory = os.getcwd()
    root = os.open(f"/proc/{process}/root", os.O_PATH | os.O_DIRECTORY)
    enter_network(process)
    # The network's /etc/hosts has the names near and far.
    os.fchdir(root)
    os.chroot(".")
    os.chdir(directory)


def main() -> None:
    process, *command = sys.argv[1:]
    try:
        enter(process)
    except OSError as error:
        sys.exit(f"longwire: the link has ended, or its network cannot be entered: {error}")
    try:
        os.execvp(command[0], command)
    except FileNotFoundError:
        code, reason = NOT_FOUND, "not found"
    except OSError as error:
        code, reason = NOT_EXECUTABLE, str(error.strerror)
    print(f"longwire: {command[0]}: {reason}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
