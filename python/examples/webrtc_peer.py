"""One end of an aiortc call: ``offer SECONDS`` or ``answer SECONDS``.

Both ends exchange their descriptions as lines on stdin and stdout, and print a line when
connected. The answering end then prints the numbers of received and lost packets.
"""

import asyncio
import json
import sys

from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.contrib.media import MediaBlackhole
from aiortc.mediastreams import AudioStreamTrack


async def read() -> RTCSessionDescription:
    line = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return RTCSessionDescription(**json.loads(line))


def write(description: RTCSessionDescription) -> None:
    print(json.dumps({"sdp": description.sdp, "type": description.type}), flush=True)


async def call(role: str, seconds: float) -> None:
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    sink = MediaBlackhole()
    peer.on("track", sink.addTrack)
    peer.addTrack(AudioStreamTrack())
    if role == "offer":
        await peer.setLocalDescription(await peer.createOffer())
        write(peer.localDescription)
        await peer.setRemoteDescription(await read())
    else:
        await peer.setRemoteDescription(await read())
        await peer.setLocalDescription(await peer.createAnswer())
        write(peer.localDescription)
    await sink.start()
    while peer.connectionState != "connected":
        await asyncio.sleep(0.05)
    print("connected", flush=True)
    await asyncio.sleep(seconds)
    if role == "answer":
        (receiver,) = peer.getReceivers()
        stats = [row for row in (await receiver.getStats()).values() if row.type == "inbound-rtp"]
        print(stats[0].packetsReceived, stats[0].packetsLost, flush=True)
    await peer.close()


asyncio.run(call(sys.argv[1], float(sys.argv[2])))
