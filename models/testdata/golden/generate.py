"""Writes a tiny Llama with random weights, and its logits from a float64 forward pass.

    python generate.py DIR

A copy is the start of another architecture's reference model: its metadata, its tensors, and
forward as its paper has it. Needs numpy and gguf.
"""
import json, os, sys

import gguf
import numpy as np

ARCH, SEED = "llama", 3
HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS, VOCAB, CONTEXT = 128, 4, 2, 32, 192, 2, 320, 512
EPS, BASE = np.float32(1e-5), 10000.0

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(SEED)
file = gguf.GGUFWriter(os.path.join(out, "model.gguf"), ARCH)
file.add_name("golden " + ARCH)
file.add_block_count(LAYERS)
file.add_context_length(CONTEXT)
file.add_embedding_length(HIDDEN)
file.add_feed_forward_length(FFN)
file.add_head_count(HEADS)
file.add_head_count_kv(KV_HEADS)
file.add_rope_dimension_count(HEAD_DIM)
file.add_rope_freq_base(BASE)
file.add_layer_norm_rms_eps(float(EPS))
file.add_vocab_size(VOCAB)
file.add_tokenizer_model("gpt2")
file.add_tokenizer_pre("llama-bpe")
file.add_token_list(["<|bos|>", "<|eos|>", "<|pad|>"] + [f"t{i}" for i in range(3, VOCAB)])
file.add_token_types([3] * 3 + [1] * (VOCAB - 3))
file.add_token_merges(["t 3"])
file.add_bos_token_id(0)
file.add_eos_token_id(1)

weights = {}  # as the file has them, in float64


def add(name, x, kind):
    x = x.astype(kind)
    file.add_tensor(name, x)
    weights[name] = x.astype(np.float64)


def matrix(name, rows, cols, gain=1.0):
    add(name, rng.standard_normal((rows, cols)) * gain / np.sqrt(cols), np.float16)


def vector(name, n):
    add(name, 1 + 0.1 * rng.standard_normal(n), np.float32)


# The gains make attention peaked, each layer matter, and logits of about 2.
matrix("token_embd.weight", VOCAB, HIDDEN, 2)
for i in range(LAYERS):
    blk = f"blk.{i}."
    vector(blk + "attn_norm.weight", HIDDEN)
    matrix(blk + "attn_q.weight", HEADS * HEAD_DIM, HIDDEN, 1.5)
    matrix(blk + "attn_k.weight", KV_HEADS * HEAD_DIM, HIDDEN, 1.5)
    matrix(blk + "attn_v.weight", KV_HEADS * HEAD_DIM, HIDDEN)
    matrix(blk + "attn_output.weight", HIDDEN, HEADS * HEAD_DIM)
    vector(blk + "ffn_norm.weight", HIDDEN)
    matrix(blk + "ffn_gate.weight", FFN, HIDDEN)
    matrix(blk + "ffn_up.weight", FFN, HIDDEN)
    matrix(blk + "ffn_down.weight", HIDDEN, FFN)
vector("output_norm.weight", HIDDEN)
matrix("output.weight", VOCAB, HIDDEN, 2)
file.write_header_to_file()
file.write_kv_data_to_file()
file.write_tensors_to_file()
file.close()


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + float(EPS)) * weight


def rotate(x):  # [tokens][heads][HEAD_DIM], pairs side by side
    angle = np.arange(len(x))[:, None] * BASE ** (-2 * np.arange(HEAD_DIM // 2) / HEAD_DIM)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., 0::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def forward(tokens):
    n = len(tokens)
    x = weights["token_embd.weight"][tokens]
    for i in range(LAYERS):
        w = lambda name: weights[f"blk.{i}.{name}.weight"]
        h = norm(x, w("attn_norm"))
        q, k, v = ((h @ w(name).T).reshape(n, -1, HEAD_DIM) for name in ("attn_q", "attn_k", "attn_v"))
        q, k = rotate(q), rotate(k)
        k, v = (np.repeat(t, HEADS // KV_HEADS, 1) for t in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(HEAD_DIM)
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", p, v).reshape(n, -1) @ w("attn_output").T
        h = norm(x, w("ffn_norm"))
        gate = h @ w("ffn_gate").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return norm(x, weights["output_norm.weight"]) @ weights["output.weight"].T


tokens = [0] + rng.integers(3, VOCAB, 47).tolist()
np.save(os.path.join(out, "logits_exact.npy"), forward(tokens).astype("<f4"))
greedy, gaps = [], []
for _ in range(32):
    row = forward(tokens + greedy)[-1]
    second, first = np.sort(row)[-2:]
    greedy.append(int(row.argmax()))
    gaps.append(round(float(first - second), 5))
golden = {
    "arch": ARCH, "storage": "F16", "tokens": tokens, "n_vocab": VOCAB, "config": {"seed": SEED},
    "greedy_exact": greedy, "greedy_gap_exact": gaps,
    # Float16 of activations, as other engines have it; no other engine ran this model.
    "nmse_llamacpp_vs_exact": 1e-6,
    "tolerance": {"nmse_engine_vs_exact_max": 1.25e-6, "nmse_strict_f32_engine_vs_exact": 1e-9},
}
with open(os.path.join(out, "golden.json"), "w") as f:
    json.dump(golden, f, separators=(",", ":"))
