"""Serves a page over HTTP, an echo over WebSocket on the same port, and an echo over a WebRTC data
channel, with the libraries websockets and aiortc.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Optional

from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

PAGE = b"""<!doctype html><title>waiting</title><script>
async function overWebSocket() {
  const socket = new WebSocket(`ws://${location.host}/echo`);
  await new Promise(open => { socket.onopen = open; });
  return roundTrip(socket);
}
async function overWebRtc() {
  const peer = new RTCPeerConnection();
  const channel = peer.createDataChannel("echo");
  await peer.setLocalDescription(await peer.createOffer());
  const signal = new WebSocket(`ws://${location.host}/signal`);
  await new Promise(open => { signal.onopen = open; });
  signal.send(JSON.stringify(peer.localDescription));
  const answer = await new Promise(got => { signal.onmessage = got; });
  await peer.setRemoteDescription(JSON.parse(answer.data));
  await new Promise(open => { channel.onopen = open; });
  return roundTrip(channel);
}
async function roundTrip(channel) {
  const start = performance.now();
  const echo = new Promise(got => { channel.onmessage = got; });
  channel.send("x");
  await echo;
  return performance.now() - start;
}
async function measure() {
  document.title = `${await overWebSocket()} ${await overWebRtc()}`;
}
measure().catch(error => { document.title = `${error}`; });
</script>"""


def answer(_connection: ServerConnection, request: Request) -> Optional[Response]:
    if request.path in ("/echo", "/signal"):
        return None
    headers = Headers({"Content-Type": "text/html", "Content-Length": str(len(PAGE))})
    headers["Connection"] = "close"
    return Response(HTTPStatus.OK, "OK", headers, PAGE)


async def serve_socket(connection: ServerConnection) -> None:
    assert connection.request is not None
    if connection.request.path == "/signal":
        return await call(connection)
    async for message in connection:
        await connection.send(message)


async def call(connection: ServerConnection) -> None:
    """Answers a call, and echoes messages on its data channels until the connection ends."""
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))

    @peer.on("datachannel")
    def echo(channel: RTCDataChannel) -> None:
        channel.on("message", channel.send)

    async for message in connection:
        await peer.setRemoteDescription(RTCSessionDescription(**json.loads(message)))
        await peer.setLocalDescription(await peer.createAnswer())
        local = peer.localDescription
        await connection.send(json.dumps({"sdp": local.sdp, "type": local.type}))
    await peer.close()


async def main() -> None:
    async with serve(serve_socket, "0.0.0.0", 8000, process_request=answer):
        await asyncio.Event().wait()


asyncio.run(main())
