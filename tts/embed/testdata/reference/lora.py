"""Makes adapters of the models beside this file as PEFT saves them, and the vectors and scores that
these have with them.

    python3 tts/embed/testdata/reference/lora.py

Made with torch 2.15.0, transformers 5.24.0, peft 0.21.2 and gguf on a CPU. Weights of models are those of
NAME.gguf, token ids those of NAME.json; of each the vectors of the first texts, the mean of their tokens'
states at length 1, and the scores of its pairs. Nothing was trained.
"""
import json, shutil
from pathlib import Path

import gguf
import numpy as np
import peft
import torch
import transformers as t

HERE = Path(__file__).resolve().parent
TEXTS = 4
BASE = dict(hidden_size=32, intermediate_size=48, num_attention_heads=2, max_position_embeddings=640)


def filled(name, model, arch, layers):
    """The model with the weights of a file."""
    stored = {x.name: np.array(x.data).reshape([int(n) for n in reversed(x.shape)]) for x in gguf.GGUFReader(HERE / f"{name}.gguf").tensors}
    names = gguf.get_tensor_name_map(arch, layers)
    state = {}
    for key, x in model.state_dict().items():
        short = key.removeprefix("bert.").removeprefix("model." if name == "modern-bert" else "").replace("pooler.dense", "cls").replace("classifier.", "classifier.out_proj.")
        of = short if short.startswith("cls.") else names.get_name(short, try_suffixes=(".weight", ".bias"))
        state[key] = torch.tensor(stored[of].astype(np.float32)).reshape(x.shape) if of else x
        assert of or "position_ids" in key or "lm_head" in key, key
    model.load_state_dict(state)
    return model.eval()


def bert():
    model = t.BertForSequenceClassification(t.BertConfig(**BASE, vocab_size=json_tokens("bert"), num_hidden_layers=2, num_labels=1, pad_token_id=0))
    return filled("bert", model, gguf.MODEL_ARCH.BERT, 2), ["query", "key", "value", "output.dense", "intermediate.dense"]


def modern_bert():
    model = t.ModernBertForSequenceClassification(t.ModernBertConfig(**BASE, vocab_size=json_tokens("modern-bert"), num_hidden_layers=5, local_attention=8,
        pad_token_id=0, num_labels=1, classifier_pooling="mean"))
    return filled("modern-bert", model, gguf.MODEL_ARCH.MODERN_BERT, 5), ["Wqkv", "Wi", "Wo"]


def qwen3():
    model = t.Qwen3Model(t.Qwen3Config(**BASE, vocab_size=json_tokens("qwen3"), num_hidden_layers=2, num_key_value_heads=1, head_dim=24,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, tie_word_embeddings=True))
    return filled("qwen3", model, gguf.MODEL_ARCH.QWEN3, 2), ["q_proj", "v_proj", "o_proj", "gate_proj", "down_proj"]


def json_tokens(name):
    reader = gguf.GGUFReader(HERE / f"{name}.gguf")
    return next(int(x.shape[1]) for x in reader.tensors if x.name == "token_embd.weight")


def states(model, ids, second=None):
    out = model(torch.tensor([ids]), output_hidden_states=True, **({} if second is None else {"token_type_ids": torch.tensor([second])}))
    return out, out.last_hidden_state[0] if hasattr(out, "last_hidden_state") else out.hidden_states[-1][0]


def score(name, model, c):
    if name == "qwen3":
        reader = gguf.GGUFReader(HERE / "qwen3.gguf")
        field = reader.fields["tokenizer.ggml.tokens"]
        tokens = [bytes(field.parts[i]).decode() for i in field.data]
        with torch.no_grad():
            last = states(model, c["ids"])[1][-1]
        rows = model.get_base_model().embed_tokens.weight[[tokens.index("yes"), tokens.index("no")]]
        return torch.softmax(rows @ last, 0)[0].item()
    second = None
    if name == "bert":
        first = c["ids"].index(c["ids"][-1]) + 1
        second = [0] * first + [1] * (len(c["ids"]) - first)
    with torch.no_grad():
        return torch.sigmoid(states(model, c["ids"], second)[0].logits[0, 0]).item()


out = {}
for seed, (name, make) in enumerate({"bert": bert, "modern-bert": modern_bert, "qwen3": qwen3}.items()):
    torch.manual_seed(seed)
    model, targets = make()
    model.config._attn_implementation = "eager"
    model = peft.get_peft_model(model, peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets))
    for key, p in model.named_parameters():
        if "lora_B" in key:
            p.data = torch.randn(p.shape) * 0.1
    model.eval()
    cases = json.loads((HERE / f"{name}.json").read_text())
    vectors = []
    for c in cases["texts"][:TEXTS]:
        with torch.no_grad():
            x = states(model, c["ids"])[1].mean(0)
            if name == "modern-bert":  # whose last states are not behind the norm
                x = model.get_base_model().model(torch.tensor([c["ids"]])).last_hidden_state[0].mean(0)
        vectors.append([float(f"{v:.7g}") for v in (x / x.norm()).tolist()])
    out[name] = {"vectors": vectors, "scores": [score(name, model, c) for c in cases["pairs"]]}
    shutil.rmtree(HERE / "lora" / name, ignore_errors=True)
    model.peft_config["default"].base_model_name_or_path = name
    model.save_pretrained(HERE / "lora" / name)
    (HERE / "lora" / name / "README.md").unlink(missing_ok=True)
(HERE / "lora.json").write_text(json.dumps(out, separators=(",", ":")))
