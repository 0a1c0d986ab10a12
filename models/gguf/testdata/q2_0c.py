"""Writes q2_0c.json: blocks of Q2_0C and the weights they hold.

python3 q2_0c.py > q2_0c.json

An independent decoder, by what pull request 19357 of ggml-org/llama.cpp and 302 of onnxruntime/mobius
say of the layout: a binary16 scale, then 512 codes of two bits, four a byte, lowest first, which stand
for -3, -1, 1 and 3 times the scale.
"""
import json
import random
import struct

random.seed(512)
blocks, weights = b"", []
for d in (0.5, -0.03125, 2.0**-24):
    codes = random.randbytes(128)
    blocks += struct.pack("<e", d) + codes
    bits = int.from_bytes(codes, "little")
    weights += [(-3, -1, 1, 3)[bits >> 2 * k & 3] * d for k in range(512)]
print(json.dumps({"blocks": blocks.hex(), "weights": weights}))
