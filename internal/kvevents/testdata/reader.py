"""Reads KV events as vLLM's subscribers do: reader.py EVENTS REPLAY N prints N messages, and
those that the replay socket sends again from number 1 on, as lines of JSON."""

import json
import struct
import sys

import msgpack
import zmq

events, replay, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = zmq.Context()


def show(frames):
    topic, number, payload = frames
    batch = msgpack.unpackb(payload) if payload else None
    print(json.dumps([topic.decode(), struct.unpack(">q", number)[0], batch]), flush=True)


sub = context.socket(zmq.SUB)
sub.setsockopt(zmq.HEARTBEAT_IVL, 100)
sub.setsockopt(zmq.RCVTIMEO, 30000)
sub.connect(events)
sub.setsockopt(zmq.SUBSCRIBE, b"kv@")
for _ in range(n):
    show(sub.recv_multipart())

dealer = context.socket(zmq.DEALER)
dealer.setsockopt(zmq.RCVTIMEO, 30000)
dealer.connect(replay)
dealer.send_multipart([b"", struct.pack(">Q", 1)])
while True:
    frames = dealer.recv_multipart()
    show(frames[1:])
    if not frames[3]:
        break
context.destroy(linger=0)
