#!/usr/bin/env python3
"""Writes plans.json: the SHA-256 of the types that llama-quantize gives to tensors.

    python3 plans.py path/to/llama-quantize [FOLDER] > plans.json

Models are made here, of noughts, and have the tensors that models() of plan_test.go lists. What
is hashed are lines of names and types in upper case, sorted; they are kept in FOLDER. numpy
and gguf are needed.
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

TYPES = ["F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q5_0", "Q5_1", "Q4_0", "Q4_1",
         "IQ4_NL", "IQ4_XS", "MXFP4_MOE", "TQ1_0", "TQ2_0", "Q2_0"]

LAYER = {"attn_q": [256, 8], "attn_k": [256, 8], "attn_v": [256, 8], "attn_output": [256, 8],
         "ffn_gate": [256, 8], "ffn_up": [256, 8], "ffn_down": [256, 8]}
EXPERTS = {"attn_q": [256, 8], "attn_k": [256, 8], "attn_v": [256, 8], "attn_output": [256, 8], "ffn_gate_inp": [256, 8],
           "ffn_gate_exps": [256, 8, 8], "ffn_up_exps": [256, 8, 8], "ffn_down_exps": [256, 8, 8]}
ODD = LAYER | {"ffn_down": [320, 8], "attn_output": [80, 8], "attn_v": [128, 8]}
FUSED = {"attn_qkv": [256, 8], "attn_output": [256, 8], "ffn_up": [256, 8], "ffn_down": [256, 8]}

MODELS = {  # architecture, layers, heads, key heads, experts, has an output's matrix, matrices of a layer
    "llama": ("llama", 32, 32, 8, 0, True, LAYER),
    "llama-70b": ("llama", 80, 64, 8, 0, True, LAYER),
    "mixtral": ("llama", 12, 32, 8, 8, True, EXPERTS),
    "tied": ("qwen3", 28, 16, 8, 0, False, ODD),
    "phi": ("phi3", 24, 32, 32, 0, True, FUSED),
    "moe": ("qwen3moe", 24, 32, 4, 128, True, EXPERTS),
}


def write(path, model):
    arch, layers, heads, key_heads, experts, output, layer = model
    w = gguf.GGUFWriter(path, arch)
    w.add_block_count(layers)
    w.add_context_length(512)
    w.add_embedding_length(256)
    w.add_feed_forward_length(256)
    w.add_head_count(heads)
    w.add_head_count_kv(key_heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(8)
    w.add_key_length(8)
    w.add_value_length(8)
    if experts:
        w.add_expert_count(experts)
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(256)
    shapes = {"output_norm.weight": [256], "token_embd.weight": [256, 8]}
    if output:
        shapes["output.weight"] = [256, 8]
    for i in reversed(range(layers)):  # not in the order that rules count in
        for name, dims in layer.items():
            shapes[f"blk.{i}.{name}.weight"] = dims
        shapes[f"blk.{i}.attn_norm.weight"] = [256]
    for name, dims in shapes.items():
        w.add_tensor(name, np.zeros(dims[::-1], np.float32 if len(dims) == 1 or "gate_inp" in name else np.float16))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_imatrix(path):
    w = gguf.GGUFWriter(path, "")
    w.add_type("imatrix")
    w.add_array("imatrix.datasets", ["none"])
    w.add_uint32("imatrix.chunk_count", 1)
    w.add_uint32("imatrix.chunk_size", 1)
    w.add_tensor("none.in_sum2", np.ones((1, 256), np.float32))
    w.add_tensor("none.counts", np.ones((1, 1), np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def main():
    plans = {}
    with tempfile.TemporaryDirectory() as folder:
        imatrix = os.path.join(folder, "imatrix.gguf")
        write_imatrix(imatrix)
        for name, model in MODELS.items():
            path = os.path.join(folder, name + ".gguf")
            write(path, model)
            for typ in TYPES:
                for weighed in False, True:
                    args = ["--imatrix", imatrix] if weighed else []
                    out = subprocess.run([sys.argv[1], "--dry-run", *args, path, typ], check=True, text=True,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
                    lines = []
                    for m in re.finditer(r"\] (\S+) +- \[[^]]*\], type = +(\S+), (?:.*?-> +\S+ MiB \((\S+)\)|)", out):
                        lines.append(f"{m[1]} {(m[3] or m[2]).upper()}\n")
                    # A warning may stand between a line's halves.
                    assert len(lines) == len(set(lines)) > 50, out
                    text = "".join(sorted(lines))
                    key = f"{name} {typ}" + (" weighed" if weighed else "")
                    plans[key] = hashlib.sha256(text.encode()).hexdigest()
                    if len(sys.argv) > 2:
                        with open(os.path.join(sys.argv[2], key), "w") as f:
                            f.write(text)
    json.dump(plans, sys.stdout, indent=1)
    print()


main()
