#!/usr/bin/env python3
"""Make the reward models of this folder and what they score: see README.md.

Models, heads and scoring are Hugging Face's transformers and plain PyTorch, in float64,
written from what each project publishes of its checkpoints. The GGUF files come from the
checkpoints on disk by tools/reward2gguf.py.
"""
import json
import sys
import tempfile
from pathlib import Path

import sentencepiece
import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import nn
from transformers import (
    LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, LlamaTokenizer, MistralConfig, MistralForCausalLM,
    PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, Qwen2ForSequenceClassification, Qwen2Model,
)

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "tools"))
from reward2gguf import convert  # noqa: E402

QWEN_WORDS = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
LLAMA_WORDS = QWEN_WORDS.replace(r"|\p{N}|", r"|\p{N}{1,3}|")
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA_CHAT = (
    "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
MATH_SYSTEM = r"Please reason step by step, and put your final answer within \boxed{}."

LLAMA31 = {  # with an original context of which these few tokens are a good part
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64,
}

PROBLEMS = [
    "Ann has 12 eggs in each of 7 boxes. How many eggs does she have?",
    "A train goes 90 km in 2 hours. How far does it go in 5 hours?",
    "Was sind 3 + 4·5? (Größe)",
]
LINES = [
    "12*7=84.\nShe has 84 eggs.\nAnswer: 84",
    "90/2=45 km an hour.\n\nThat is 45*5=225 km.\nAnswer: 225\n",
    "4·5=20, und 3+20=23.\nAnswer: 23",
]
PARAGRAPHS = [
    "First, 12*7=84.\nShe has so many.\n\nThe answer is $\\boxed{84}$.",
    "Step 1: 90/2=45.\n\nStep 2: 45*5=225.\n\n\n\nStep 3: So it is 225 km.",
    "4·5=20.\n\n3+20=22, so\n\n\\boxed{22}",
]


def byte_bpe(words, special, bos, eos, chat, add_bos):
    corpus = PROBLEMS + LINES + PARAGRAPHS + [MATH_SYSTEM, "system user assistant", "+ -", "ки"] * 3
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    t.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=340, initial_alphabet=alphabet, show_progress=False))
    t.add_special_tokens(special)
    if add_bos:
        t.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, t.token_to_id(bos))])
    fast = PreTrainedTokenizerFast(tokenizer_object=t, bos_token=bos, eos_token=eos, pad_token=special[-1])
    fast.chat_template = chat
    return fast


def qwen_tokenizer():
    return byte_bpe(QWEN_WORDS, ["<|im_start|>", "<|im_end|>", "<extra_0>", "<|endoftext|>"], "<|endoftext|>", "<|im_end|>", CHATML, False)


def llama_tokenizer():
    special = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "[PAD]"]
    return byte_bpe(LLAMA_WORDS, special, "<|begin_of_text|>", "<|eot_id|>", LLAMA_CHAT, True)


def sentence_tokenizer(folder):
    text = folder / "corpus.txt"
    text.write_text("\n".join(PROBLEMS + LINES + PARAGRAPHS + ["Step 1: 5 + 3 - 1 ки", "+ - ки"] * 20))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "tokenizer"), vocab_size=360, model_type="bpe", byte_fallback=True,
        character_coverage=1.0, split_digits=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, hard_vocab_limit=False, minloglevel=2,
    )
    return LlamaTokenizer(vocab_file=str(folder / "tokenizer.model"), legacy=True)


def shape(config, tokenizer, **more):
    return config(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=2048, rms_norm_eps=1e-6, **more,
    )


def randomise(module, seed):
    """Weights of the size that trained ones have, exact in float16, computed with in float64."""
    g = torch.Generator().manual_seed(seed)
    module.double().eval()
    with torch.no_grad():
        for name, p in module.named_parameters():
            noise = torch.randn(p.shape, generator=g, dtype=torch.float64)
            if "norm" in name:
                p.copy_(1 + 0.1 * noise)
            elif p.ndim == 1:
                p.copy_(0.5 * noise)
            else:
                gain = 1.5 if "q_proj" in name or "k_proj" in name else 3.0 if "score" in name or "v_head" in name else 1.0
                p.copy_(gain * noise / p.shape[-1] ** 0.5)
            p.copy_(p.half().double())
    return module


class ValueHead(nn.Module):
    """Skywork-o1-Open-PRM: one number a token (dropout is nothing at evaluation)."""

    def __init__(self, hidden):
        super().__init__()
        self.summary = nn.Linear(hidden, 1)


class Skywork(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.pretrained_model, self.v_head = Qwen2ForCausalLM(config), ValueHead(config.hidden_size)

    def forward(self, ids):
        hidden = self.pretrained_model(ids, output_hidden_states=True).hidden_states[-1]
        return torch.sigmoid(self.v_head.summary(hidden).squeeze(-1))

    def tensors(self):
        return self.pretrained_model.state_dict() | {f"v_head.{k}": v for k, v in self.v_head.state_dict().items()}


class QwenReward(nn.Module):
    """Qwen2.5-Math-PRM and -RM: Linear, ReLU, Linear."""

    def __init__(self, config, labels):
        super().__init__()
        self.model, h = Qwen2Model(config), config.hidden_size
        self.score = nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, labels))

    def forward(self, ids):
        return self.score(self.model(ids).last_hidden_state)

    def tensors(self):
        return self.state_dict()


class TokenClasses(nn.Module):
    """A *ForTokenClassification with two labels, as TRL's PRMTrainer makes."""

    def __init__(self, config):
        super().__init__()
        self.model, self.score = Qwen2Model(config), nn.Linear(config.hidden_size, 2)

    def forward(self, ids):
        return self.score(self.model(ids).last_hidden_state)

    def tensors(self):
        return self.state_dict()


def row(ids):
    return torch.tensor([ids])


def score_skywork(model, tok, problem, response):
    """The project's input: BOS, problem and newline; then each line's own tokens and the newline's."""
    newline = tok.encode("\n")[-1]
    ids, at = tok.encode(tok.bos_token + problem + "\n"), []
    for line in response.split("\n"):
        ids = ids + (tok.encode(line) if line else []) + [newline]
        if line:  # a blank line has a score too, which is no step's
            at.append(len(ids) - 1)
    return [model(row(ids))[0, i].item() for i in at]


def score_qwen_prm(model, tok, problem, response):
    steps = [s for s in response.split("\n\n") if s.strip()]
    text = tok.apply_chat_template([
        {"role": "system", "content": MATH_SYSTEM}, {"role": "user", "content": problem},
        {"role": "assistant", "content": "<extra_0>".join(steps) + "<extra_0>"},
    ], tokenize=False, add_generation_prompt=False)
    ids = tok.encode(text)
    probabilities = model(row(ids)).softmax(-1)[0]
    return [probabilities[i, 1].item() for i, t in enumerate(ids) if t == tok.convert_tokens_to_ids("<extra_0>")]


def score_trl(model, tok, problem, response):
    """The model card: for every step, problem and steps so far joined by the separator; the last token's class."""
    steps, out = [s for s in response.split("\n\n") if s.strip()], []
    for n in range(1, len(steps) + 1):
        ids = tok.encode("\n\n".join([problem, *steps[:n]]) + "\n\n")
        out.append(model(row(ids)).softmax(-1)[0, -1, 1].item())
    return out


def score_shepherd(model, tok, problem, response):
    words, tag = tok.encode("+ -")[1:], tok.encode("ки")[-1]
    text = problem + " " + "\n".join(line + " ки" for line in response.split("\n") if line)
    ids = tok.encode(text)
    probabilities = model(row(ids)).logits[:, :, words].softmax(-1)[0]
    return [probabilities[i, 0].item() for i, t in enumerate(ids) if t == tag]


def score_rlhflow(model, tok, problem, response):
    words, out, talk = [tok.encode("+")[-1], tok.encode("-")[-1]], [], []
    for i, step in enumerate(s for s in response.split("\n\n") if s.strip()):
        talk += [{"role": "user", "content": problem + " " + step if i == 0 else step}, {"role": "assistant", "content": "+"}]
        ids = tok.apply_chat_template(talk)
        out.append(model(row(ids)).logits[0, -3, words].softmax(-1)[0].item())  # -2 is the +, -1 the turn's end
    return out


def score_sequence(model, tok, problem, response):
    ids = tok.apply_chat_template([{"role": "user", "content": problem}, {"role": "assistant", "content": response}])
    logits = model(row(ids))
    logits = logits.logits if hasattr(logits, "logits") else logits[:, -1]  # the last token's
    return [logits[0, 0].item()]  # as the project has it: without bounds


def one(name, seed, make, tokenizer, score, architecture, responses, form=None):
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / name
        folder.mkdir()
        tok = tokenizer(folder) if tokenizer is sentence_tokenizer else tokenizer()
        model = randomise(make(tok), seed)
        tok.save_pretrained(folder)
        config = (getattr(model, "config", None) or getattr(model, "pretrained_model", None) or model.model)
        config = getattr(config, "config", config).to_dict() | {"architectures": [architecture]}
        (folder / "config.json").write_text(json.dumps(config))
        tensors = model.tensors() if hasattr(model, "tensors") else model.state_dict()
        save_file({k: v.half().contiguous() for k, v in tensors.items()}, folder / "model.safetensors")
        convert(folder, HERE / f"{name}.gguf", form=form)
        with torch.no_grad():
            cases = [
                {"problem": p, "response": r, "scores": [round(s, 7) for s in score(model, tok, p, r)]}
                for p, r in zip(PROBLEMS, responses)
            ]
    return {"model": f"{name}.gguf", "cases": cases}


def main():
    torch.set_default_dtype(torch.float64)
    golden = [
        one("skywork-prm", 1, lambda t: Skywork(shape(Qwen2Config, t, tie_word_embeddings=True)), qwen_tokenizer, score_skywork, "Qwen2ForPrmModel", LINES),
        one("qwen-prm", 2, lambda t: QwenReward(shape(Qwen2Config, t), 2), qwen_tokenizer, score_qwen_prm, "Qwen2ForProcessRewardModel", PARAGRAPHS),
        one("trl-prm", 3, lambda t: TokenClasses(shape(Qwen2Config, t)), qwen_tokenizer, score_trl, "Qwen2ForTokenClassification", PARAGRAPHS),
        one("math-shepherd", 4, lambda t: MistralForCausalLM(shape(MistralConfig, t)), sentence_tokenizer, score_shepherd,
            "MistralForCausalLM", LINES, "math-shepherd"),
        one("rlhflow", 5, lambda t: LlamaForCausalLM(shape(LlamaConfig, t, rope_theta=500000.0, rope_scaling=LLAMA31)), llama_tokenizer, score_rlhflow,
            "LlamaForCausalLM", PARAGRAPHS, "rlhflow"),
        one("sequence-llama", 6, lambda t: LlamaForSequenceClassification(shape(LlamaConfig, t, num_labels=1, pad_token_id=t.pad_token_id)),
            llama_tokenizer, score_sequence, "LlamaForSequenceClassification", PARAGRAPHS),
        one("sequence-qwen-rm", 7, lambda t: QwenReward(shape(Qwen2Config, t), 1), qwen_tokenizer, score_sequence, "Qwen2ForRewardModel", PARAGRAPHS),
    ]
    (HERE / "scores.json").write_text(json.dumps(golden, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
