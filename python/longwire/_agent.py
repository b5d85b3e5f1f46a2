"""The agent of a run in each of its networks.

Usage: ``python -I -S _agent.py FD PARENT_PIDFD NAME``. It serves requests on the socket FD
until the process that started the link ends or closes the socket; when the agent ends, the link
ends. A request is a message with a descriptor for the response:

* ``socket FAMILY TYPE PROTOCOL``: responds with a socket in this network, or an errno.
"""

from __future__ import annotations

import os
import select
import socket
import sys

MESSAGE_MAX = 256


def answer(request: bytes, reply: socket.socket) -> None:
    """Executes a request and sends the response."""
    _word, *numbers = request.split()
    try:
        family, kind, protocol = map(int, numbers)
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        reply.send(str(error.errno or 0).encode())
        return
    with made:
        socket.send_fds(reply, [b"0"], [made.fileno()])


def serve(channel: socket.socket, parent: int) -> None:
    """Serves requests until the channel closes or the parent ends."""
    poller = select.poll()
    poller.register(channel, select.POLLIN)
    poller.register(parent, select.POLLIN)
    while True:
        ready = {found for found, _event in poller.poll()}
        if parent in ready:
            return
        request, descriptors, _flags, _address = socket.recv_fds(channel, MESSAGE_MAX, 1)
        if not request:
            return
        with socket.socket(fileno=descriptors[0]) as reply:
            answer(request, reply)


def main() -> None:
    channel_fd, parent = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(channel_fd, False)
    os.set_inheritable(parent, False)
    channel = socket.socket(fileno=channel_fd)
    channel.send(str(os.getpid()).encode())
    serve(channel, parent)


if __name__ == "__main__":
    main()
