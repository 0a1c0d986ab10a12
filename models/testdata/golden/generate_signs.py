"""Writes a tiny Qwen3 of signs with a scale each 128 (Q1_0), its logits from a float64 forward
pass, and the error of that pass with activations rounded as llama.cpp rounds them.

    python generate_signs.py DIR [--seed N] [--hidden N] [--heads N] [--kv N] [--dim N] [--ffn N]
                                 [--layers N] [--spread X] [--outliers N] [--untied]

spread is the deviation of the norms' weights from 1: of the first layer's activations all have
one size where it is 0, as the embedding is of signs too. outliers is how many channels of the
norms are 20 times as large. Needs numpy and gguf.
"""
import argparse, json, os

import gguf
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("out")
for name, default in {"seed": 1, "hidden": 256, "heads": 4, "kv": 2, "dim": 64, "ffn": 512, "layers": 2, "vocab": 384, "tokens": 48, "outliers": 0}.items():
    parser.add_argument("--" + name, type=int, default=default)
parser.add_argument("--spread", type=float, default=0.1)
parser.add_argument("--untied", action="store_true")
a = parser.parse_args()
EPS, BASE, Q1_0 = np.float32(1e-6), 1e6, 41

os.makedirs(a.out, exist_ok=True)
rng = np.random.default_rng(a.seed)
file = gguf.GGUFWriter(os.path.join(a.out, "model.gguf"), "qwen3")
file.add_name("golden signs")
file.add_block_count(a.layers)
file.add_context_length(512)
file.add_embedding_length(a.hidden)
file.add_feed_forward_length(a.ffn)
file.add_head_count(a.heads)
file.add_head_count_kv(a.kv)
file.add_key_length(a.dim)
file.add_value_length(a.dim)
file.add_rope_freq_base(BASE)
file.add_layer_norm_rms_eps(float(EPS))
file.add_vocab_size(a.vocab)
file.add_tokenizer_model("gpt2")
file.add_tokenizer_pre("qwen2")
file.add_token_list(["<|bos|>", "<|eos|>", "<|pad|>"] + [f"t{i}" for i in range(3, a.vocab)])
file.add_token_types([3] * 3 + [1] * (a.vocab - 3))
file.add_token_merges(["t 3"])
file.add_bos_token_id(0)
file.add_eos_token_id(1)

weights = {}  # as the file has them, in float64


def matrix(name, rows, cols, gain=1.0):
    scale = (gain / np.sqrt(cols) * np.exp2(rng.uniform(-1, 1, (rows, cols // 128, 1)))).astype(np.float16)
    bits = rng.integers(0, 2, (rows, cols // 128, 128), dtype=np.uint8)
    blocks = np.concatenate([scale.view(np.uint8), np.packbits(bits, axis=-1, bitorder="little")], -1)
    file.add_tensor(name, blocks.reshape(rows, -1), raw_dtype=gguf.GGMLQuantizationType(Q1_0))
    weights[name] = (scale.astype(np.float64) * (2.0 * bits - 1)).reshape(rows, cols)


def vector(name, n):
    x = 1 + a.spread * rng.standard_normal(n)
    if "attn_q" not in name and "attn_k" not in name:
        x[rng.permutation(n)[: a.outliers]] *= 20
    x = x.astype(np.float32)
    file.add_tensor(name, x)
    weights[name] = x.astype(np.float64)


matrix("token_embd.weight", a.vocab, a.hidden, 2)
for i in range(a.layers):
    blk = f"blk.{i}."
    vector(blk + "attn_norm.weight", a.hidden)
    vector(blk + "attn_q_norm.weight", a.dim)
    vector(blk + "attn_k_norm.weight", a.dim)
    matrix(blk + "attn_q.weight", a.heads * a.dim, a.hidden)
    matrix(blk + "attn_k.weight", a.kv * a.dim, a.hidden)
    matrix(blk + "attn_v.weight", a.kv * a.dim, a.hidden)
    matrix(blk + "attn_output.weight", a.hidden, a.heads * a.dim)
    vector(blk + "ffn_norm.weight", a.hidden)
    matrix(blk + "ffn_gate.weight", a.ffn, a.hidden)
    matrix(blk + "ffn_up.weight", a.ffn, a.hidden)
    matrix(blk + "ffn_down.weight", a.hidden, a.ffn)
vector("output_norm.weight", a.hidden)
if a.untied:
    matrix("output.weight", a.vocab, a.hidden, 2)
file.write_header_to_file()
file.write_kv_data_to_file()
file.write_tensors_to_file()
file.close()


def exact(x):
    return x


def q8_0(x):  # as ggml's quantize_row_q8_0: codes by the scale, and the scale in binary16
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, 32)
    d = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    codes = np.round(np.divide(blocks, d, out=np.zeros_like(blocks), where=d > 0))
    return (codes * d.astype(np.float16).astype(np.float64)).reshape(x.shape)


def norm(x, weight):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + float(EPS)) * weight


def rotate(x):  # [tokens][heads][dim], halves
    angle = np.arange(len(x))[:, None] * BASE ** (-2 * np.arange(a.dim // 2) / a.dim)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    p, q = np.split(x, 2, -1)
    return np.concatenate([p * cos - q * sin, p * sin + q * cos], -1)


def forward(tokens, acts=exact):
    n = len(tokens)
    x = weights["token_embd.weight"][tokens]
    for i in range(a.layers):
        w = lambda name: weights[f"blk.{i}.{name}.weight"]
        h = acts(norm(x, w("attn_norm")))
        q, k, v = ((h @ w(name).T).reshape(n, -1, a.dim) for name in ("attn_q", "attn_k", "attn_v"))
        q, k = rotate(norm(q, w("attn_q_norm"))), rotate(norm(k, w("attn_k_norm")))
        k, v = (np.repeat(t, a.heads // a.kv, 1) for t in (k, v))
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(a.dim)
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        x = x + acts(np.einsum("hij,jhd->ihd", p, v).reshape(n, -1)) @ w("attn_output").T
        h = acts(norm(x, w("ffn_norm")))
        gate = h @ w("ffn_gate").T
        x = x + acts(gate / (1 + np.exp(-gate)) * (h @ w("ffn_up").T)) @ w("ffn_down").T
    return acts(norm(x, weights["output_norm.weight"])) @ weights["output.weight" if a.untied else "token_embd.weight"].T


tokens = [0] + rng.integers(3, a.vocab, a.tokens - 1).tolist()
want = forward(tokens)
np.save(os.path.join(a.out, "logits_exact.npy"), want.astype("<f4"))
greedy, gaps = [], []
for _ in range(32):
    row = forward(tokens + greedy)[-1]
    second, first = np.sort(row)[-2:]
    greedy.append(int(row.argmax()))
    gaps.append(round(float(first - second), 5))
nmse = float(((forward(tokens, q8_0) - want) ** 2).sum() / (want**2).sum())
golden = {
    "arch": "qwen3", "storage": "Q1_0", "tokens": tokens, "n_vocab": a.vocab, "config": vars(a) | {"out": None},
    "greedy_exact": greedy, "greedy_gap_exact": gaps,
    "nmse_llamacpp_vs_exact": nmse,  # simulated: only its rounding of activations, which is its error
    "tolerance": {"nmse_engine_vs_exact_max": 1.25 * nmse, "nmse_strict_f32_engine_vs_exact": 1e-9},
}
with open(os.path.join(a.out, "golden.json"), "w") as f:
    json.dump(golden, f, separators=(",", ":"))
print(f"{a.out}: {nmse:.3g}")
