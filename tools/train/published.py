"""Goes on from a published file:  published.py FROM.gguf NAME CONFIG   (writes ckpt/NAME.pt, which train.py and prm.py go on from, and
out/tokenizer.json)

The latent weights are not in the file: they are drawn to round to its ternary ones (mixture.spread)."""
import os, sys
import numpy as np
import torch
import bpe
from export_gguf import GG, read
from mixture import spread
from model import CONFIGS, build


def restore(src, config, seed=1):
    """the model of src (matrices by GGUF names, in float32)"""
    m, r = build(CONFIGS[config], seed), torch.Generator().manual_seed(seed)
    T = {k: torch.from_numpy(np.array(v)) for k, v in src.items()}
    m.w["emb"].copy_(T["token_embd.weight"])
    m.w["nf"].copy_(T["output_norm.weight"])
    if "cls" in m.w:
        m.w["cls"].copy_(T["cls.output.weight"].view_as(m.w["cls"]))
        m.w["clsb"].copy_(T["cls.output.bias"])
    for i in range(m.L):
        t = lambda n: T[f"blk.{i}.{n}.weight"]
        m.w[f"{i}.n1"].copy_(t("attn_norm"))
        m.w[f"{i}.n2"].copy_(t("ffn_norm"))
        if f"{i}.router" in m.w:
            m.w[f"{i}.router"].copy_(t("ffn_gate_inp"))
        for group, parts in m.parts.items():
            for name, a, b in parts:
                kind, _, expert = name.partition(".")
                q = t(GG[kind] + "_exps")[int(expert)] if expert else t(GG[kind])
                m.w[f"{i}.{group}"][a:b] = spread(q, r)
    m.requant()
    return m


if __name__ == "__main__":
    for folder in "ckpt", "out":
        os.makedirs(folder, exist_ok=True)
    kv, tensors = read(sys.argv[1])
    bpe.save("out/tokenizer.json", kv["tokenizer.ggml.tokens"][:-len(bpe.SPECIAL)], kv["tokenizer.ggml.merges"])
    restore(tensors, sys.argv[3]).save(f"ckpt/{sys.argv[2]}.pt", step=0)
