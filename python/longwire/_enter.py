"""Runs a command in a network of a link.

Usage: ``python -I -S _enter.py PID COMMAND...``, where PID is a process in that network. The
script execs the command, which thus becomes a child of the caller.
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000

# Exit codes of a shell.
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def set_namespace(fd: int, kind: int) -> None:
    """Enters a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_network(process: str) -> None:
    """Enters the user and network namespaces of a process."""
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
    user = os.open(f"/proc/{process}/ns/user", os.O_RDONLY)
    # Root needs no user namespace, and cannot reenter its own.
    if os.fstat(user).st_ino != os.stat("/proc/self/ns/user").st_ino:
        set_namespace(user, CLONE_NEWUSER)
    set_namespace(network, CLONE_NEWNET)


def enter(process: str) -> None:
    """Enters the network and the root directory of a process."""
    directory = os.getcwd()
    root = os.open(f"/proc/{process}/root", os.O_PATH | os.O_DIRECTORY)
    enter_network(process)
    # The network's /etc/hosts resolves near and far.
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
