"""A page over HTTP and an echo over WebSocket on the same port, by the library websockets."""

import asyncio
from http import HTTPStatus
from typing import Optional

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

PAGE = b"""<!doctype html><title>waiting</title><script>
const socket = new WebSocket(`ws://${location.host}/echo`);
socket.onopen = () => {
  const start = performance.now();
  socket.onmessage = () => { document.title = `${performance.now() - start}`; };
  socket.send("x");
};
</script>"""


def answer(_connection: ServerConnection, request: Request) -> Optional[Response]:
    if request.path == "/echo":
        return None
    headers = Headers({"Content-Type": "text/html", "Content-Length": str(len(PAGE))})
    headers["Connection"] = "close"
    return Response(HTTPStatus.OK, "OK", headers, PAGE)


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def main() -> None:
    async with serve(echo, "0.0.0.0", 8000, process_request=answer):
        await asyncio.Event().wait()


asyncio.run(main())
