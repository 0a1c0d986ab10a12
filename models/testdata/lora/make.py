"""Writes adapters of the tiny models in ../huggingface and ../transformers as PEFT saves them, and the
logits with them.

    pip install torch transformers peft
    python make.py [NAME ...]

For each adapter a directory, MODEL-WHAT; in logits.json the logits after each of the last eight of the
tokens of ../huggingface/make.py, computed in float64 with the values that the files hold. Nothing was
trained. qwen3_moe-modules and deepseek2-modules are as PEFT saved them while transformers had a module for
each expert; the second's logits are those of weights that its products were added to. qwen3_moe-old is qwen3_moe-experts as PEFT 0.18.1 saves it, which gives the same logits (tried with it).
llama-all.gguf and qwen3_moe-modules.gguf are what llama.cpp's convert_lora_to_gguf.py makes:

    python convert_lora_to_gguf.py --outtype f32 --base ../huggingface/llama llama-all --outfile llama-all.gguf
"""
import importlib.util
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

HERE = Path(__file__).resolve().parent
MODELS, FILES = HERE.parent / "huggingface", HERE.parent / "transformers"
TOKENS = [(37 * i * i + 11 * i + 5) % 64 for i in range(40)]
LAST = 8
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
MLP = ["gate_proj", "up_proj", "down_proj"]
ALL = ATTENTION + MLP
LATENT = ["q_proj", "q_a_proj", "q_b_proj", "kv_a_proj_with_mqa", "kv_b_proj", "o_proj"]
EXPERTS = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]

ADAPTERS = {
    "llama-all": (torch.float32, dict(r=4, lora_alpha=8, target_modules=ALL + ["lm_head"])),
    "llama-some": (torch.bfloat16, dict(r=9, lora_alpha=12, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"], layers_to_transform=[1])),
    "llama-ranks": (torch.float16, dict(r=2, lora_alpha=4, target_modules=ALL, rank_pattern={"q_proj": 5})),
    "phi3-fused": (torch.float32, dict(r=3, lora_alpha=6, target_modules=["qkv_proj", "gate_up_proj", "o_proj"])),
    "qwen3_moe-experts": (torch.float32, dict(r=3, lora_alpha=6, target_modules=["q_proj"], target_parameters=EXPERTS + ["mlp.gate.weight"])),
    "qwen3_moe-modules": (torch.bfloat16, None),
    "qwen3_moe-old": (torch.float32, None),
    "deepseek2-v3-all": (torch.bfloat16, dict(r=3, lora_alpha=3, target_modules=LATENT + MLP, target_parameters=EXPERTS)),
    "deepseek2-modules": (torch.float32, None),
    "deepseek2-latent": (torch.float32, dict(r=2, lora_alpha=5, target_modules=LATENT + MLP)),
}


def base_of(name):
    """The model of a directory, or that of a file, drawn again."""
    if (MODELS / name).exists():
        return transformers.AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float64)
    spec = importlib.util.spec_from_file_location("tiny", FILES / "make.py")
    tiny, argv = importlib.util.module_from_spec(spec), sys.argv
    sys.argv = ["make.py", "none of them"]
    spec.loader.exec_module(tiny)
    sys.argv = argv
    for seed, (known, _, model, _) in enumerate(tiny.models()):
        if known == name:
            model = model.double().eval()
            tiny.draw(model, np.random.default_rng(100 + seed))
            return model


def draw(model, kind):
    for key, p in model.named_parameters():
        if "lora_" in key:
            p.data = (torch.randn(p.shape) * (0.3 if "lora_B" in key else 0.2)).to(kind).to(torch.float64)


def logits_of(model):
    for config in (getattr(m, "config", None) for m in model.modules()):
        if hasattr(config, "_experts_implementation"):
            config._experts_implementation = "eager"
        if hasattr(config, "_attn_implementation"):
            config._attn_implementation = "eager"
    model.eval()
    with torch.no_grad():
        out = model(torch.tensor([TOKENS]), use_cache=False).logits[0, -LAST:]
    return [[round(x, 9) for x in row] for row in out.tolist()]


def write(name, base, tensors, **config):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    save_file({"base_model.model." + k: v.contiguous() for k, v in tensors.items()}, folder / "adapter_model.safetensors", {"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(dict(peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path=base, bias="none", **config), indent=1))


def modules(name, kind):
    """An adapter of a module an expert: as older transformers had them, from which PEFT makes one of parameters."""
    shapes = {"gate_proj": (16, 32), "up_proj": (16, 32), "down_proj": (32, 16)}
    tensors = {}
    for layer in range(2):
        stems = {f"mlp.experts.{e}.{part}": of for e in range(4) for part, of in shapes.items()} | {"self_attn.k_proj": (16, 32)}
        for stem, (rows, cols) in stems.items():
            key = f"model.layers.{layer}.{stem}"
            tensors[key + ".lora_A.weight"] = (torch.randn(2, cols) * 0.2).to(kind)
            tensors[key + ".lora_B.weight"] = (torch.randn(rows, 2) * 0.3).to(kind)
    write(name, "qwen3_moe", tensors, r=2, lora_alpha=4, target_modules=MLP + ["k_proj"])
    return logits_of(peft.PeftModel.from_pretrained(base_of("qwen3_moe"), HERE / name).double())


def merged(name, kind):
    """An adapter of a dense layer, of the experts of all rows and of some of the others, of unlike ranks."""
    model, tensors = base_of("deepseek2"), {}
    parts = {"layers.0.mlp." + x: 2 for x in MLP} | {"layers.1.mlp.shared_experts." + x: 3 for x in MLP} | {"layers.1.mlp.gate": 1, "layers.1.self_attn.kv_b_proj": 4}
    parts |= {f"layers.1.mlp.experts.{e}.{x}": 1 + e for e in (0, 2, 3, 5) for x in MLP if e != 2 or x != "up_proj"}
    weights = model.state_dict()
    for stem, rank in parts.items():
        container, part = stem.rsplit(".", 1)
        if ".experts." in stem:
            container, expert = container.rsplit(".", 1)
            w = weights[f"model.{container}.{'down_proj' if part == 'down_proj' else 'gate_up_proj'}"][int(expert)]
            w = w if part == "down_proj" else w.chunk(2)[part == "up_proj"]
        else:
            w = weights[f"model.{stem}.weight"]
        a, b = (torch.randn(rank, w.shape[1]) * 0.2).to(kind), (torch.randn(w.shape[0], rank) * 0.3).to(kind)
        tensors[f"model.{stem}.lora_A.weight"], tensors[f"model.{stem}.lora_B.weight"] = a, b
        w += (6 if "shared" in stem else 4) / rank * b.double() @ a.double()
    write(name, "deepseek2", tensors, r=2, lora_alpha=4, target_modules=MLP + ["gate", "kv_b_proj"], alpha_pattern={"shared_experts.(gate|up|down)_proj": 6})
    return logits_of(model)


def old(name, _):
    """qwen3_moe-experts with A and B of experts in each other's place."""
    tensors, of = {}, load_file(HERE / "qwen3_moe-experts" / "adapter_model.safetensors")
    for key, x in of.items():
        key = key.removeprefix("base_model.model.")
        if ".experts." not in key:
            tensors[key] = x
        elif ".lora_A." in key:  # [experts · rank][reads]
            tensors[key.replace("lora_A", "lora_B")] = x.reshape(4, 3, -1).permute(2, 1, 0).reshape(x.shape[1], -1)
        else:  # [makes][rank · experts]
            tensors[key.replace("lora_B", "lora_A")] = x.reshape(-1, 3, 4).permute(2, 1, 0).reshape(-1, x.shape[0])
    write(name, "qwen3_moe", tensors, r=3, lora_alpha=6, target_modules=["q_proj"], target_parameters=EXPERTS + ["mlp.gate.weight"], peft_version="0.18.1")
    return logits["qwen3_moe-experts"]


logits = json.loads((HERE / "logits.json").read_text())
for seed, (name, (kind, config)) in enumerate(ADAPTERS.items()):
    if sys.argv[1:] and name not in sys.argv[1:]:
        continue
    torch.manual_seed(seed)
    if config is None:
        logits[name] = {"qwen3_moe-modules": modules, "qwen3_moe-old": old, "deepseek2-modules": merged}[name](name, kind)
        continue
    base = name.rsplit("-", 1)[0]
    model = peft.get_peft_model(base_of(base), peft.LoraConfig(task_type="CAUSAL_LM", base_model_name_or_path=base, **config))
    draw(model, kind)
    logits[name] = logits_of(model)
    shutil.rmtree(HERE / name, ignore_errors=True)
    for key, p in model.named_parameters():
        if "lora_" in key:
            p.data = p.data.to(kind)
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(HERE / name, save_embedding_layers=False)
    (HERE / name / "README.md").unlink(missing_ok=True)
(HERE / "logits.json").write_text(json.dumps(logits).replace("]], ", "]],\n") + "\n")
