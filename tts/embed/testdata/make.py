"""Makes tiny random encoders and what they should give, by the papers' definitions alone.

    python3 tts/embed/testdata/make.py

BERT: Devlin et al. 2019, Vaswani et al. 2017 (post-norm, GELU with the error function).
Jina Embeddings 2: Günther et al. 2023 (ALiBi of Press et al. 2022 on both sides, GEGLU).
Nomic Embed: Nussbaum et al. 2024 (rotary positions in halves, SwiGLU, no biases).
Everything is float64. Nothing here is shared with the Go code, nor taken from it.
"""
import json, math, os, struct, unicodedata
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
HIDDEN, HEADS, FFN, LAYERS, CONTEXT, EPS = 48, 3, 64, 2, 640, 1e-12

words = "the a cat sat on mat dog ran un ##able ##ing ##s run play ##er cafe ##e ! , . ? - $ 中 文 ##x 1 ##2 ##3".split()
letters = [c for c in "abcdefghijklmnopqrstuvwxyz"]
vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list(dict.fromkeys(words + letters + ["##" + c for c in letters]))
ID = {t: i for i, t in enumerate(vocab)}


def pieces(text):
    """Words and WordPiece as in BERT's own tokenization.py, uncased."""
    clean = ""
    for c in text:
        if c in "\t\n\r" or unicodedata.category(c) == "Zs":
            clean += " "
        elif ord(c) in (0, 0xFFFD) or unicodedata.category(c).startswith("C"):
            continue
        elif 0x4E00 <= ord(c) <= 0x9FFF:
            clean += " " + c + " "
        else:
            clean += c
    out = []
    for word in clean.split():
        word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")
        parts, new = [], True
        for c in word:
            o = ord(c)
            if 33 <= o <= 47 or 58 <= o <= 64 or 91 <= o <= 96 or 123 <= o <= 126 or unicodedata.category(c).startswith("P"):
                parts.append(c)
                new = True
            elif new:
                parts.append(c)
                new = False
            else:
                parts[-1] += c
        for part in parts:
            got, start = [], 0
            while start < len(part):
                for end in range(len(part), start, -1):
                    piece = ("##" if start else "") + part[start:end]
                    if piece in ID:
                        break
                else:
                    got = None
                    break
                got.append(ID[piece])
                start = end
            out += got if got is not None and len(part) <= 100 else [ID["[UNK]"]]
    return [ID["[CLS]"]] + out + [ID["[SEP]"]]


def norm(x, w, b):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + EPS) * w + b


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


erf = np.vectorize(math.erf)


def rotate(x, base=1000.0):
    """RoFormer, pairs (i, i + n/2)."""
    n, _, d = x.shape
    angle = np.arange(n)[:, None] * base ** (-2 * np.arange(d // 2) / d)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def slopes(n):
    """As in the appendix of the ALiBi paper."""
    power = lambda n: [(2 ** (-(2 ** -(math.log2(n) - 3)))) ** (i + 1) for i in range(n)]
    if math.log2(n).is_integer():
        return power(n)
    closest = 2 ** math.floor(math.log2(n))
    return power(closest) + slopes(2 * closest)[0::2][: n - closest]


def forward(arch, t, ids):
    n, d = len(ids), HIDDEN // HEADS
    x = t["token_embd.weight"][ids] + t["token_types.weight"][0]
    if arch == "bert":
        x = x + t["position_embd.weight"][:n]
    x = norm(x, t["token_embd_norm.weight"], t["token_embd_norm.bias"])
    for i in range(LAYERS):
        g = lambda name: t[f"blk.{i}.{name}"]
        if arch != "nomic-bert":
            q, k, v = (x @ g(f"attn_{c}.weight").T + g(f"attn_{c}.bias") for c in "qkv")
        else:
            q, k, v = np.split(x @ g("attn_qkv.weight").T, 3, -1)
        q, k, v = (y.reshape(n, HEADS, d) for y in (q, k, v))
        if arch == "nomic-bert":
            q, k = rotate(q), rotate(k)
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(d)
        if arch == "jina-bert-v2":
            at = np.arange(n)
            scores = scores - np.array(slopes(HEADS))[:, None, None] * np.abs(at[:, None] - at[None, :])
        p = softmax(scores)
        a = np.einsum("hqk,khd->qhd", p, v).reshape(n, HIDDEN) @ g("attn_output.weight").T
        if arch != "nomic-bert":
            a = a + g("attn_output.bias")
        x = norm(x + a, g("attn_output_norm.weight"), g("attn_output_norm.bias"))
        if arch == "bert":
            h = x @ g("ffn_up.weight").T + g("ffn_up.bias")
            h = h * 0.5 * (1 + erf(h / math.sqrt(2)))
            y = h @ g("ffn_down.weight").T + g("ffn_down.bias")
        elif arch == "jina-bert-v2":
            gate = x @ g("ffn_gate.weight").T
            gate = gate * 0.5 * (1 + erf(gate / math.sqrt(2)))
            y = (gate * (x @ g("ffn_up.weight").T)) @ g("ffn_down.weight").T + g("ffn_down.bias")
        else:
            gate = x @ g("ffn_gate.weight").T
            y = (gate / (1 + np.exp(-gate)) * (x @ g("ffn_up.weight").T)) @ g("ffn_down.weight").T
        x = norm(x + y, g("layer_output_norm.weight"), g("layer_output_norm.bias"))
    return x


def tensors(arch, rng):
    r = lambda *shape, s=1.0, at=0.0: (at + s * rng.standard_normal(shape)).astype(np.float32)
    m = lambda rows, cols: r(rows, cols, s=1.5 / math.sqrt(cols))
    t = {"token_embd.weight": r(len(vocab), HIDDEN), "token_types.weight": r(2, HIDDEN, s=0.3)}
    if arch == "bert":
        t["position_embd.weight"] = r(CONTEXT, HIDDEN, s=0.5)

    def ln(name):
        t[name + ".weight"], t[name + ".bias"] = r(HIDDEN, s=0.2, at=1), r(HIDDEN, s=0.2)

    ln("token_embd_norm")
    for i in range(LAYERS):
        b = f"blk.{i}."
        if arch != "nomic-bert":
            for c in "qkv":
                t[b + f"attn_{c}.weight"], t[b + f"attn_{c}.bias"] = m(HIDDEN, HIDDEN), r(HIDDEN, s=0.3)
            t[b + "attn_output.bias"] = r(HIDDEN, s=0.3)
            t[b + "ffn_down.bias"] = r(HIDDEN, s=0.3)
        else:
            t[b + "attn_qkv.weight"] = m(3 * HIDDEN, HIDDEN)
        if arch == "bert":
            t[b + "ffn_up.bias"] = r(FFN, s=0.3)
        else:
            t[b + "ffn_gate.weight"] = m(FFN, HIDDEN)
        t[b + "attn_output.weight"] = m(HIDDEN, HIDDEN)
        t[b + "ffn_up.weight"], t[b + "ffn_down.weight"] = m(FFN, HIDDEN), m(HIDDEN, FFN)
        ln(b + "attn_output_norm")
        ln(b + "layer_output_norm")
    return t


def gguf(path, meta, tensors):
    """GGUF version 3: the specification of ggml."""
    s = lambda x: struct.pack("<Q", len(x.encode())) + x.encode()

    def value(v):
        if isinstance(v, bool):
            return 7, struct.pack("<B", v)
        if isinstance(v, int):
            return 4, struct.pack("<I", v)
        if isinstance(v, float):
            return 6, struct.pack("<f", v)
        if isinstance(v, str):
            return 8, s(v)
        kind = value(v[0])[0]
        return 9, struct.pack("<IQ", kind, len(v)) + b"".join(value(x)[1] for x in v)

    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for k, v in meta.items():
        kind, raw = value(v)
        out += s(k) + struct.pack("<I", kind) + raw
    at, data = 0, b""
    for name, x in tensors.items():
        out += s(name) + struct.pack("<I", x.ndim) + b"".join(struct.pack("<Q", n) for n in reversed(x.shape)) + struct.pack("<IQ", 0, len(data))
        data += x.tobytes()
        data += b"\0" * (-len(data) % 32)
    out += b"\0" * (-len(out) % 32)
    open(path, "wb").write(out + data)


texts = [
    "the cat sat on the mat", "A dog ran!", "Unable, playing; 中文 Cafés?", "x", "zebra quux 123 $5 -- über-runs",
    " ".join(["the cat ran, the dog sat."] * 75),  # longer than any step
]
rng = np.random.default_rng(7)
for arch in ["bert", "nomic-bert", "jina-bert-v2"]:
    t = tensors(arch, rng)
    phantom = [v if v[0] == "[" and v[-1] == "]" else v[2:] if v.startswith("##") else "\u2581" + v for v in vocab]
    meta = {
        "general.architecture": arch, "general.name": arch,
        f"{arch}.block_count": LAYERS, f"{arch}.context_length": CONTEXT, f"{arch}.embedding_length": HIDDEN,
        f"{arch}.feed_forward_length": FFN, f"{arch}.attention.head_count": HEADS,
        f"{arch}.attention.layer_norm_epsilon": EPS, f"{arch}.attention.causal": False, f"{arch}.pooling_type": 1,
        "tokenizer.ggml.model": "bert", "tokenizer.ggml.pre": "default", "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.tokens": phantom, "tokenizer.ggml.token_type": [3 if v[0] == "[" else 1 for v in vocab],
        "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.unknown_token_id": 1, "tokenizer.ggml.seperator_token_id": 3,
        "tokenizer.ggml.padding_token_id": 0, "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.mask_token_id": 4,
    }
    if arch == "nomic-bert":
        meta[f"{arch}.rope.freq_base"] = 1000.0
    gguf(os.path.join(here, arch + ".gguf"), meta, t)
    t = {k: v.astype(np.float64) for k, v in t.items()}
    cases = []
    for text in texts:
        ids = pieces(text)
        x = forward(arch, t, ids)
        unit = lambda v: [float(f"{y:.9g}") for y in v / np.linalg.norm(v)]
        cases.append({"text": text, "ids": ids, "mean": unit(x.mean(0)), "cls": unit(x[0]), "last": unit(x[-1])})
    json.dump(cases, open(os.path.join(here, arch + ".json"), "w"), ensure_ascii=False)
    print(arch, len(cases[-1]["ids"]), "tokens in the longest")
