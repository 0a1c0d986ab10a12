#!/usr/bin/env python3
"""Writes digests.json: the SHA-256 of what ggml_quantize_chunk makes of rows, by type.

    python3 generate.py libggml-base.so > digests.json

The library is that of a build of llama.cpp for x86-64 without fused multiply-adds, as its
CMake makes it (`cmake --build b --target ggml-base`). numpy is needed. The rows follow from a
formula, which rows() of golden_test.go has too.
"""
import ctypes
import hashlib
import json
import sys

import numpy as np

ROWS, COLS = 24, 512
TYPES = {
    "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14,
    "IQ4_NL": 20, "IQ4_XS": 23, "TQ1_0": 34, "TQ2_0": 35, "MXFP4": 39, "Q1_0": 41, "Q2_0": 42,
}


def mix(n):
    """splitmix64's output function."""
    n = (n + 1) * np.uint64(0x9E3779B97F4A7C15)
    n = (n ^ (n >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    n = (n ^ (n >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return n ^ (n >> np.uint64(31))


def rows():
    n = mix(np.arange(ROWS * COLS, dtype=np.uint64))
    words = sum(((n >> np.uint64(16 * k)) & np.uint64(0xFFFF)).astype(np.int64) for k in range(4))
    v = ((words - 131070) * 2.0**-20).astype(np.float32).reshape(ROWS, COLS)
    block = np.arange(COLS) // 32
    for r in range(ROWS):
        x = v[r]
        match r % 8:
            case 1:  # heavy tails
                v[r] = x * x * x * np.float32(64)
            case 2:  # blocks of zeros
                v[r] = np.where(block % 3 == 1, np.float32(0), x)
            case 3:  # off centre
                v[r] = x + np.float32(0.0625)
            case 4:  # ternary
                s = (np.float32(2.0**-6) * (1 + r + block // 8)).astype(np.float32)
                v[r] = np.where(x > 0.02, s, np.where(x < -0.02, -s, np.float32(0)))
            case 5:
                v[r] = np.abs(x)
            case 6:
                v[r] = -np.abs(x) - np.float32(2.0**-8)
            case 7:  # scales are no normal f16 numbers
                v[r] = x * np.float32(2.0**-14)
    return v


def importances():
    n = mix(np.arange(COLS, dtype=np.uint64) + np.uint64(1 << 32))
    w = ((n & np.uint64(0xFFFF)).astype(np.float32) * np.float32(2.0**-10)).astype(np.float32)
    w[(n >> np.uint64(60)) == 0] = 0
    return w * w


def main():
    lib = ctypes.CDLL(sys.argv[1])
    lib.ggml_row_size.restype = ctypes.c_size_t
    lib.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]
    lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    src, weights = np.ascontiguousarray(rows()), np.ascontiguousarray(importances())
    digests = {"rows": hashlib.sha256(src.tobytes() + weights.tobytes()).hexdigest()}
    for name, number in TYPES.items():
        for columns in (None, weights):
            dst = np.zeros(ROWS * lib.ggml_row_size(number, COLS), np.uint8)
            n = lib.ggml_quantize_chunk(number, src.ctypes.data, dst.ctypes.data, 0, ROWS, COLS,
                                        None if columns is None else columns.ctypes.data)
            assert n == len(dst)
            if len(sys.argv) > 2:
                dst.tofile(f"{sys.argv[2]}/{name}{'' if columns is None else '.weighted'}")
            digests[name + ("" if columns is None else " weighted")] = hashlib.sha256(dst.tobytes()).hexdigest()
    json.dump(digests, sys.stdout, indent=1)
    print()


main()
