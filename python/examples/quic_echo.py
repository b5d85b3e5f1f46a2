"""A QUIC server and a client of aioquic: ``serve CERTIFICATE KEY`` and ``fetch BYTES``."""

import asyncio
import ssl
import sys
import time

from aioquic.asyncio import connect, serve
from aioquic.quic.configuration import QuicConfiguration

PORT = 4433


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    size = int(await reader.readline())
    writer.write(bytes(size))
    writer.write_eof()


async def run_server(certificate: str, key: str) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["echo"])
    configuration.load_cert_chain(certificate, key)

    def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.ensure_future(answer(reader, writer)))

    tasks: "set[asyncio.Future[None]]" = set()
    await serve("0.0.0.0", PORT, configuration=configuration, stream_handler=handle)
    print("ready", flush=True)
    await asyncio.Event().wait()


async def fetch(size: int) -> None:
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["echo"])
    configuration.verify_mode = ssl.CERT_NONE
    start = time.monotonic()
    async with connect("10.77.0.2", PORT, configuration=configuration) as client:
        handshake = time.monotonic() - start
        reader, writer = await client.create_stream()
        writer.write(f"{size}\n".encode())
        received = len(await reader.read())
        print(handshake, time.monotonic() - start, received)


if sys.argv[1] == "serve":
    asyncio.run(run_server(sys.argv[2], sys.argv[3]))
else:
    asyncio.run(fetch(int(sys.argv[2])))
