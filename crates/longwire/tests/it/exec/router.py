"""Queries what a host learns from routers on its path: `hops`, `mtu`, `tcp` on near, `serve` on far."""
import os, select, socket, struct, sys

FAMILIES = [
    # Family, far, level, RECVERR, time to live, MTU_DISCOVER, MTU, start of the offender's address.
    (socket.AF_INET, os.environ["LONGWIRE_FAR"], socket.IPPROTO_IP, 11, 2, 10, 14, 20, 4),
    (socket.AF_INET6, os.environ["LONGWIRE_FAR6"], socket.IPPROTO_IPV6, 25, 16, 23, 24, 24, 16),
]
MSG_ERRQUEUE = 0x2000


def error_of(udp, recverr, start, length):
    poll = select.poll()
    poll.register(udp, select.POLLERR)
    if not poll.poll(5000):
        return "no error"
    _, ancillary, _, _ = udp.recvmsg(1, 512, MSG_ERRQUEUE)
    for _, kind, data in ancillary:
        if kind == recverr:
            _, _, type, code, _, info, _ = struct.unpack("=IBBBBII", data[:16])
            offender = socket.inet_ntop(udp.family, data[start : start + length])
            return f"{offender} {type}/{code} {info}"


def hops(count):
    for family, far, level, recverr, ttl, _, _, start, length in FAMILIES:
        for hop in range(1, int(count) + 1):
            udp = socket.socket(family, socket.SOCK_DGRAM)
            udp.setsockopt(level, recverr, 1)
            udp.setsockopt(level, ttl, hop)
            udp.sendto(b"x", (far, 33434))
            print(hop, error_of(udp, recverr, start, length))


def mtu():
    for family, far, level, recverr, _, discover, mtu, start, length in FAMILIES:
        udp = socket.socket(family, socket.SOCK_DGRAM)
        udp.setsockopt(level, recverr, 1)
        udp.setsockopt(level, discover, 2)
        udp.connect((far, 33434))
        udp.send(bytes(1400))
        print(error_of(udp, recverr, start, length))
        print("route", udp.getsockopt(level, mtu))


def serve():
    server = socket.create_server(("::", 7), family=socket.AF_INET6, dualstack_ipv6=True)
    while True:
        connection, _ = server.accept()
        received = 0
        while part := connection.recv(1 << 16):
            received += len(part)
        connection.sendall(str(received).encode())
        connection.close()


def tcp():
    for family, far, level, _, _, _, mtu, _, _ in FAMILIES:
        client = socket.create_connection((far, 7), timeout=20)
        client.sendall(bytes(1_000_000))
        client.shutdown(socket.SHUT_WR)
        try:
            answer = client.recv(100).decode()
        except TimeoutError:
            answer = "nothing"
        print("received", answer, "mtu", client.getsockopt(level, mtu))


globals()[sys.argv[1]](*sys.argv[2:])
