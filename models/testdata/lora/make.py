"""Writes adapters of the tiny models in ../huggingface as PEFT saves them, and the logits with them.

    pip install torch transformers peft
    python make.py

For each adapter a directory; in logits.json the logits after each of the last eight of the tokens of
../huggingface/make.py, computed in float64 with the values that the files hold. Nothing was trained.
llama-all.gguf is what llama.cpp's convert_lora_to_gguf.py makes of llama-all:

    python convert_lora_to_gguf.py --outtype f32 --base ../huggingface/llama llama-all --outfile llama-all.gguf
"""
import json
import shutil
from pathlib import Path

import peft
import torch
import transformers

HERE = Path(__file__).resolve().parent
MODELS = HERE.parent / "huggingface"
TOKENS = [(37 * i * i + 11 * i + 5) % 64 for i in range(40)]
LAST = 8
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
ALL = ATTENTION + ["gate_proj", "up_proj", "down_proj"]

ADAPTERS = {
    "llama-all": ("llama", torch.float32, dict(r=4, lora_alpha=8, target_modules=ALL + ["lm_head"])),
    "llama-some": ("llama", torch.bfloat16, dict(r=9, lora_alpha=12, use_rslora=True, target_modules=["q_proj", "v_proj", "down_proj"], layers_to_transform=[1])),
    "llama-ranks": ("llama", torch.float16, dict(r=2, lora_alpha=4, target_modules=ALL, rank_pattern={"q_proj": 5})),
    "phi3-fused": ("phi3", torch.float32, dict(r=3, lora_alpha=6, target_modules=["qkv_proj", "gate_up_proj", "o_proj"])),
}

logits = {}
for name, (base, kind, config) in ADAPTERS.items():
    torch.manual_seed(len(logits))
    model = transformers.AutoModelForCausalLM.from_pretrained(MODELS / base, dtype=torch.float64)
    model = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", base_model_name_or_path=base, **config))
    for key, p in model.named_parameters():
        if "lora_" in key:
            p.data = (torch.randn(p.shape) * (0.3 if "lora_B" in key else 0.2)).to(kind).to(torch.float64)
    model.eval()
    with torch.no_grad():
        out = model(torch.tensor([TOKENS])).logits[0, -LAST:]
    logits[name] = [[round(x, 9) for x in row] for row in out.tolist()]
    shutil.rmtree(HERE / name, ignore_errors=True)
    for key, p in model.named_parameters():
        if "lora_" in key:
            p.data = p.data.to(kind)
    model.peft_config["default"].base_model_name_or_path = base
    model.save_pretrained(HERE / name, save_embedding_layers=False)
    (HERE / name / "README.md").unlink(missing_ok=True)
(HERE / "logits.json").write_text(json.dumps(logits).replace("]], ", "]],\n") + "\n")
