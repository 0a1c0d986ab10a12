#!/usr/bin/env python3
"""Write a Hugging Face reward model as a GGUF that Lutra reads.

    pip install gguf safetensors torch          # and sentencepiece for a tokenizer.model
    python tools/reward2gguf.py Qwen2.5-Math-PRM-7B qwen-prm-7b.gguf --type q8_0

CHECKPOINT is a downloaded folder: config.json, *.safetensors and the tokenizer.
Architectures: qwen2, qwen3, llama and mistral. The head is recognised by its tensors,
the format by the class in config.json; --format and --separator override what is
written as lutra.verifier.format and .separator (docs/test-time-scaling.md).

Heads, in llama.cpp's names:
    v_head.summary             -> cls.output                 Skywork-o1-Open-PRM
    score.0, ReLU, score.2     -> cls, cls.output            Qwen2.5-Math-PRM, -RM
    score                      -> cls.output                 *ForTokenClassification, *ForSequenceClassification
    lm_head                    -> output                     word models (math-shepherd, rlhflow)
"""
import argparse
import json
import math
import re
from pathlib import Path

import gguf
import numpy as np
import torch
from safetensors import safe_open

HEADS = {"v_head.summary": "cls.output", "score.0": "cls", "score.2": "cls.output", "score": "cls.output"}
FORMATS = [  # the class in config.json, the format
    (r"PrmModel|PRM_MODEL", "skywork-prm"),
    (r"ProcessRewardModel", "qwen-prm"),
    (r"TokenClassification", "trl-prm"),
    (r"SequenceClassification|RewardModel", "sequence"),
]
ARCHITECTURES = {"qwen2": "qwen2", "qwen3": "qwen3", "llama": "llama", "mistral": "llama"}
PRE_TOKENIZERS = {"qwen2": "qwen2", "qwen3": "qwen2", "llama": "llama-bpe"}
MODEL_ARCH = {"qwen2": gguf.MODEL_ARCH.QWEN2, "qwen3": gguf.MODEL_ARCH.QWEN3, "llama": gguf.MODEL_ARCH.LLAMA}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoint", type=Path)
    p.add_argument("out", type=Path)
    p.add_argument("--type", default="f16", choices=["f32", "f16", "bf16", "q8_0", "q4_0"], help="storage of the matrices")
    p.add_argument("--format", help="lutra.verifier.format")
    p.add_argument("--separator", help=r"lutra.verifier.separator, with \n for a line's end")
    p.add_argument("--pre", help="tokenizer.ggml.pre, where the architecture does not tell")
    arg = p.parse_args()
    convert(arg.checkpoint, arg.out, arg.type, arg.format, arg.separator and arg.separator.replace("\\n", "\n"), arg.pre)


def convert(checkpoint, out, kind="f16", form=None, separator=None, pre=None):
    config = json.loads((checkpoint / "config.json").read_text())
    if config["model_type"] not in ARCHITECTURES:
        raise SystemExit(f"model_type {config['model_type']!r} is none of {', '.join(ARCHITECTURES)}")
    arch = ARCHITECTURES[config["model_type"]]
    w = gguf.GGUFWriter(out, arch, use_temp_file=True)
    w.add_name(checkpoint.resolve().name)
    write_shape(w, config)
    vocab = write_tokenizer(w, checkpoint, config, pre or PRE_TOKENIZERS[arch])
    names = tensor_names(checkpoint)
    if any(head_of(n) for n in names):
        w.add_pooling_type(gguf.PoolingType.RANK)
        if "score.0.weight" in names:
            w.add_string("lutra.verifier.activation", "relu")
    form = form or next((f for pattern, f in FORMATS if re.search(pattern, " ".join(config["architectures"]))), None)
    if form:
        w.add_string("lutra.verifier.format", form)
    if separator:
        w.add_string("lutra.verifier.separator", separator)
    write_tensors(w, names, config, arch, vocab, kind)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(f"{out}: architecture {arch}, format {form or 'left to the configuration'}")


def head_dim(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def write_shape(w, c):
    w.add_block_count(c["num_hidden_layers"])
    w.add_context_length(c["max_position_embeddings"])
    w.add_embedding_length(c["hidden_size"])
    w.add_feed_forward_length(c["intermediate_size"])
    w.add_head_count(c["num_attention_heads"])
    w.add_head_count_kv(c.get("num_key_value_heads", c["num_attention_heads"]))
    w.add_key_length(head_dim(c))
    w.add_value_length(head_dim(c))
    w.add_layer_norm_rms_eps(c["rms_norm_eps"])
    w.add_rope_dimension_count(head_dim(c))
    w.add_rope_freq_base(c.get("rope_theta", 10000.0))
    scaling = c.get("rope_scaling") or {}
    how = scaling.get("rope_type", scaling.get("type", "default"))
    if how in ("linear", "yarn"):
        w.add_rope_scaling_type(gguf.RopeScalingType(how))
        w.add_rope_scaling_factor(scaling["factor"])
        if how == "yarn":
            w.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    elif how == "llama3":
        w.add_tensor("rope_freqs.weight", llama3_factors(c, scaling))
    elif how != "default":
        raise SystemExit(f"rope scaling {how!r} is not supported")


def llama3_factors(c, s):
    """Llama 3.1's stretching: by what each pair's frequency is divided."""
    dim, base = head_dim(c), c.get("rope_theta", 10000.0)
    low, high, old = s["low_freq_factor"], s["high_freq_factor"], s["original_max_position_embeddings"]
    factors = []
    for i in range(0, dim, 2):
        turns = old / (2 * math.pi * base ** (i / dim))  # over the original context
        keep = min(1.0, max(0.0, (turns - low) / (high - low)))
        factors.append(1 / ((1 - keep) / s["factor"] + keep))
    return np.array(factors, dtype=np.float32)


def write_tokenizer(w, checkpoint, config, pre):
    """The vocabulary, padded to the rows of the embedding, whose number is returned."""
    kinds = gguf.TokenType
    n = config["vocab_size"]
    tokens = [f"[PAD{i}]" for i in range(n)]
    types = [kinds.UNUSED] * n
    special = gguf.SpecialVocab(checkpoint, load_merges=True, n_vocab=n)
    spm = checkpoint / "tokenizer.model"
    if spm.is_file():
        from sentencepiece import SentencePieceProcessor

        sp, scores = SentencePieceProcessor(str(spm)), [-1000.0] * n
        for i in range(sp.vocab_size()):
            tokens[i], scores[i] = sp.id_to_piece(i), sp.get_score(i)
            types[i] = (
                kinds.UNKNOWN if sp.is_unknown(i) else kinds.CONTROL if sp.is_control(i)
                else kinds.BYTE if sp.is_byte(i) else kinds.NORMAL
            )
        w.add_tokenizer_model("llama")
        w.add_token_scores(scores)
        special.merges = []
    else:
        data = json.loads((checkpoint / "tokenizer.json").read_text())
        for token, i in data["model"]["vocab"].items():
            tokens[i], types[i] = token, kinds.NORMAL
        for t in data["added_tokens"]:
            tokens[t["id"]] = t["content"]
            types[t["id"]] = kinds.CONTROL if t["special"] else kinds.USER_DEFINED
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types(types)
    special.add_to_gguf(w, quiet=True)
    return n


def tensor_names(checkpoint):
    """Every tensor's name and the file it is in."""
    names = {}
    for path in sorted(checkpoint.glob("*.safetensors")):
        with safe_open(path, framework="pt") as f:
            names |= {name: path for name in f.keys()}
    if not names:
        raise SystemExit(f"{checkpoint} has no .safetensors files")
    return names


def head_of(name):
    stem, _, kind = name.rpartition(".")
    return HEADS.get(stem) and f"{HEADS[stem]}.{kind}"


def write_tensors(w, names, config, arch, vocab, kind):
    mapping = gguf.get_tensor_name_map(MODEL_ARCH[arch], config["num_hidden_layers"])
    rewards = any(head_of(n) for n in names)
    heads, kv_heads = config["num_attention_heads"], config.get("num_key_value_heads", config["num_attention_heads"])
    for name, path in names.items():
        if name.endswith(".rotary_emb.inv_freq"):
            continue
        if name == "lm_head.weight" and (rewards or config.get("tie_word_embeddings")):
            continue  # not the model's last word
        to = head_of(name) or mapping.get_name(name, try_suffixes=(".weight", ".bias"))
        if to is None:
            raise SystemExit(f"no place for tensor {name}")
        with safe_open(path, framework="pt") as f:
            data = f.get_tensor(name).to(torch.float32).numpy()
        if arch == "llama":  # GGUF's llama turns neighbours, Hugging Face's halves
            if name.endswith(("q_proj.weight", "q_proj.bias")):
                data = neighbours(data, heads)
            if name.endswith(("k_proj.weight", "k_proj.bias")):
                data = neighbours(data, kv_heads)
        if to == "token_embd.weight" and len(data) != vocab:
            raise SystemExit(f"{name} has {len(data)} rows, config.json says vocab_size {vocab}")
        add(w, to, data, kind)


def neighbours(x, heads):
    split = x.reshape(heads, 2, len(x) // heads // 2, *x.shape[1:])
    return split.swapaxes(1, 2).reshape(x.shape)


def add(w, name, data, kind):
    small = data.ndim == 1 or name.startswith("cls.output")
    to = gguf.GGMLQuantizationType[("f32" if small else kind).upper()]
    if data.ndim > 1 and data.shape[-1] % gguf.GGML_QUANT_SIZES[to][0] != 0:
        to = gguf.GGMLQuantizationType.F16
    if to == gguf.GGMLQuantizationType.F32:
        w.add_tensor(name, np.ascontiguousarray(data))
    else:
        w.add_tensor(name, gguf.quants.quantize(np.ascontiguousarray(data), to), raw_dtype=to)


if __name__ == "__main__":
    main()
