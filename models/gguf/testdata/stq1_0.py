"""Writes stq1_0.json: blocks of STQ1_0 and the weights they hold.

python3 stq1_0.py > stq1_0.json

An independent decoder, by the table of 32 patterns that pull request 22836 of ggml-org/llama.cpp
publishes: two bits a weight, lowest first, one above the trit.
"""
import json
import random
import struct

PATTERNS = bytes.fromhex("a9892909a68626069a921a126a624a42" "012181a1042484a41018909840486068")

random.seed(43)
blocks, weights = b"", []
for d in (0.5, -0.03125):
    slots, signs = random.randbytes(32), random.randbytes(8)
    blocks += slots + signs + struct.pack("<e", d)
    values = [None] * 256
    for g in range(64):
        slot = slots[g // 2] >> 4 if g % 2 else slots[g // 2] & 15
        pattern = PATTERNS[(signs[g // 8] >> g % 8 & 1) * 16 + slot]
        for lane in range(4):
            values[g // 16 * 64 + lane * 16 + g % 16] = ((pattern >> 2 * lane & 3) - 1) * d
    weights += values
print(json.dumps({"blocks": blocks.hex(), "weights": weights}))
