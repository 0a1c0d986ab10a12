"""Writes tiny models with random weights as transformers saves them, and the logits that it gives.

    pip install torch transformers compressed-tensors
    python make.py [NAME ...]

For each model a directory, as save_pretrained writes it, with a tokenizer of 64 tokens made here; in
logits.json the logits after each of the last eight of the tokens of `TOKENS`, computed in float64 with
the values that the files hold; in tokens.json texts, and the tokens that the library makes of them.
Weights in fewer bits are packed here, or by compressed-tensors, and computed with as they read.
"""
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import torch
import transformers as t
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers.integrations.bitnet import pack_weights

HERE = Path(__file__).resolve().parent
VOCAB, HIDDEN, CONTEXT = 64, 32, 512
TOKENS = [(37 * i * i + 11 * i + 5) % VOCAB for i in range(40)]
LAST = 8
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
TEXTS = ["the rest of the test", " a tin, nine tins ", "it's <|im_start|>one  stone", "99 nets\n\nset 3", "", "tent\tonion"]
CORPUS = TEXTS + ["no one in the tent is tense", "a stone in the net", "nine ants eat tin", "it is the one that sits on it"] * 3
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CHAT = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
BASE = dict(vocab_size=VOCAB, hidden_size=HIDDEN, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=CONTEXT, rms_norm_eps=1e-5, tie_word_embeddings=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)


# --- tokenizers

def finish(tok, bos):
    if bos:
        tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    fast = t.PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    fast.chat_template = CHAT
    return fast


def byte_level(digits, nfc=False, bos=False, whole=False):
    tok = Tokenizer(models.BPE(ignore_merges=whole))
    if nfc:
        tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(WORDS % digits), "isolated"),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=VOCAB - 2, special_tokens=SPECIAL, show_progress=False))
    return finish(tok, bos)


def smollm():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, show_progress=False))
    return finish(tok, False)


def sentence_piece(gemma=False):
    """As the slow tokenizers of Llama 2 and Gemma are converted."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tok.normalizer = normalizers.Replace(" ", "▁") if gemma else normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous") if gemma else None
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer, trained.pre_tokenizer = normalizers.Replace(" ", "▁"), pre_tokenizers.Metaspace()
    bytes_ = [f"<0x{b:02X}>" for b in (9, 10, 0x33, 0x39)]
    trained.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=VOCAB - 6, special_tokens=SPECIAL, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    vocab = {w: i for w, i in model["vocab"].items() if w not in "39\n\t"}
    order = sorted(vocab, key=vocab.get)
    words = order[:len(SPECIAL)] + bytes_ + order[len(SPECIAL):]
    tok.model = models.BPE(vocab={w: i for i, w in enumerate(words)}, merges=[tuple(m) for m in model["merges"]], unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tok.add_special_tokens(SPECIAL)
    return finish(tok, True)


def unigram():
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tok.decoder = decoders.Metaspace()
    tok.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=VOCAB, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False))
    return finish(tok, False)


def word_piece():
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer, tok.pre_tokenizer = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    tok.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=VOCAB, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t.PreTrainedTokenizerFast(tokenizer_object=tok, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", mask_token="[MASK]")


# --- weights

def plain(x, low=1e-3):
    """Values that F16 and BF16 hold as they are."""
    x = torch.tensor(np.where(np.abs(x) < low, 0, x))
    return x.to(torch.bfloat16).double()


def draw(model, seed):
    rng = np.random.default_rng(seed)
    for name, p in model.named_parameters():
        x = rng.standard_normal(p.shape)
        if p.dim() == 1:
            x = 0.1 * x + (p.detach().numpy().mean() > 0.5) if "norm" in name.lower() and name.endswith("weight") else 0.4 * x
        else:
            router = name.endswith("gate.weight")
            x = x * (1 if "embed" in name else (2.5 if router else 1.3) / p.shape[-1] ** 0.5)
        p.data = plain(x)
    model._tied_weights_keys and model.config.tie_word_embeddings and model.tie_weights()
    return model


def logits(model, head=None, **more):
    with torch.no_grad():
        out = model(torch.tensor([TOKENS]), **more or dict(use_cache=False))
    x = head(out.last_hidden_state[0]) if head else out.logits[0]
    return x[-LAST:].detach().float().numpy().round(6).tolist()


def ready(model, seed):
    model = model.double().eval()
    model.config._attn_implementation = "eager"
    if hasattr(model.config, "_experts_implementation"):
        model.config._experts_implementation = "eager"
    return draw(model, seed)


def wanted(name):
    return not sys.argv[1:] or name in sys.argv[1:]


def save(model, name, tokenizer, dtype, shard="50GB"):
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(dtype).save_pretrained(folder, max_shard_size=shard)
    tokenizer.save_pretrained(folder)
    compact(folder)
    return folder


def compact(folder):
    for path in folder.glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()), ensure_ascii=False))


def stored(folder, change, **config):
    """Changes the tensors that a directory has, and its config."""
    tensors = load_file(folder / "model.safetensors")
    save_file({k: v.contiguous() for k, v in change(tensors).items()}, folder / "model.safetensors", {"format": "pt"})
    about = json.loads((folder / "config.json").read_text()) | config
    (folder / "config.json").write_text(json.dumps(about))


def ternary(model, seed, scale_of):
    """Makes all matrices of layers ternary; returns their trits and scales."""
    rng, packed = np.random.default_rng(seed), {}
    for name, p in model.named_parameters():
        if p.dim() == 2 and "layers" in name:
            trits = torch.tensor(rng.integers(-1, 2, p.shape)).double()
            scale = plain(np.array(scale_of(p.shape[-1], rng)), 0)
            packed[name] = trits, scale
    return packed


def write_packed(folder, packed, **how):
    def change(tensors):
        for name, (trits, scale) in packed.items():
            tensors[name] = pack_weights(trits.clone())
            tensors[name + "_scale"] = scale.reshape(1).to(torch.bfloat16)
        return tensors
    stored(folder, change, quantization_config=dict(quant_method="bitnet", modules_to_not_convert=["lm_head"], **how))


# --- four bits

def write_modules(name, model, tokenizer, pack, config, files, dtype):
    """Saves a model whose linear modules of layers are as pack makes them: tensors by the ends of their
    names, and the weights that these mean."""
    packed = {}

    def take(key, w):
        tensors, weights = pack(w.clone(), np.random.default_rng(len(packed) + 400))
        packed[key] = tensors
        w.copy_(weights.double())
    for key, p in model.named_parameters():
        if p.dim() == 3:  # experts, which are stored apart
            for e, w in enumerate(p.data):
                for name_, part in zip(("gate_proj", "up_proj"), w.chunk(2)) if "gate_up" in key else [("down_proj", w)]:
                    take(f"{key[:key.rindex('.')]}.{e}.{name_}", part)
        elif p.dim() == 2 and "layers" in key and not key.endswith("mlp.gate.weight"):
            take(key.removesuffix(".weight"), p.data)

    def codes(tensors):
        for key, of in packed.items():
            tensors.pop(key + ".weight", None)
            tensors |= {key + end: x for end, x in of.items()}
        return tensors
    out = logits(model)
    folder = save(model, name, tokenizer, dtype)
    stored(folder, codes, **config)
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content))
    return out


def words(codes, axis, order=range(8)):
    """Packs codes of four bits, eight an I32 along an axis, the one of order[i] in place i."""
    codes = np.moveaxis(codes, axis, -1).astype(np.uint64)
    eight = codes.reshape(*codes.shape[:-1], -1, 8)
    out = sum(eight[..., k] << np.uint64(4 * i) for i, k in enumerate(order))
    return torch.tensor(np.ascontiguousarray(np.moveaxis(out, -1, axis)).astype(np.uint32).view(np.int32))


def drawn_groups(shape, group, symmetric, rng, first=0):
    """Codes, zeros and scales of [out][in], and the weights that they mean."""
    rows, cols = shape
    codes = rng.integers(0, 16, (rows, cols))
    zeros = np.full((rows, cols // group), 8) if symmetric else rng.integers(first, first + 16, (rows, cols // group))
    scales = (rng.uniform(0.7, 1.3, zeros.shape) * 0.25 / cols ** 0.5).astype(np.float16)
    wide = lambda x: x.repeat(group, 1).astype(np.float64)
    return codes, zeros, scales, torch.tensor(wide(scales) * (codes - wide(zeros)))


def gptq(group, symmetric):
    """The layout of GPTQModel's qlinear modules: zeros are stored one below what they are."""
    def pack(w, rng):
        codes, zeros, scales, weights = drawn_groups(w.shape, group, symmetric, rng, 1)
        index = torch.arange(w.shape[1], dtype=torch.int32) // group
        return {".qweight": words(codes.T, 0), ".qzeros": words(zeros.T - 1, 1), ".scales": torch.tensor(np.ascontiguousarray(scales.T)), ".g_idx": index}, weights
    return pack


def awq(group):
    """The layout of AutoAWQ's WQLinear_GEMM."""
    def pack(w, rng):
        codes, zeros, scales, weights = drawn_groups(w.shape, group, False, rng)
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        return {".qweight": words(codes.T, 1, order), ".qzeros": words(zeros.T, 1, order), ".scales": torch.tensor(np.ascontiguousarray(scales.T))}, weights
    return pack


def compressed(scheme, scales_of):
    """As compressed-tensors packs, and unpacks, a module."""
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8

    def pack(w, rng):
        format_ = "nvfp4-pack-quantized" if scheme.weights.type == "float" else "pack-quantized"
        packer = BaseCompressor.get_value_from_registry(format_)
        tensors = packer.compress(dict(weight=w.float()) | scales_of(w, rng), scheme)
        weights = packer.decompress(dict(tensors), scheme)["weight"]
        if format_.startswith("nvfp4"):  # which it rounds to bfloat16
            values = unpack_fp4_from_uint8(tensors["weight_packed"], *w.shape, dtype=torch.float32).double()
            values *= (tensors["weight_scale"].double() / tensors["weight_global_scale"].double()).repeat_interleave(16, 1)
            assert torch.allclose(values, weights.double(), rtol=0.01)
            weights = values
        return {"." + k: v for k, v in tensors.items()}, weights
    return pack


def nvfp4_scales(w, rng):
    """As NVIDIA's recipe has them: the whole is a multiple that makes the largest scale 448."""
    whole = torch.tensor([448 * 6 / w.abs().max()], dtype=torch.float32)
    blocks = w.float().reshape(w.shape[0], -1, 16).abs().amax(-1) / 6
    return dict(weight_scale=(blocks * whole).to(torch.float8_e4m3fn).float(), weight_global_scale=whole)


def model_opt(w, rng):
    """The layout of NVIDIA's ModelOpt: the whole is what scales are multiplied with."""
    of = nvfp4_scales(w, rng)
    levels = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    scale, whole = of["weight_scale"], 1 / of["weight_global_scale"]
    blocks = (w.float().reshape(w.shape[0], -1, 16) / (scale * whole)[..., None]).reshape(w.shape)
    codes = (blocks.abs()[..., None] - levels).abs().argmin(-1)
    weights = levels[codes] * blocks.sign() * (scale.double() * whole.double()).repeat_interleave(16, 1)
    codes = (codes + 8 * (blocks < 0)).to(torch.uint8)
    return {".weight": codes[:, ::2] | codes[:, 1::2] << 4, ".weight_scale": scale.to(torch.float8_e4m3fn), ".weight_scale_2": whole.squeeze(),
            ".input_scale": torch.tensor(0.02)}, weights


def four_bits(qwen, llama3):
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
    from compressed_tensors.quantization.utils import calculate_qparams

    small = BASE | dict(hidden_size=64, intermediate_size=64, num_hidden_layers=1)
    experts = dict(head_dim=16, moe_intermediate_size=64, num_experts=3, num_experts_per_tok=2, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])
    scheme = lambda **args: QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**args))
    floats = scheme(num_bits=4, type="float", strategy="tensor_group", group_size=16)
    integers = scheme(num_bits=4, type="int", strategy="group", group_size=32, symmetric=False)

    def integer_scales(w, rng):
        blocks = w.float().reshape(w.shape[0], -1, 32)
        scale, zero = calculate_qparams(blocks.amin(-1), blocks.amax(-1), integers.weights)
        return dict(weight_scale=scale.half().float(), weight_zero_point=zero)

    groups = lambda s: dict(group_0=json.loads(s.model_dump_json()))
    config = lambda method, **more: dict(quantization_config=dict(quant_method=method, **more))
    gptq_config = lambda group, sym: config("gptq", bits=4, group_size=group, sym=sym, desc_act=False, checkpoint_format="gptq")
    nvidia = {"hf_quant_config.json": dict(producer=dict(name="modelopt"), quantization=dict(quant_algo="NVFP4", group_size=16, exclude_modules=["lm_head"]))}
    seeded = lambda model, seed: ready(model, seed)
    return {
        "nvfp4": (seeded(t.Qwen3ForCausalLM(t.Qwen3Config(**small, head_dim=16)), 330), qwen, compressed(floats, nvfp4_scales), torch.bfloat16,
                  config("compressed-tensors", format="nvfp4-pack-quantized", config_groups=groups(floats)), {}),
        "nvfp4-modelopt": (seeded(t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**small, **experts)), 331), qwen, model_opt, torch.bfloat16, {}, nvidia),
        "w4a16": (seeded(t.Qwen3ForCausalLM(t.Qwen3Config(**small, head_dim=16)), 332), qwen, compressed(integers, integer_scales), torch.bfloat16,
                  config("compressed-tensors", format="pack-quantized", config_groups=groups(integers)), {}),
        "gptq": (seeded(t.LlamaForCausalLM(t.LlamaConfig(**small)), 333), llama3, gptq(64, True), torch.float16, gptq_config(64, True), {}),
        "gptq-asymmetric": (seeded(t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**small, **experts)), 334), qwen, gptq(32, False), torch.float16, gptq_config(32, False), {}),
        "awq": (seeded(t.Qwen2ForCausalLM(t.Qwen2Config(**small | dict(hidden_size=128, intermediate_size=128, tie_word_embeddings=True))), 335), qwen, awq(128),
                torch.float16, config("awq", bits=4, group_size=128, version="gemm", zero_point=True), {}),
    }


# --- models

def main():
    t.logging.set_verbosity_error()
    results, texts = ({}, {}) if not sys.argv[1:] else (json.loads((HERE / f).read_text()) for f in ("logits.json", "tokens.json"))
    qwen, llama3, llama2, gemma = byte_level("", nfc=True), byte_level("{1,3}", bos=True, whole=True), sentence_piece(), sentence_piece(True)
    plain_rope = dict(rope_type="default", rope_theta=10000.0)
    window = dict(sliding_window=12, layer_types=["sliding_attention", "full_attention"])
    dense = [
        ("llama", t.LlamaForCausalLM(t.LlamaConfig(**BASE | dict(tie_word_embeddings=True), rope_parameters=dict(rope_type="llama3", rope_theta=500000.0,
            factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32))), llama3, torch.bfloat16),
        ("mistral", t.MistralForCausalLM(t.MistralConfig(**BASE, head_dim=16, sliding_window=None)), llama2, torch.bfloat16),
        ("qwen2", t.Qwen2ForCausalLM(t.Qwen2Config(**BASE, rope_parameters=dict(rope_type="yarn", factor=4.0, rope_theta=1e6, original_max_position_embeddings=32))), qwen, torch.float16),
        ("qwen3", t.Qwen3ForCausalLM(t.Qwen3Config(**BASE | dict(num_hidden_layers=1), head_dim=16)), qwen, torch.float32),
        ("qwen3_moe", t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(**BASE, head_dim=8, moe_intermediate_size=16, num_experts=4, num_experts_per_tok=2,
            norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])), qwen, torch.bfloat16),
        ("gemma2", t.Gemma2ForCausalLM(t.Gemma2Config(**BASE | dict(tie_word_embeddings=True), head_dim=8, query_pre_attn_scalar=8, **window)), gemma, torch.bfloat16),
        ("gemma3", t.Gemma3ForCausalLM(t.Gemma3TextConfig(**BASE | dict(tie_word_embeddings=True), head_dim=8, query_pre_attn_scalar=8, **window,
            rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=1e6), sliding_attention=plain_rope))), gemma, torch.bfloat16),
        ("phi3", t.Phi3ForCausalLM(t.Phi3Config(**BASE, original_max_position_embeddings=32, rope_parameters=dict(rope_type="longrope", rope_theta=10000.0,
            short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 1.5, 2.0, 4.0]))), llama2, torch.bfloat16),
        ("smollm3", t.SmolLM3ForCausalLM(t.SmolLM3Config(**BASE | dict(num_hidden_layers=4), no_rope_layer_interval=4)), smollm(), torch.bfloat16),
        ("olmo2", t.Olmo2ForCausalLM(t.Olmo2Config(**BASE)), qwen, torch.bfloat16),
        ("granite", t.GraniteForCausalLM(t.GraniteConfig(**BASE, embedding_multiplier=3.0, residual_multiplier=0.5, attention_multiplier=0.4, logits_scaling=2.0)), unigram(), torch.bfloat16),
    ]
    for seed, (name, model, tokenizer, dtype) in enumerate(dense):
        if not wanted(name):
            continue
        model = ready(model, 200 + seed)
        results[name] = logits(model)
        save(model, name, tokenizer, dtype, shard="40KB" if name == "qwen3" else "50GB")
        texts[name] = [dict(text=s, ids=tokenizer(s)["input_ids"]) for s in TEXTS]

    # Encoders, whose hidden states are held, and how sentence-transformers makes vectors of them.
    pieces, small = word_piece(), dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=None, eos_token_id=None)
    for seed, (name, model, tokenizer) in enumerate([
        ("bert", t.BertModel(t.BertConfig(**small)), pieces),
        ("xlm-roberta", t.XLMRobertaModel(t.XLMRobertaConfig(**small | dict(pad_token_id=1))), unigram()),
        ("nomic_bert", t.NomicBertModel(t.NomicBertConfig(**small)), pieces),
        ("modernbert", t.ModernBertModel(t.ModernBertConfig(**small, global_attn_every_n_layers=2, local_attention=12, cls_token_id=2, sep_token_id=3)), byte_level("", nfc=True)),
    ]):
        if not wanted(name):
            continue
        model = ready(model, 250 + seed)
        at = dict(position_ids=torch.arange(2, 2 + len(TOKENS))[None]) if name == "xlm-roberta" else {}  # which would pass over padding among the tokens
        results[name] = logits(model, lambda x: x, **at)
        folder = save(model, name, tokenizer, torch.bfloat16)
        texts[name] = [dict(text=s, ids=tokenizer(s)["input_ids"]) for s in TEXTS]
        if name != "bert":
            continue
        (folder / "modules.json").write_text(json.dumps([dict(idx=i, name=str(i), path=path, type="sentence_transformers.models." + kind)
            for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])]))
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling/config.json").write_text(json.dumps(dict(word_embedding_dimension=HIDDEN, pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)))
    if sys.argv[1:]:
        return note(results, texts)

    # Weights in fewer bits: as BitNet b1.58 2B4T (times the scale), as Falcon-E (by the scale), FP8.
    wide = BASE | dict(hidden_size=128, intermediate_size=128, num_hidden_layers=1, tie_word_embeddings=True)
    for name, model, times, how in [
        ("bitnet", t.BitNetForCausalLM(t.BitNetConfig(**wide)), True, dict(linear_class="autobitlinear", quantization_mode="offline")),
        ("falcon-e", t.LlamaForCausalLM(t.LlamaConfig(**BASE)), False, {}),
    ]:
        model = ready(model, 300)
        packed = ternary(model, 301, lambda n, rng: rng.uniform(1.2, 2.2) / n ** 0.5 if times else n ** 0.5 / rng.uniform(1.2, 2.2))
        for key, (trits, scale) in packed.items():
            model.get_parameter(key).data = trits * scale if times else trits / scale
        results[name] = logits(model)
        write_packed(save(model, name, llama3, torch.bfloat16), packed, **how)

    model = ready(t.Qwen3ForCausalLM(t.Qwen3Config(**BASE, head_dim=16)), 310)
    codes = {}
    for key, p in model.named_parameters():
        if p.dim() == 2 and "layers" in key:
            x = (p.data * 64).to(torch.float8_e4m3fn)
            scale = torch.tensor(np.random.default_rng(len(codes)).uniform(0.01, 0.02, (-(-p.shape[0] // 16), -(-p.shape[1] // 16))), dtype=torch.float32)
            codes[key] = x, scale
            p.data = x.double() * scale.double().repeat_interleave(16, 0)[:p.shape[0]].repeat_interleave(16, 1)[:, :p.shape[1]]
    results["fp8"] = logits(model)

    def eight_bits(tensors):
        for key, (x, scale) in codes.items():
            tensors[key], tensors[key + "_scale_inv"] = x, scale
        return tensors
    stored(save(model, "fp8", qwen, torch.bfloat16), eight_bits, quantization_config=dict(quant_method="fp8", weight_block_size=[16, 16]))

    for name, (model, tokenizer, pack, change, config, files) in four_bits(qwen, llama3).items():
        results[name] = write_modules(name, model, tokenizer, pack, config, files, change)

    # The head of Qwen2.5-Math-PRM in place of that of the vocabulary.
    model = ready(t.Qwen2Model(t.Qwen2Config(**BASE)), 320)
    head = torch.nn.Sequential(torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 2)).double()
    rng = np.random.default_rng(321)
    for p in head.parameters():
        p.data = plain(rng.standard_normal(p.shape) / HIDDEN ** 0.5)
    results["qwen-prm"] = logits(model, head)
    stored(save(model, "qwen-prm", qwen, torch.bfloat16), lambda tensors: {("model." + k): v for k, v in tensors.items()} |
           {"score." + k: v.to(torch.bfloat16) for k, v in head.state_dict().items()}, architectures=["Qwen2ForProcessRewardModel"])

    note(results, texts)


def note(results, texts):
    (HERE / "logits.json").write_text("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in results.items()) + "\n}\n")
    (HERE / "tokens.json").write_text("{\n" + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in texts.items()) + "\n}\n")


main()
