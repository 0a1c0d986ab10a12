"""Writes tiny models with random weights, and the logits that transformers gives.

    pip install torch transformers
    python make.py [NAME ...]

For each architecture: transformers' own model, every weight rounded to what the file can hold;
NAME.gguf with the names, orders and signs of llama.cpp's converter; and NAME.npy, the logits
`<f4 [tokens][vocab]` after each of the tokens of `TOKENS`, computed in float64. Matrices are F16
(the experts of gpt-oss MXFP4), everything else is F32.
"""
import json, math, struct, sys
from pathlib import Path

import numpy as np
import torch
import transformers

VOCAB, HIDDEN, HEADS, KV, LAYERS, CONTEXT, EXPERTS, CHOSEN = 64, 32, 4, 2, 2, 512, 4, 2
TOKENS = [(37 * i * i + 11 * i + 5) % VOCAB for i in range(40)]
BASE = dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV,
            max_position_embeddings=CONTEXT, num_experts_per_tok=CHOSEN, tie_word_embeddings=False, rms_norm_eps=1e-5,
            pad_token_id=0, bos_token_id=1, eos_token_id=2)
F32, F16, MXFP4 = 0, 1, 39
LEVELS = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], dtype=np.float64)  # twice those of e2m1


# --- GGUF

def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def value(v):
    if isinstance(v, bool):
        return struct.pack("<IB", 7, v)
    if isinstance(v, int):
        return struct.pack("<II", 4, v)
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    kind, pack = {str: (8, text), bool: (7, lambda x: struct.pack("<B", x)), int: (5, lambda x: struct.pack("<i", x)),
                  float: (6, lambda x: struct.pack("<f", x))}[type(v[0])]
    return struct.pack("<IIQ", 9, kind, len(v)) + b"".join(map(pack, v))


def write(path, metadata, tensors):
    """tensors: name -> (type, shape slowest first, bytes)"""
    out = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata))
    for key, v in metadata.items():
        out += text(key) + value(v)
    at = 0
    for name, (kind, shape, raw) in tensors.items():
        out += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        out += struct.pack("<IQ", kind, at)
        at += (len(raw) + 31) // 32 * 32
    out += b"\0" * (-len(out) % 32)
    for _, _, raw in tensors.values():
        out += raw + b"\0" * (-len(raw) % 32)
    open(path, "wb").write(out)


def mxfp4(x):
    """x in blocks of 32 columns, as MXFP4 holds them: the bytes, and the values that they mean."""
    rows = x.reshape(-1, 32)
    top = np.abs(rows).max(axis=1)
    e = np.floor(np.log2(np.maximum(top, 1e-30))).astype(int) - 2 + 127
    scale = 2.0 ** (e - 128)
    codes = np.abs(rows[:, :, None] / scale[:, None, None] - LEVELS).argmin(axis=2)
    raw = np.concatenate([e[:, None], codes[:, :16] | codes[:, 16:] << 4], axis=1).astype(np.uint8)
    return raw.tobytes(), (LEVELS[codes] * scale[:, None]).reshape(x.shape)


# --- weights

def draw(model, rng):
    """Random weights of a size that makes every part matter, rounded as the file rounds them."""
    for name, p in model.named_parameters():
        x = rng.standard_normal(p.shape)
        kind = name.split(".")[-1]
        if p.dim() == 1 or "e_score" in name or "conv1d" in name or "conv.conv" in name:
            if "e_score" in name:
                x = 0.2 * x
            elif "A_log" in name:
                x = np.log(rng.uniform(0.3, 2, p.shape))
            elif "norm" in name and kind == "weight":
                x = 0.1 * x + (p.detach().numpy().mean() > 0.5)  # around one, or zero where the model adds one
            elif "sinks" not in name:
                x = 0.4 * x
            x = x.astype(np.float32)
        elif "proj_bias" in name:
            x = (0.4 * x).astype(np.float32)
        elif "experts" in name and "GptOss" in type(model).__name__:
            x = np.swapaxes(mxfp4(1.3 * np.swapaxes(x, 1, 2) / math.sqrt(p.shape[1]))[1], 1, 2)
        else:
            router = "gate.weight" in name and "shared" not in name or "router" in name or "gate.wg" in name
            clamped = "experts" in name and "Maple" in type(model).__name__
            gain = 1 if "embed" in name else (2.5 if router else 6 if clamped else 1.3) / math.sqrt(p.shape[-1])
            x = (gain * x).astype(np.float16)
        p.data = torch.tensor(x.astype(np.float64))
    for name, b in model.named_buffers():
        if name.endswith("layer_scalar"):
            b.data = torch.tensor(rng.uniform(0.6, 1.4, b.shape).astype(np.float32).astype(np.float64))
        if name.endswith("bias"):  # that experts are chosen by
            b.data = torch.tensor((0.4 * rng.standard_normal(b.shape)).astype(np.float32).astype(np.float64))


def paired(x, heads, c):
    """Rows of a head in the order of rotated pairs, as Llama's files have them."""
    each = x.reshape(heads, -1, *x.shape[1:])
    n = int(each.shape[1] * (getattr(c, "rope_parameters", None) or {}).get("partial_rotary_factor", 1))
    rotated = each[:, :n].reshape(heads, 2, n // 2, *x.shape[1:]).swapaxes(1, 2).reshape(each[:, :n].shape)
    return np.concatenate([rotated, each[:, n:]], axis=1).reshape(x.shape)


def tiled(x, axis, c, width):
    """Value heads grouped by key head, in the order of llama.cpp's files."""
    n = c.linear_num_key_heads
    shape = x.shape[:axis] + (n, c.linear_num_value_heads // n, width) + x.shape[axis + 1:]
    return x.reshape(shape).swapaxes(axis, axis + 1).reshape(x.shape)


NAMES = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp", "block_sparse_moe.router": "ffn_gate_inp",
    "mlp.shared_expert.gate_proj": "ffn_gate_shexp", "mlp.shared_expert.up_proj": "ffn_up_shexp",
    "mlp.shared_expert.down_proj": "ffn_down_shexp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "linear_attn.in_proj_qkv": "attn_qkv", "linear_attn.in_proj_z": "attn_gate", "linear_attn.in_proj_b": "ssm_beta",
    "linear_attn.in_proj_a": "ssm_alpha", "linear_attn.in_proj_ba": "ssm_ba", "linear_attn.conv1d": "ssm_conv1d", "linear_attn.norm": "ssm_norm",
    "linear_attn.out_proj": "ssm_out",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "mamba.in_proj": "ssm_in", "mamba.conv1d": "ssm_conv1d", "mamba.norm": "ssm_norm", "mamba.out_proj": "ssm_out",
    "feed_forward.gate_proj": "ffn_gate", "feed_forward.up_proj": "ffn_up", "feed_forward.down_proj": "ffn_down",
    **{f"self_attn.{x}_proj.norm": f"attn_{y}_norm_in" for x, y in [("q", "q"), ("k", "k"), ("v", "v"), ("o", "output")]},
    **{f"mlp.{x}_proj.norm": f"ffn_{x}_norm_in" for x in ("gate", "up", "down")},
    "self_attn.query_layernorm": "attn_q_norm", "self_attn.key_layernorm": "attn_k_norm",
    "feed_forward.gate": "ffn_gate_inp", "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "operator_norm": "attn_norm", "self_attn.out_proj": "attn_output", "self_attn.q_layernorm": "attn_q_norm", "self_attn.k_layernorm": "attn_k_norm",
    "feed_forward.w1": "ffn_gate", "feed_forward.w3": "ffn_up", "feed_forward.w2": "ffn_down",
    "conv.conv": "shortconv.conv", "conv.in_proj": "shortconv.in_proj", "conv.out_proj": "shortconv.out_proj",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
    "pre_feedforward_layernorm_2": "pre_ffw_norm_2", "post_feedforward_layernorm_1": "post_ffw_norm_1", "post_feedforward_layernorm_2": "post_ffw_norm_2",
    "router": "ffn_gate_inp", "router.proj": "ffn_gate_inp", "": "layer_output_scale",
    "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj", "post_per_layer_input_norm": "post_norm",
    "mlp.gate.wg": "ffn_gate_inp", **{f"mlp.shared_mlp.{x}_proj": f"ffn_{x}_shexp" for x in ("gate", "up", "down")},
    "norm": "attn_norm", **{f"mixer.{x}_proj": f"attn_{y}" for x, y in [("q", "q"), ("k", "k"), ("v", "v"), ("o", "output")]},
    **{f"mixer.{x}": f"ssm_{y}" for x, y in [("in_proj", "in"), ("conv1d", "conv1d"), ("norm", "norm"), ("out_proj", "out")]},
    **{f"mixer.{x}_proj": f"ffn_{x}" for x in ("up", "down")}, **{f"mixer.shared_experts.{x}_proj": f"ffn_{x}_shexp" for x in ("up", "down")},
    "mixer.gate": "ffn_gate_inp", "mixer.fc1_latent_proj": "ffn_latent_down", "mixer.fc2_latent_proj": "ffn_latent_up",
    "post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm",
    "self_attn.gate_proj": "attn_gate", "self_attn.attn_sub_norm": "attn_sub_norm", "mlp.ffn_sub_norm": "ffn_sub_norm", "self_attn.dense": "attn_output", "mlp.fc1": "ffn_up", "mlp.fc2": "ffn_down", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}
POST = ("muse-glimmer", "gemma4", "gpt-oss", "qwen35moe", "gemma3", "olmo2", "exaone4", "seed_oss", "glm4moe", "qwen3next")  # post_attention_layernorm is post_attention_norm
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "model.embedding_norm": "token_embd_norm", "model.final_layernorm": "output_norm",
         "model.embed_tokens_per_layer": "per_layer_token_embd", "model.per_layer_model_projection": "per_layer_model_proj",
         "model.per_layer_projection_norm": "per_layer_proj_norm", "model.embeddings": "token_embd", "model.norm_f": "output_norm"}


def tensors(model, arch):
    """The model's weights as llama.cpp's converter names and orders them."""
    c, out = model.config.get_text_config(), {}

    def add(name, x):
        kind = F16 if x.ndim > 1 and "conv1d" not in name and "shortconv.conv." not in name and "gate_inp" not in name and not name.endswith(("bias", "ssm_a", "ssm_d", "norm.weight")) else F32
        if arch == "gpt-oss" and name.endswith("_exps.weight"):
            out[name] = (MXFP4, x.shape, mxfp4(x)[0])
            return
        stored = x.astype(np.float16 if kind == F16 else np.float32)
        assert np.array_equal(stored.astype(np.float64), x) or kind == F32, name
        out[name] = (kind, x.shape, stored.tobytes())

    for name, p in model.state_dict().items():
        if "vision" in name:
            continue
        name = name.replace("language_model.", "").replace("backbone.", "model.")
        name = name if name.startswith(("model.", "lm_head.")) else "model." + name
        x, (stem, part) = p.numpy(), name.rsplit(".", 1)
        if stem in WHOLE:
            blk, stem = "", WHOLE[stem]
        else:
            _, _, i, stem = stem.split(".", 3) if stem.count(".") > 2 else stem.split(".") + [""]
            blk = f"blk.{i}."
        if arch in ("llama", "mistral3", "granite", "granitemoe", "granitehybrid", "minicpm", "muse-glimmer", "internlm2", "arcee", "llama-embed") and stem in ("self_attn.q_proj", "self_attn.k_proj"):
            x = paired(x, HEADS if "q_proj" in stem else KV, c)
        if arch == "muse-glimmer" and stem == "self_attn.q_proj":
            add(blk + "attn_q_norm.weight", np.full(c.head_dim, c.qk_scale_factor))
            add(blk + "attn_k_norm.weight", np.ones(c.head_dim))
        if arch in ("gemma", "gemma3", "nemotron") and "norm" in stem and "proj" not in stem and part == "weight" or arch == "muse-glimmer" and stem.endswith("layernorm") or arch in ("qwen35moe", "qwen3next") and "norm" in stem and stem != "linear_attn.norm":
            x = x + 1
        if stem == "conv.conv":
            x = x.squeeze(1)
        if arch == "qwen3next" and stem == "linear_attn.in_proj_qkvz":
            heads = np.split(x.reshape(c.linear_num_key_heads, -1, x.shape[1]), np.cumsum([c.linear_key_head_dim, c.linear_key_head_dim,
                c.linear_num_value_heads // c.linear_num_key_heads * c.linear_value_head_dim]), axis=1)
            q, k, v, z = (h.reshape(-1, x.shape[1]) for h in heads)
            add(blk + "attn_qkv.weight", np.concatenate([q, k, v]))
            add(blk + "attn_gate.weight", z)
            continue
        if arch == "qwen3next" and stem.startswith("linear_attn"):
            x = -np.exp(x) if part == "A_log" else x.squeeze(1) if stem.endswith("conv1d") else x
        elif stem.startswith("linear_attn"):
            x, keys, width = recurrent(stem, part, x, c), 2 * c.linear_num_key_heads * c.linear_key_head_dim, c.linear_value_head_dim
            if stem.endswith(("in_proj_qkv", "conv1d")):
                x = np.concatenate([x[:keys], tiled(x[keys:], 0, c, width)])
        if arch == "falcon-h1":
            x = folded(x, stem, c)
        if stem.startswith("mamba") or stem in ("mixer", "mixer.conv1d", "mixer.norm"):
            x = x.squeeze(1) if x.ndim == 3 else -np.exp(x).reshape(-1, 1) if part == "A_log" else x.reshape(-1, 1) if part == "D" else x
            x = x.reshape(getattr(c, "mamba_n_groups", None) or c.n_groups, -1) if stem.endswith(".norm") else x
        if stem.startswith("shared_mlp"):
            suffix = "_shexp.weight" if c.num_local_experts else ".weight"
            parts = [("down", x)] if "output" in stem else zip(["gate", "up"], np.split(x, 2))
            for kind, matrix in parts:
                add(blk + "ffn_" + kind + suffix, matrix)
        elif part == "D":
            add(blk + "ssm_d", x)
        elif stem == "pre_ff_layernorm":
            add(blk + "ffn_norm", x)
        elif stem == "self_attn.kv_b_proj":
            keys, values = np.split(x.reshape(HEADS, -1, x.shape[1]), [c.qk_nope_head_dim], axis=1)
            add(blk + "attn_k_b.weight", keys.swapaxes(1, 2))
            add(blk + "attn_v_b.weight", values)
        elif part == "per_expert_scale":
            add(blk + "ffn_down_exps.scale", x)
        elif part == "layer_scalar":
            add(blk + "layer_output_scale.weight", x)
        elif stem.endswith("experts"):
            experts(add, blk, part, x, arch)
        elif part == "A_log":
            add(blk + "ssm_a", x)
        elif part == "dt_bias":
            add(blk + "ssm_dt.bias", x)
        elif part in ("expert_bias", "e_score_correction_bias"):
            add(blk + "exp_probs_b.bias", x.reshape(-1))
        elif part == "sinks":
            add(blk + "attn_sinks.weight", x)
        elif stem == "post_attention_layernorm":
            add(blk + ("post_attention_norm." if arch in POST else "ffn_norm.") + part, x)
        else:
            add(blk + NAMES.get(stem, stem) + "." + part, x.reshape(-1) if stem == "mlp.shared_expert_gate" else x)
    if arch == "bailingmoe2":
        for i in range(LAYERS):
            q, k, v = (out.pop(f"blk.{i}.attn_{p}.weight") for p in "qkv")
            out[f"blk.{i}.attn_qkv.weight"] = (F16, (q[1][0] + 2 * k[1][0], HIDDEN), q[2] + k[2] + v[2])
    return out


def folded(x, stem, c):
    """A weight of Falcon-H1 with the multipliers of what it reads and makes."""
    inner, state = c.mamba_d_ssm, c.mamba_n_groups * c.mamba_d_state
    factors = {"self_attn.q_proj": c.attention_in_multiplier, "self_attn.k_proj": c.attention_in_multiplier * c.key_multiplier,
               "self_attn.v_proj": c.attention_in_multiplier, "self_attn.o_proj": c.attention_out_multiplier, "mamba.out_proj": c.ssm_out_multiplier,
               "feed_forward.gate_proj": c.mlp_multipliers[0], "feed_forward.down_proj": c.mlp_multipliers[1], "token_embd": c.embedding_multiplier,
               "output": c.lm_head_multiplier}
    if stem == "mamba.in_proj":
        return x * c.ssm_in_multiplier * np.repeat(c.ssm_multipliers, [inner, inner, state, state, c.mamba_n_heads])[:, None]
    return x * factors.get(stem, 1)


def recurrent(stem, part, x, c):
    """A weight of a gated delta net, its value heads in the order of the file, but for those of in_proj_qkv and conv1d."""
    width = c.linear_value_head_dim
    if part == "A_log":
        return tiled(-np.exp(x), 0, c, 1)
    if part == "dt_bias" or stem.endswith(("in_proj_a", "in_proj_b")):
        return tiled(x, 0, c, 1)
    if stem.endswith("in_proj_z"):
        return tiled(x, 0, c, width)
    if stem.endswith("out_proj"):
        return tiled(x, 1, c, width)
    return x.reshape(x.shape[0], -1) if stem.endswith("conv1d") else x


def experts(add, blk, part, x, arch):
    """gate and up are one tensor in transformers: halves, or in gpt-oss every other column."""
    if arch == "gpt-oss" and not part.endswith("bias"):
        x = np.swapaxes(x, 1, 2)
    kind = "bias" if part.endswith("bias") else "weight"
    if part.startswith("down") or part == "up_proj":
        add(f"{blk}ffn_{part.split('_')[0]}_exps.{kind}", x)
        return
    gate, up = (x[:, ::2], x[:, 1::2]) if arch == "gpt-oss" else np.split(x, 2, axis=1)
    add(f"{blk}ffn_gate_exps.{kind}", gate)
    add(f"{blk}ffn_up_exps.{kind}", up)


# --- models

def models():
    """name -> (architecture, transformers model, further keys of the architecture, and what a directory has otherwise)"""
    t, ffn = transformers, dict(intermediate_size=HIDDEN)
    yield "mixtral", "llama", t.MixtralForCausalLM(t.MixtralConfig(**BASE, **ffn, num_local_experts=EXPERTS)), {}
    shared = dict(moe_intermediate_size=16, shared_expert_intermediate_size=24, num_experts=EXPERTS)
    yield "qwen2moe", "qwen2moe", t.Qwen2MoeForCausalLM(t.Qwen2MoeConfig(**BASE, **ffn, **shared)), \
        {"expert_feed_forward_length": 16, "expert_shared_feed_forward_length": 24}
    yield "qwen3moe", "qwen3moe", t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**BASE, **ffn, moe_intermediate_size=16, head_dim=16,
        num_experts=EXPERTS, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])), {"expert_feed_forward_length": 16}
    yield "olmoe", "olmoe", t.OlmoeForCausalLM(t.OlmoeConfig(**BASE, **ffn, num_experts=EXPERTS)), {}
    scales = dict(embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.4, logits_scaling=2.0)
    yield "granitemoe", "granitemoe", t.GraniteMoeForCausalLM(t.GraniteMoeConfig(**BASE, **ffn, num_local_experts=EXPERTS, **scales)), \
        {"embedding_scale": 3.0, "residual_scale": 0.5, "attention.scale": 0.4, "logit_scale": 2.0}
    yield "phimoe", "phimoe", t.PhimoeForCausalLM(t.PhimoeConfig(**BASE, **ffn, num_local_experts=EXPERTS, attention_bias=True,
        lm_head_bias=True)), {"lutra.phimoe.authors": True}
    rope = dict(rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=32, rope_theta=150000.0)
    yield "gpt-oss", "gpt-oss", t.GptOssForCausalLM(t.GptOssConfig(**BASE, **ffn, num_local_experts=EXPERTS, head_dim=16,
        sliding_window=12, rope_parameters=rope)), {"attention.sliding_window": 12, "expert_feed_forward_length": HIDDEN,
        "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32}
    delta = dict(linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16, linear_conv_kernel_dim=4)
    yield "qwen35moe", "qwen35moe", t.Qwen3_5MoeForCausalLM(t.Qwen3_5MoeTextConfig(**BASE, **shared, **delta, head_dim=16,
        layer_types=["linear_attention", "full_attention"])), {"full_attention_interval": 2, "expert_feed_forward_length": 16,
        "expert_shared_feed_forward_length": 24, "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 2,
        "ssm.time_step_rank": 4, "ssm.inner_size": 64, "rope.dimension_count": 4}


    # Dense models: eight wide heads, and of two layers the first with a window where there are any.
    dense = {k: v for k, v in BASE.items() if k != "num_experts_per_tok"} | ffn
    window, types = 12, ["sliding_attention", "full_attention"]
    windows = {"attention.sliding_window": window, "attention.sliding_window_pattern": [True, False]}
    scaled = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32}
    plain = dict(rope_type="default", rope_theta=10000.0)
    linear = dict(rope_type="linear", factor=4.0, rope_theta=1e6)
    yarn = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32, rope_theta=1e4)
    yield "gemma3", "gemma3", t.Gemma3ForCausalLM(t.Gemma3TextConfig(**dense | {"tie_word_embeddings": True}, head_dim=16,
        query_pre_attn_scalar=16, sliding_window=window, layer_types=types, rope_parameters=dict(full_attention=linear, sliding_attention=plain))), \
        {"attention.sliding_window": window, "attention.sliding_window_pattern": 2, "rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
    yield "olmo2", "olmo2", t.Olmo2ForCausalLM(t.Olmo2Config(**dense)), {}
    yield "olmo3", "olmo2", t.Olmo3ForCausalLM(t.Olmo3Config(**dense, sliding_window=window, layer_types=types,
        rope_parameters=dict(full_attention=yarn, sliding_attention=plain))), {**windows, **scaled}
    yield "exaone4", "exaone4", t.Exaone4ForCausalLM(t.Exaone4Config(**dense, sliding_window=window, layer_types=types)), windows
    yield "hunyuan-dense", "hunyuan-dense", t.HunYuanDenseV1ForCausalLM(t.HunYuanDenseV1Config(**dense, head_dim=8)), {}
    yield "glm4", "glm4", t.Glm4ForCausalLM(t.Glm4Config(**dense, head_dim=16, attention_bias=True, rope_parameters=plain | dict(partial_rotary_factor=0.5))), \
        {"rope.dimension_count": 8}
    yield "ernie4_5", "ernie4_5", t.Ernie4_5ForCausalLM(t.Ernie4_5Config(**dense, use_bias=False, head_dim=16)), {}
    yield "seed_oss", "seed_oss", t.SeedOssForCausalLM(t.SeedOssConfig(**dense, head_dim=16, attention_bias=True, attention_out_bias=False,
        residual_dropout=0, mlp_bias=False)), {}
    yield "granite", "granite", t.GraniteForCausalLM(t.GraniteConfig(**dense, **scales)), \
        {"embedding_scale": 3.0, "residual_scale": 0.5, "attention.scale": 0.4, "logit_scale": 2.0}
    yield "maple", "maple", maple(window, types), {**windows, "expert_feed_forward_length": 16, "swiglu_clamp_exp": [7.0] * LAYERS}, maples
    yield "lfm2", "lfm2", t.Lfm2ForCausalLM(t.Lfm2Config(**dense, norm_eps=1e-5, block_auto_adjust_ff_dim=False, layer_types=["conv", "full_attention"])), \
        {"shortconv.l_cache": 3, "attention.head_count_kv": [0, KV]}
    yield "lfm2moe", "lfm2moe", t.Lfm2MoeForCausalLM(t.Lfm2MoeConfig(**BASE | ffn, norm_eps=1e-5, moe_intermediate_size=16, num_experts=EXPERTS,
        num_dense_layers=1, use_expert_bias=True, norm_topk_prob=True, layer_types=["full_attention", "conv"])), \
        {"shortconv.l_cache": 3, "attention.head_count_kv": [KV, 0], "leading_dense_block_count": 1, "expert_gating_func": 2, "expert_feed_forward_length": 16}
    yield "glm4moe", "glm4moe", t.Glm4MoeForCausalLM(t.Glm4MoeConfig(**BASE | ffn, head_dim=16, moe_intermediate_size=16, n_routed_experts=EXPERTS,
        n_shared_experts=2, first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=1.5, norm_topk_prob=True, use_qk_norm=False,
        attention_bias=True, rope_parameters=plain | dict(partial_rotary_factor=0.5))), {"rope.dimension_count": 8, "expert_shared_count": 2,
        "leading_dense_block_count": 1, "expert_weights_scale": 1.5, "expert_weights_norm": True, "expert_feed_forward_length": 16}
    yield "qwen3next", "qwen3next", t.Qwen3NextForCausalLM(t.Qwen3NextConfig(**BASE, **shared, **delta, head_dim=16, decoder_sparse_step=1,
        mlp_only_layers=[], layer_types=["linear_attention", "full_attention"], rope_parameters=plain | dict(partial_rotary_factor=0.25))), \
        {"full_attention_interval": 2, "attention.recurrent_layers": [True, False], "expert_feed_forward_length": 16,
        "expert_shared_feed_forward_length": 24, "ssm.conv_kernel": 4, "ssm.state_size": 16, "ssm.group_count": 2,
        "ssm.time_step_rank": 4, "ssm.inner_size": 64, "rope.dimension_count": 4}

    # Gemma 4: two kinds of heads; the first shares keys and values and has inputs of layers, the second mixtures.
    bases = dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.5, rope_theta=1e6), sliding_attention=plain)
    gemma = dense | dict(tie_word_embeddings=True, num_hidden_layers=4, head_dim=8, global_head_dim=16, sliding_window=window, layer_types=2 * types,
        rope_parameters=bases, final_logit_softcapping=5.0, vocab_size_per_layer_input=VOCAB)
    both = {"block_count": 4, "attention.key_length": 16, "attention.value_length": 16, "attention.key_length_swa": 8, "attention.value_length_swa": 8,
        "attention.sliding_window": window, "attention.sliding_window_pattern": 2 * [True, False], "rope.dimension_count": 16, "rope.dimension_count_swa": 8,
        "rope.freq_base_swa": 1e4, "final_logit_softcapping": 5.0}
    yield "gemma4", "gemma4", t.Gemma4ForCausalLM(t.Gemma4TextConfig(**gemma, num_kv_shared_layers=2, use_double_wide_mlp=True, hidden_size_per_layer_input=8)), \
        {**both, "attention.shared_kv_layers": 2, "embedding_length_per_layer_input": 8, "feed_forward_length": [HIDDEN, HIDDEN, 2 * HIDDEN, 2 * HIDDEN]}
    yield "gemma4-moe", "gemma4", t.Gemma4ForCausalLM(t.Gemma4TextConfig(**gemma | dict(num_hidden_layers=2, layer_types=types), attention_k_eq_v=True, num_global_key_value_heads=1,
        hidden_size_per_layer_input=0, enable_moe_block=True, num_experts=EXPERTS, top_k_experts=CHOSEN, moe_intermediate_size=16)), \
        {**both, "block_count": 2, "attention.sliding_window_pattern": [True, False], "attention.head_count_kv": [KV, 1], "attention.shared_kv_layers": 0,
        "embedding_length_per_layer_input": 0, "expert_count": EXPERTS, "expert_used_count": CHOSEN, "expert_feed_forward_length": 16}

    # Latent attention: 8 elements of a head do not rotate and 4 do.
    heads = dict(kv_lora_rank=16, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=12, moe_intermediate_size=8, n_routed_experts=8,
        rms_norm_eps=1e-6, num_key_value_heads=HEADS, rope_parameters=yarn | dict(mscale=0.707, mscale_all_dim=0.707))
    latent = {"attention.head_count_kv": 1, "attention.key_length": 20, "attention.value_length": 16, "attention.key_length_mla": 12,
        "attention.value_length_mla": 12, "attention.kv_lora_rank": 16, "rope.dimension_count": 4, "expert_count": 8, "expert_feed_forward_length": 8,
        **scaled, "rope.scaling.yarn_log_multiplier": 0.0707}
    yield "deepseek2", "deepseek2", t.DeepseekV2ForCausalLM(t.DeepseekV2Config(**BASE | ffn | heads, q_lora_rank=None, n_shared_experts=2,
        first_k_dense_replace=1, topk_method="greedy")), {**latent, "expert_shared_count": 2, "leading_dense_block_count": 1}
    yield "deepseek2-v3", "deepseek2", t.DeepseekV3ForCausalLM(t.DeepseekV3Config(**BASE | ffn | heads, q_lora_rank=24, n_shared_experts=1,
        first_k_dense_replace=0, n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True, num_mtp_layers=0)), {**latent,
        "expert_shared_count": 1, "leading_dense_block_count": 0, "attention.q_lora_rank": 24, "expert_weights_scale": 2.5, "expert_weights_norm": True,
        "expert_gating_func": 2, "expert_group_count": 4, "expert_group_used_count": 2}

    # State spaces, of 4 heads in 2 groups, in place of attention and beside it.
    space = dict(mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=8, mamba_d_conv=4)
    sizes = {"ssm.conv_kernel": 4, "ssm.state_size": 8, "ssm.group_count": 2, "ssm.time_step_rank": 4, "ssm.inner_size": 64}
    multipliers = {"embedding_scale": 3.0, "residual_scale": 0.5, "attention.scale": 0.4, "logit_scale": 2.0}
    mixed = dict(layer_types=["linear_attention", "full_attention"], mamba_expand=2, **scales)
    yield "granitehybrid", "granitehybrid", t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(**dense, **space, **mixed, num_local_experts=0,
        num_experts_per_tok=0, shared_intermediate_size=HIDDEN)), {**sizes, **multipliers, "attention.head_count_kv": [0, KV], "rope.scaling.finetuned": False,
        "expert_count": 0, "expert_used_count": 0}
    yield "granitehybrid-moe", "granitehybrid", t.GraniteMoeHybridForCausalLM(t.GraniteMoeHybridConfig(**BASE | dict(intermediate_size=16), **space, **mixed,
        num_local_experts=EXPERTS, shared_intermediate_size=24, position_embedding_type="rope")), {**sizes, **multipliers, "attention.head_count_kv": [0, KV],
        "feed_forward_length": 16, "expert_shared_feed_forward_length": 24}
    yield "falcon-h1", "falcon-h1", t.FalconH1ForCausalLM(t.FalconH1Config(**dense, **space, mamba_d_ssm=64, mamba_rms_norm=True, mamba_norm_before_gate=False,
        mlp_multipliers=[2.0, 1.0], ssm_multipliers=[2.0, 1.0, 1.0, 2.0, 4.0], key_multiplier=0.5, attention_in_multiplier=2.0, attention_out_multiplier=2.0,
        ssm_in_multiplier=1.0, ssm_out_multiplier=2.0, embedding_multiplier=2.0, lm_head_multiplier=4.0)), sizes

    # transformers does not know MiniCPM: Granite with its multipliers, which are those of a file that says none.
    yield "minicpm", "minicpm", t.GraniteForCausalLM(t.GraniteConfig(**dense, embedding_multiplier=12.0, residual_multiplier=1.4 / LAYERS**0.5,
        attention_multiplier=(HIDDEN // HEADS)**-0.5, logits_scaling=HIDDEN / 256)), {}, mini
    yield "cohere2", "cohere2", t.Cohere2ForCausalLM(t.Cohere2Config(**dense, sliding_window=window, layer_types=types, logit_scale=0.25)), \
        {**windows, "logit_scale": 0.25, "attention.layer_norm_epsilon": 1e-5}

    # As BitNet's embedders: every matrix behind a norm of its own.
    yield "qwen3-normed", "qwen3", normed(t.Qwen3ForCausalLM(t.Qwen3Config(**dense, head_dim=16))), {}
    yield "gemma3-normed", "gemma3", normed(t.Gemma3ForCausalLM(t.Gemma3TextConfig(**dense | {"tie_word_embeddings": True}, head_dim=16, query_pre_attn_scalar=16,
        sliding_window=window, layer_types=types, rope_parameters=dict(full_attention=plain, sliding_attention=plain)))), \
        {"attention.sliding_window": window, "attention.sliding_window_pattern": 2}

    yield "deepseek2-dense", "deepseek2", t.DeepseekV3ForCausalLM(t.DeepseekV3Config(**BASE | ffn | heads, q_lora_rank=24, first_k_dense_replace=LAYERS,
        num_mtp_layers=0)), {**latent, "attention.q_lora_rank": 24, "expert_count": 0}

    # Queries that grow with their positions: every 16.
    near = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16, rope_theta=1e4, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.5)
    yield "mistral3", "mistral3", t.Ministral3ForCausalLM(t.Ministral3Config(**dense, head_dim=16, sliding_window=None, rope_parameters=near)), {"rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 16, "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.5}
    yield "hunyuan-moe", "hunyuan-moe", t.HunYuanMoEV1ForCausalLM(t.HunYuanMoEV1Config(**{k: v for k, v in dense.items()}, head_dim=8, num_experts=EXPERTS, moe_topk=CHOSEN)), \
        {"expert_count": EXPERTS, "expert_used_count": CHOSEN, "expert_feed_forward_length": HIDDEN, "expert_shared_feed_forward_length": HIDDEN}
    yield "ernie4_5-moe", "ernie4_5-moe", t.Ernie4_5_MoeForCausalLM(t.Ernie4_5_MoeConfig(**dense, use_bias=False, moe_intermediate_size=16, moe_k=CHOSEN,
        moe_num_experts=EXPERTS, moe_num_shared_experts=2, moe_layer_start_index=1)), {"expert_count": EXPERTS, "expert_used_count": CHOSEN, "expert_feed_forward_length": 16,
        "expert_shared_count": 2, "leading_dense_block_count": 1}
    yield "gemma", "gemma", t.GemmaForCausalLM(t.GemmaConfig(**dense | {"tie_word_embeddings": True}, head_dim=16)), {}
    yield "command-r", "command-r", t.CohereForCausalLM(t.CohereConfig(**dense, logit_scale=0.25)), {"logit_scale": 0.25, "attention.layer_norm_epsilon": 1e-5}
    groups, of_groups = dict(n_group=2, topk_group=1, routed_scaling_factor=1.5, norm_topk_prob=False), {"expert_group_count": 2, "expert_group_used_count": 1}
    yield "dots1", "dots1", t.Dots1ForCausalLM(t.Dots1Config(**BASE | ffn, head_dim=16, moe_intermediate_size=16, n_routed_experts=EXPERTS, n_shared_experts=2,
        first_k_dense_replace=1, **groups)), {"expert_shared_count": 2, "leading_dense_block_count": 1,
        "expert_weights_scale": 1.5, "expert_gating_func": 2, "expert_feed_forward_length": 16, **of_groups}

    # Nemotron: a layer is one of a state space, attention and a feed-forward or a mixture without gates.
    space = dict(mamba_num_heads=4, mamba_head_dim=16, n_groups=2, ssm_state_size=8, conv_kernel=4, head_dim=16, mlp_hidden_act="relu2", intermediate_size=48)
    kinds = dict(M="linear_attention", A="full_attention", F="mlp", E="moe")

    def nemotron(pattern, **more):
        widths = {"F": 48, "E": 16}
        return t.NemotronHForCausalLM(t.NemotronHConfig(**BASE | space | more | dict(num_hidden_layers=len(pattern), layers_block_type=[kinds[x] for x in pattern]))), {**sizes,
            "block_count": len(pattern), "attention.head_count_kv": [KV * (x == "A") for x in pattern], "feed_forward_length": [widths.get(x, 0) for x in pattern]}
    model, keys = nemotron("MAFMF")
    yield "nemotron_h", "nemotron_h", model, {**keys, "expert_count": 0, "expert_used_count": 0}
    mixed = dict(n_routed_experts=EXPERTS, moe_intermediate_size=16, moe_shared_expert_intermediate_size=24, routed_scaling_factor=2.5)
    experts = {"expert_feed_forward_length": 16, "expert_shared_feed_forward_length": 24, "expert_weights_scale": 2.5, "expert_weights_norm": True}
    model, keys = nemotron("MEAFE", **mixed, n_group=2, topk_group=1)
    yield "nemotron_h_moe", "nemotron_h_moe", model, {**keys, **experts, "expert_group_count": 2, "expert_group_used_count": 1}
    model, keys = nemotron("EAME", **mixed, moe_latent_size=16)
    yield "nemotron_h_moe-latent", "nemotron_h_moe", model, {**keys, **experts, "moe_latent_size": 16}

    # Ling 2.0 is GLM-4.5 with other names: norms of heads, of which half rotates, experts chosen of one group of two.
    yield "bailingmoe2", "bailingmoe2", t.Glm4MoeForCausalLM(t.Glm4MoeConfig(**BASE | ffn, head_dim=16, moe_intermediate_size=16, n_routed_experts=EXPERTS, n_shared_experts=1,
        first_k_dense_replace=1, **groups, use_qk_norm=True, attention_bias=False, rope_parameters=plain | dict(partial_rotary_factor=0.5))), {"rope.dimension_count": 8,
        "expert_shared_count": 1, "leading_dense_block_count": 1, "expert_weights_scale": 1.5, "expert_gating_func": 2,
        "expert_feed_forward_length": 16, **of_groups}, bailing
    yield "exaone-moe", "exaone-moe", t.ExaoneMoeForCausalLM(t.ExaoneMoeConfig(**BASE | ffn, head_dim=16, moe_intermediate_size=16, num_experts=EXPERTS, num_shared_experts=2,
        first_k_dense_replace=1, **groups, sliding_window=window, layer_types=types, sliding_window_pattern=2)), \
        {**windows, "expert_shared_count": 2, "leading_dense_block_count": 1, "expert_weights_scale": 1.5, "expert_gating_func": 2,
        "expert_feed_forward_length": 16, **of_groups}
    yield "minimax-m2", "minimax-m2", t.MiniMaxM2ForCausalLM(t.MiniMaxM2Config(**BASE | ffn, head_dim=16, num_local_experts=EXPERTS,
        rope_parameters=plain | dict(partial_rotary_factor=0.5))), {"rope.dimension_count": 8, "expert_gating_func": 2, "expert_feed_forward_length": HIDDEN}
    seen = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, patch_size=2, pos_emb_height=2, pos_emb_width=2, max_position_embeddings=4)
    text = dense | dict(rms_norm_eps=0.01, num_hidden_layers=4, head_dim=16, sliding_window=window, layer_types=3 * types[:1] + types[1:], final_logit_softcapping=2.0, qk_scale_factor=1.75,
        output_multiplier=0.5, rope_parameters=plain)
    yield "muse-glimmer", "muse-glimmer", t.MuseGlimmerForConditionalGeneration(t.MuseGlimmerConfig(text_config=text, vision_config=seen, out_hidden_size=64, projector_hidden_size=8,
        image_token_id=60, video_token_id=61, tie_word_embeddings=False)), {"block_count": 4, "attention.sliding_window": window, "attention.sliding_window_pattern": [True] * 3 + [False],
        "final_logit_softcapping": 2.0, "logit_scale": 0.5}
    layer = {"attention.layer_norm_epsilon": 1e-5}
    yield "internlm2", "internlm2", t.LlamaForCausalLM(t.LlamaConfig(**dense)), {}, internlm
    yield "exaone", "exaone", t.LlamaForCausalLM(t.LlamaConfig(**dense)), {}, None
    yield "starcoder2", "starcoder2", t.Starcoder2ForCausalLM(t.Starcoder2Config(**dense | {"tie_word_embeddings": True}, sliding_window=None)), layer
    half = plain | dict(partial_rotary_factor=0.5)
    yield "phi2", "phi2", t.PhiForCausalLM(t.PhiConfig(**dense, rope_parameters=half)), {**layer, "rope.dimension_count": 4}
    yield "stablelm", "stablelm", t.StableLmForCausalLM(t.StableLmConfig(**dense, rope_parameters=half, use_qkv_bias=True)), {**layer, "rope.dimension_count": 4}
    yield "nemotron", "nemotron", t.NemotronForCausalLM(t.NemotronConfig(**dense, head_dim=8, rope_parameters=half)), {**layer, "rope.dimension_count": 4}
    yield "arcee", "arcee", t.ArceeForCausalLM(t.ArceeConfig(**dense)), {}
    reads = {"pooling_type": 1, "attention.causal": False}
    yield "eurobert", "eurobert", t.EuroBertModel(t.EuroBertConfig(**dense)), reads
    yield "llama-embed", "llama-embed", t.EuroBertModel(t.EuroBertConfig(**dense)), reads, lambda tensors, config: (tensors, config | dict(model_type="llama_bidirec"))
    # BitNet of 2024, whose matrices are stored as floats and become ternary when they are read.
    yield "bitnet", "bitnet", t.BitNetForCausalLM(t.BitNetConfig(**dense, hidden_act="silu", rope_parameters=plain)), {}, masters

    # State spaces alone, and with feed-forwards beside attention of which half of a head rotates.
    alone = dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_heads=4, head_dim=16, n_groups=2, state_size=8, conv_kernel=4, expand=2,
        tie_word_embeddings=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    yield "mamba2", "mamba2", t.Mamba2ForCausalLM(t.Mamba2Config(**alone)), {**sizes, "feed_forward_length": 0, "attention.head_count": 0, "attention.head_count_kv": None,
        "attention.key_length": None, "attention.value_length": None, "rope.freq_base": None}
    space = dict(mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=2, mamba_d_state=8, mamba_d_conv=4, mamba_expand=2)
    yield "bamba", "granitehybrid", t.BambaForCausalLM(t.BambaConfig(**dense, **space, attn_layer_indices=[1], rope_parameters=half)), {**sizes,
        "attention.head_count_kv": [0, KV], "rope.dimension_count": 4, "expert_count": 0, "expert_used_count": 0}


def renamed(tensors, names):
    """tensors by other names: parts of them are replaced in turn."""
    out = {}
    for key, x in tensors.items():
        for old, new in names.items():
            key = key.replace(old, new)
        out[key] = x
    return out


def bailing(tensors, config):
    """As Ling 2.0 is published."""
    for i in range(LAYERS):
        at = f"model.layers.{i}.self_attn."
        tensors[f"model.layers.{i}.attention.query_key_value.weight"] = np.concatenate([tensors.pop(f"{at}{p}_proj.weight") for p in "qkv"])
    tensors = renamed(tensors, {"self_attn.o_proj": "attention.dense", "self_attn.q_norm": "attention.query_layernorm", "self_attn.k_norm": "attention.key_layernorm",
                                "gate.e_score_correction_bias": "gate.expert_bias", "embed_tokens": "word_embeddings"})
    more = dict(model_type="bailing_moe_v2", num_experts=config.pop("n_routed_experts"), num_shared_experts=config.pop("n_shared_experts"), score_function="sigmoid",
                use_qk_norm=True, use_qkv_bias=False, use_bias=False, partial_rotary_factor=0.5, rope_theta=10000.0)
    config.pop("rope_parameters")
    return tensors, config | more


def internlm(tensors, config):
    """As InternLM 2 is published: the queries of a KV head, its keys and its values are together."""
    width = HIDDEN // HEADS
    for i in range(LAYERS):
        at = f"model.layers.{i}.self_attn."
        q, k, v = (tensors.pop(f"{at}{p}_proj.weight").reshape(KV, -1, width, HIDDEN) for p in "qkv")
        tensors[f"model.layers.{i}.attention.wqkv.weight"] = np.concatenate([q, k, v], axis=1).reshape(-1, HIDDEN)
    names = {"self_attn.o_proj": "attention.wo", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "feed_forward.w1",
             "mlp.up_proj": "feed_forward.w3", "mlp.down_proj": "feed_forward.w2", "embed_tokens": "tok_embeddings", "lm_head": "output"}
    return renamed(tensors, names), config | dict(model_type="internlm2")


def mini(tensors, config):
    """As MiniCPM is published."""
    for key in ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"):
        config.pop(key)
    return tensors, config | dict(model_type="minicpm", scale_emb=12, scale_depth=1.4, dim_model_base=256)


MASTERS = {}  # of matrices of which a model has the ternary values


def ternary(model):
    """Makes matrices of layers trits by their mean magnitude, rounded to F16, and keeps what they were."""
    for name, p in model.named_parameters():
        if name.endswith("_proj.weight"):
            MASTERS[name] = p.detach().numpy().astype(np.float16)
            mean = np.float32(np.abs(p.data.numpy()).mean())
            trits = np.rint(p.data.numpy().astype(np.float32) * (np.float32(1) / mean)).clip(-1, 1)
            p.data = torch.tensor(trits.astype(np.float64) * float(np.float16(mean)))


def masters(tensors, config):
    """As the BitNet of 2024 is published."""
    tensors = renamed(tensors | MASTERS, {"self_attn.attn_sub_norm": "self_attn.inner_attn_ln", "mlp.ffn_sub_norm": "mlp.ffn_layernorm"})
    return tensors, config | dict(model_type="llama", architectures=["BitnetForCausalLM"])


def maples(tensors, config):
    """As Maple is published."""
    kinds = ["sliding_attention", "full_attention"]
    return tensors, config | dict(model_type="maple", sliding_window=12, layer_types=kinds, nope_on_global_attention=True, num_shared_experts=0, use_sliding_window=True)


def normed(model):
    """A model whose layers' matrices read an RMSNorm each."""
    class Normed(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x * (x.pow(2).mean(-1, keepdim=True) + model.config.rms_norm_eps).rsqrt() * self.norm.weight)
    for layer in model.model.layers:
        for m in layer.modules():
            if type(m) is torch.nn.Linear:
                m.__class__ = Normed
                m.norm = torch.nn.Module()
                m.norm.weight = torch.nn.Parameter(torch.ones(m.in_features))
    return model


def maple(window, types):
    """transformers does not know it: Qwen3's mixtures, clamped, with the attention of EXAONE 4."""
    from transformers.models.exaone4 import modeling_exaone4 as exaone
    t = transformers

    class Maple(t.Qwen3MoeForCausalLM):
        pass

    m = Maple(t.Qwen3MoeConfig(**BASE, intermediate_size=HIDDEN, moe_intermediate_size=16, head_dim=8, num_experts=EXPERTS, norm_topk_prob=True))
    other = t.Exaone4Config(**BASE, sliding_window=window, layer_types=types)
    other._attn_implementation = "eager"
    n = len(TOKENS)
    near = torch.ones(n, n).tril().bool() & ~torch.ones(n, n).tril(-window).bool()
    for i, layer in enumerate(m.model.layers):
        layer.self_attn = exaone.Exaone4Attention(other, i)
        whole = layer.self_attn.forward
        if types[i] == "sliding_attention":
            mask = torch.where(near, 0.0, -1e30).double()[None, None]
            layer.self_attn.forward = lambda whole=whole, mask=mask, **k: whole(**{**k, "attention_mask": mask})
        e = layer.mlp.experts
        e.forward = lambda hidden, chosen, weights, e=e: clamped(e, hidden, chosen, weights)
    return m


def clamped(e, hidden, chosen, weights):
    out = torch.zeros_like(hidden)
    for row in range(len(hidden)):
        for k, expert in enumerate(chosen[row].tolist()):
            gate, up = (e.gate_up_proj[expert] @ hidden[row]).chunk(2)
            out[row] += weights[row, k] * (e.down_proj[expert] @ (torch.nn.functional.silu(gate.clamp(max=7)) * up.clamp(-7, 7)))
    return out


def save(model, folder, otherwise=None):
    """Writes the model as a directory, numbers in the type that holds them, without a tokenizer; otherwise changes what it has."""
    for x in (*model.parameters(), *model.buffers()):
        x.data = x.data.to(torch.float16 if torch.equal(x.data.half().double(), x.data.double()) else torch.float32)
    model.save_pretrained(folder)
    Path(folder, "generation_config.json").unlink(missing_ok=True)
    if otherwise:
        from safetensors.numpy import load_file, save_file
        file, about = Path(folder, "model.safetensors"), Path(folder, "config.json")
        tensors, config = otherwise(load_file(file), json.loads(about.read_text()))
        save_file({k: np.ascontiguousarray(x) for k, x in tensors.items()}, file, {"format": "pt"})
        about.write_text(json.dumps(config))
    for path in Path(folder).glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text())))
    Path(folder, "model.safetensors").chmod(0o644)


def packed(name):
    """The directory once more, with experts as gpt-oss is published: MXFP4, outputs first."""
    from safetensors.numpy import load_file, save_file
    tensors, folder = load_file(f"{name}/model.safetensors"), Path(name + "-mxfp4")
    for key in [k for k in tensors if k.endswith("_proj") and "experts" in k]:
        x = tensors.pop(key).astype(np.float64).swapaxes(1, 2)
        raw = np.frombuffer(mxfp4(x)[0], np.uint8).reshape(*x.shape[:2], -1, 17)
        codes = np.concatenate([raw[..., 1:] & 15, raw[..., 1:] >> 4], axis=-1)
        tensors[key + "_blocks"], tensors[key + "_scales"] = codes[..., ::2] | codes[..., 1::2] << 4, np.ascontiguousarray(raw[..., 0])
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads(Path(f"{name}/config.json").read_text()) | dict(quantization_config=dict(quant_method="mxfp4"))
    (folder / "config.json").write_text(json.dumps(config))


def main():
    transformers.logging.set_verbosity_error()
    for seed, (name, arch, model, more, *otherwise) in enumerate(models()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        model = model.double().eval()
        model.config._attn_implementation = "eager"
        c = model.config.get_text_config()
        c._attn_implementation = "eager"
        if hasattr(c, "_experts_implementation"):
            c._experts_implementation = "eager"
        draw(model, np.random.default_rng(100 + seed))
        if arch == "bitnet":
            ternary(model)
        with torch.no_grad():
            made = model(torch.tensor([TOKENS]), use_cache=False)
            logits = (made.logits if "logits" in made else made.last_hidden_state)[0].float().numpy()
        head = more.get("attention.key_length") or getattr(c, "head_dim", None) or HIDDEN // HEADS
        rope = getattr(c, "rope_parameters", None) or {"rope_theta": 10000.0}
        rope = rope.get("full_attention", rope)
        md = {"general.architecture": arch, "general.name": name + " of random weights"}
        keys = {
            "block_count": LAYERS, "context_length": CONTEXT, "embedding_length": HIDDEN, "feed_forward_length": HIDDEN,
            "attention.head_count": HEADS, "attention.head_count_kv": KV, "attention.key_length": head, "attention.value_length": head,
            "attention.layer_norm_rms_epsilon": float(getattr(c, "rms_norm_eps", 1e-5)), "expert_count": EXPERTS, "expert_used_count": CHOSEN,
            "rope.freq_base": float(rope["rope_theta"]), **more,
        }
        if not hasattr(c, "num_experts_per_tok") and "expert_count" not in more:
            del keys["expert_count"], keys["expert_used_count"]
        md.update({k if k.startswith("lutra.") else f"{arch}.{k}": v for k, v in keys.items() if v is not None})
        md.update({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-4o", "tokenizer.ggml.tokens": [f"t{i}" for i in range(VOCAB)],
                   "tokenizer.ggml.token_type": [1] * VOCAB, "tokenizer.ggml.merges": ["t 3"]})
        out = tensors(model, arch)
        if arch == "gemma4":  # proportional rotation: half of the pairs hardly rotate
            out["rope_freqs.weight"] = (F32, (8,), np.array([1.0] * 4 + [1e30] * 4, np.float32).tobytes())
        write(name + ".gguf", md, out)
        np.save(name + ".npy", logits)
        if otherwise != [None] and (otherwise or type(model).__module__.startswith("transformers.")):
            save(model, name, *otherwise)
        if arch == "gpt-oss":
            packed(name)
        print(f"{name}: {sum(p.numel() for p in model.parameters())} weights, logits of {logits.std():.2f}")


main()
