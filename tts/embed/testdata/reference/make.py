"""Makes tiny random models, and the vectors and scores that transformers and
sentence-transformers give for them.

    python3 tts/embed/testdata/reference/make.py [NAME ...]

Made with Python 3.11, torch 2.15.0, transformers 5.23.0, sentence-transformers 6.2.0,
tokenizers 0.23.3, gguf 0.19.0 and sentencepiece 0.2.3 on a CPU, with the seeds below.
Weights are random, vocabularies trained on the sentences below. Tensors and keys have the
names that llama.cpp's converter gives them, through the tables of the gguf package.

NAME.gguf has a model with the head that ranks, and NAME-ranker is it as transformers saves it; a test that wants
vectors leaves the head out. NAME.json has texts with token ids, hidden states and vectors, and pairs with scores.
gemma-embedding.gguf has Dense modules in place of a head (transformers 5.24.0), and gemma-embedding is
the same model as sentence-transformers saves it.
"""
import itertools, json, os, shutil, sys, tempfile

import gguf
import numpy as np
import sentencepiece
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoModel, BertConfig, BertForSequenceClassification, BertTokenizer, Gemma3TextConfig, Gemma3TextModel, ModernBertConfig, ModernBertForSequenceClassification,
    NomicBertConfig, NomicBertModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
)

HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN, HEADS, FFN, CONTEXT = 32, 2, 48, 640
SENTENCES = """the cat sat on the mat and the dog ran over the bridge
a river runs through the old town, where otters play in the evening
yes or no: can the answer be given? yes, it can; no, it cannot
how far is it to the sea? it is about 12 miles, or 19 kilometres
otters are able to run, to swim and to dive for fish in cold rivers
user system assistant Query Document Instruct Judge whether the document meets the requirements""".split("\n")
TEXTS = [
    "the cat sat on the mat", "A dog ran!", "Unable, playing; \u4e2d\u6587 Caf\u00e9s?", "x", "zebra quux 123 $5 -- \u00fcber-runs",
    "yes,  the  otter (a river animal) dives  for fish.",
    "\uff2f\uff54\uff54\uff45\uff52\u00a0\ufb01sh, cafe\u0301  \u2153 of it",
]
REPEATED = "the cat ran, the dog sat."  # until the context is nearly full
HIDDEN_STATES = 3  # of so many texts
PAIRS = [
    ("how far is the sea?", "it is about 12 miles"), ("how far is the sea?", "the otter plays in the evening"), ("x", "y"),
    ("Can otters swim?", "Otters are able to run, to swim and to dive; " * 6),
]


def randomise(model, seed):
    """Weights as large as those of trained models; matrices are float16 numbers."""
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if p.ndim > 1:
            w = torch.randn(p.shape, generator=g) * (1.0 if "embedding" in name.lower() or "embed_tokens" in name else 1.5 / p.shape[1] ** 0.5)
            p.data = w.half().float()
        else:
            w = 0.2 * torch.randn(p.shape, generator=g)
            one = not name.endswith("norm.weight") or "Gemma" in type(model).__name__  # which adds one itself
            p.data = w if one and "Norm.weight" not in name else w + 1
    return model.eval()


def bpe(words, specials):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False) if words is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(SENTENCES * 4, trainers.BpeTrainer(vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([AddedToken(s, special=True) for s in specials])
    return t


def write_vocab(w, t, kind, tokens=None, scores=None, types=None):
    size = t.get_vocab_size() if tokens is None else len(tokens)
    if tokens is None:
        tokens = [t.id_to_token(i) for i in range(size)]
        added = {i for i in t.get_added_tokens_decoder()}
        types = [3 if i in added else 1 for i in range(size)]
    w.add_tokenizer_model(kind)
    w.add_token_list(tokens)
    if scores is not None:
        w.add_token_scores(scores)
    w.add_token_types(types)
    if kind == "gpt2":
        merges = json.loads(t.to_str())["model"]["merges"]
        w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])


def write(w, state, layers, arch):
    names = gguf.get_tensor_name_map(arch, layers)
    for name, x in state.items():
        new = name if name.startswith(("blk.", "cls.", "token_embd", "token_types")) else names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert new, name
        x = x.detach().numpy()
        w.add_tensor(new, x.astype(np.float16 if x.ndim > 1 else np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def begin(name, arch, layers, **more):
    w = gguf.GGUFWriter(os.path.join(HERE, name + ".gguf"), arch)
    w.add_name(name)
    w.add_block_count(layers)
    w.add_context_length(CONTEXT)
    w.add_embedding_length(HIDDEN)
    w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS)
    for key, value in more.items():
        getattr(w, "add_" + key)(value)
    return w


def numbers(x):
    return [float(f"{v:.7g}") for v in np.asarray(x, dtype=np.float64)]


def texts(folder, modes, **more):
    """What sentence-transformers makes of the texts, batched."""
    tokenizer = Transformer(folder, **more).tokenizer
    n = (CONTEXT - 20) // (len(tokenizer(REPEATED)["input_ids"]) - 1)
    cases = [{"text": t} for t in TEXTS + [" ".join([REPEATED] * n)]]
    for key, mode in modes.items():
        body = Transformer(folder, max_seq_length=CONTEXT, **more)
        st = SentenceTransformer(modules=[body, Pooling(HIDDEN, mode), Normalize()], device="cpu")
        for c, v in zip(cases, st.encode([c["text"] for c in cases], batch_size=4)):
            c[key] = numbers(v)
        for c in cases[:HIDDEN_STATES]:
            c["hidden"] = [numbers(row) for row in st.encode([c["text"]], output_value="token_embeddings")[0]]
        for c in cases:
            c["ids"] = tokenizer(c["text"])["input_ids"]
    return cases


def pairs(folder):
    """What sentence-transformers' cross-encoder makes of the pairs, batched."""
    ce = CrossEncoder(folder, device="cpu", max_length=CONTEXT)
    scores = ce.predict(PAIRS, activation_fn=torch.nn.Sigmoid(), batch_size=3)
    return [{"query": q, "document": d, "ids": ce.tokenizer(q, d)["input_ids"], "score": float(s)} for (q, d), s in zip(PAIRS, scores)]


def keep(name, model, tokenizer):
    """Saves a model that ranks as a directory: matrices as the float16 numbers that they are."""
    folder = os.path.join(HERE, name + "-ranker")
    shutil.rmtree(folder, ignore_errors=True)
    whole = {k: p.data for k, p in model.named_parameters()}
    for p in model.parameters():
        p.data = p.data.half() if p.ndim > 1 else p.data
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for k, p in model.named_parameters():
        p.data = whole[k]
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)


def save(name, model, tokenizer, modes, rank=True):
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        out = {"texts": texts(folder, modes)}
        if rank:
            out["pairs"] = pairs(folder)
            keep(name, model, tokenizer)
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))


ALL = {"mean": "mean", "cls": "cls", "last": "lasttoken"}


def wordpiece():
    words = "the a cat sat on mat dog ran un ##able ##ing ##s run play ##er cafe ##e ! , . ? - $ ( ) ; : river otter is it how far sea yes no 12".split()
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + list(dict.fromkeys(words + list(letters) + ["##" + c for c in letters] + ["\u4e2d"]))
    return tokens, BertTokenizer(vocab={t: i for i, t in enumerate(tokens)}, do_lower_case=True)


def write_wordpiece(w, tokens):
    phantom = [t if t[0] == "[" and t[-1] == "]" else t[2:] if t.startswith("##") else "\u2581" + t for t in tokens]
    write_vocab(w, None, "bert", phantom, None, [3 if t[0] == "[" and t[-1] == "]" else 1 for t in tokens])
    w.add_tokenizer_pre("default")
    w.add_token_type_count(2)
    for add, text in {"bos": "[CLS]", "unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}.items():
        getattr(w, f"add_{add}_token_id")(tokens.index(text))


def bert():
    tokens, tokenizer = wordpiece()
    config = BertConfig(vocab_size=len(tokens), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=FFN, max_position_embeddings=CONTEXT, num_labels=1, pad_token_id=0)
    model = randomise(BertForSequenceClassification(config), 1)
    save("bert", model, tokenizer, ALL)
    w = begin("bert", "bert", 2, layer_norm_eps=1e-12, causal_attention=False, pooling_type=gguf.PoolingType.RANK)
    write_wordpiece(w, tokens)
    state = {}
    for name, x in model.state_dict().items():
        name = name.removeprefix("bert.")
        # The converter leaves the pooler out; these are the names that its graph reads it by.
        name = name.replace("pooler.dense", "cls").replace("classifier", "classifier.out_proj")
        if "position_ids" not in name:
            state[name] = x
    write(w, state, 2, gguf.MODEL_ARCH.BERT)


def nomic():
    tokens, tokenizer = wordpiece()
    model = randomise(NomicBertModel(NomicBertConfig(
        vocab_size=len(tokens), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=FFN,
        max_position_embeddings=CONTEXT)), 2)
    save("nomic-bert", model, tokenizer, ALL, rank=False)
    w = begin("nomic-bert", "nomic-bert", 2, layer_norm_eps=1e-12, causal_attention=False, pooling_type=gguf.PoolingType.MEAN, rope_freq_base=1000.0)
    write_wordpiece(w, tokens)
    s, state = model.state_dict(), {}
    for name, x in s.items():
        if name.startswith("embeddings.") and "position_ids" not in name:
            state[name] = x
    for i in range(2):
        at, to = f"layers.{i}.", f"blk.{i}."
        if at + "self_attn.q_proj.weight" not in s:
            at = "encoder." + at
        state[to + "attn_qkv.weight"] = torch.cat([s[at + f"self_attn.{c}_proj.weight"] for c in "qkv"])
        for new, old in {"attn_output": "self_attn.o_proj", "attn_output_norm": "post_attention_layernorm", "layer_output_norm": "post_mlp_layernorm",
                         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}.items():
            for suffix in (".weight", ".bias"):
                if at + old + suffix in s:
                    state[to + new + suffix] = s[at + old + suffix]
    write(w, state, 2, gguf.MODEL_ARCH.NOMIC_BERT)


def modern_bert():
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    t = bpe(None, specials)
    ID = {s: t.token_to_id(s) for s in specials}
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[(s, ID[s]) for s in ("[CLS]", "[SEP]")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=t, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]", pad_token="[PAD]", mask_token="[MASK]",
                                        model_input_names=["input_ids", "attention_mask"])
    layers, window = 5, 8
    model = randomise(ModernBertForSequenceClassification(ModernBertConfig(
        vocab_size=t.get_vocab_size(), hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=layers, num_attention_heads=HEADS,
        max_position_embeddings=CONTEXT, local_attention=window, pad_token_id=ID["[PAD]"], bos_token_id=ID["[CLS]"], eos_token_id=ID["[SEP]"],
        cls_token_id=ID["[CLS]"], sep_token_id=ID["[SEP]"], num_labels=1, classifier_pooling="mean")), 3)
    save("modern-bert", model, tokenizer, ALL)
    w = begin("modern-bert", "modern-bert", layers, layer_norm_eps=1e-5, causal_attention=False, pooling_type=gguf.PoolingType.RANK, rope_freq_base=160000.0,
              sliding_window=window, sliding_window_pattern=3, rope_scaling_type=gguf.RopeScalingType.NONE, vocab_size=t.get_vocab_size())
    w.add_float32("modern-bert.rope.freq_base_swa", 10000.0)
    for add in ("bos", "eos", "sep"):
        getattr(w, f"add_add_{add}_token")(True)
    write_vocab(w, t, "gpt2")
    w.add_tokenizer_pre("modern-bert")
    for add, text in {"bos": "[CLS]", "eos": "[SEP]", "unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "mask": "[MASK]"}.items():
        getattr(w, f"add_{add}_token_id")(ID[text])
    state = {}
    for name, x in model.state_dict().items():
        state[name.removeprefix("model.").replace("classifier.", "classifier.out_proj.")] = x
    write(w, state, layers, gguf.MODEL_ARCH.MODERN_BERT)


def xlm_roberta():
    with tempfile.TemporaryDirectory() as folder:
        rules, corpus, prefix = (os.path.join(folder, n) for n in ("rules.tsv", "corpus.txt", "model"))
        with open(rules, "w") as f:  # wide letters become plain, some ligatures two letters, a no-break space a space
            for c in range(26):
                print(f"{0xFF21 + c:X}\t{0x41 + c:X}", f"{0xFF41 + c:X}\t{0x61 + c:X}", sep="\n", file=f)
            print("FB01\t66 69\nFB02\t66 6C\nA0\t20\n9\t20\nA\t20\n2153\t31 2F 33\n65 301\tE9", file=f)
        open(corpus, "w").write("\n".join(SENTENCES * 3))
        sentencepiece.SentencePieceTrainer.train(input=corpus, model_prefix=prefix, vocab_size=88, model_type="unigram", normalization_rule_tsv=rules,
                                                 user_defined_symbols="$,\u00e9", minloglevel=2)
        sp = sentencepiece.SentencePieceProcessor(model_file=prefix + ".model")
        from sentencepiece import sentencepiece_model_pb2 as pb
        proto = pb.ModelProto()
        proto.ParseFromString(open(prefix + ".model", "rb").read())
    charsmap = proto.normalizer_spec.precompiled_charsmap
    # As fairseq orders them.
    vocab = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + [(sp.IdToPiece(i), sp.GetScore(i)) for i in range(3, sp.GetPieceSize())] + [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(vocab, unk_id=3))
    t.normalizer = normalizers.Precompiled(charsmap)
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.add_special_tokens([AddedToken(s, special=True) for s in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", eos_token="</s>", unk_token="<unk>", cls_token="<s>", sep_token="</s>",
                                        pad_token="<pad>", mask_token="<mask>", model_input_names=["input_ids", "attention_mask"])
    model = randomise(XLMRobertaForSequenceClassification(XLMRobertaConfig(
        vocab_size=len(vocab), hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=FFN, max_position_embeddings=CONTEXT + 2,
        type_vocab_size=1, layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2, num_labels=1)), 4)
    save("xlm-roberta", model, tokenizer, ALL)
    w = begin("xlm-roberta", "bert", 2, layer_norm_eps=1e-5, causal_attention=False, pooling_type=gguf.PoolingType.RANK)
    # The converter has a place holder for the mask, with this score.
    pieces, scores = [v[0] for v in vocab[:-1]] + [f"[PAD{sp.GetPieceSize()}]"], [v[1] for v in vocab[:-1]] + [-10000.0]
    write_vocab(w, None, "t5", pieces, scores, [3, 3, 3, 2] + [1] * (len(vocab) - 5) + [5])
    w.add_tokenizer_pre("default")
    w.add_add_space_prefix(True)
    w.add_token_type_count(1)
    w.add_remove_extra_whitespaces(True)
    w.add_precompiled_charsmap(charsmap)
    for add in ("bos", "eos", "sep"):
        getattr(w, f"add_add_{add}_token")(True)
    for add, i in {"bos": 0, "eos": 2, "unk": 3, "sep": 2, "pad": 1}.items():
        getattr(w, f"add_{add}_token_id")(i)
    state = {}
    for name, x in model.state_dict().items():
        name = name.removeprefix("roberta.")
        if "position_embeddings" in name:
            x = x[2:]  # positions are counted from the padding's id on
        if "position_ids" not in name:
            state[name] = x
    write(w, state, 2, gguf.MODEL_ARCH.BERT)


QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
PREFIX = ('<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be '
          '"yes" or "no".<|im_end|>\n<|im_start|>user\n')
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
TASK = "Given a web search query, retrieve relevant passages that answer the query"


def qwen3():
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    t = bpe(QWEN, specials)
    for word in ("yes", "no"):
        assert len(t.encode(word).ids) == 1, word
    end = t.token_to_id("<|endoftext|>")
    bare = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    model = randomise(Qwen3ForCausalLM(Qwen3Config(
        vocab_size=t.get_vocab_size(), hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=2, num_attention_heads=HEADS, num_key_value_heads=1, head_dim=24,
        max_position_embeddings=CONTEXT, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}, tie_word_embeddings=True,
        bos_token_id=end, eos_token_id=end)), 5)
    # Qwen3-Reranker, as its model card runs it.
    yes, no = t.token_to_id("yes"), t.token_to_id("no")
    ranked = []
    for q, d in PAIRS:
        ids = list(itertools.chain.from_iterable(bare(s, add_special_tokens=False)["input_ids"] for s in (
            PREFIX, f"<Instruct>: {TASK}\n<Query>: {q}\n<Document>: {d}", SUFFIX)))
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        ranked.append({"query": q, "document": d, "ids": ids, "score": float(torch.softmax(logits[[yes, no]], 0)[0])})
    # Qwen3-Embedding: the tokenizer ends each text, whose last token is its vector.
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A <|endoftext|> $B <|endoftext|>", special_tokens=[("<|endoftext|>", end)])])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|endoftext|>", pad_token="<|endoftext|>", padding_side="left")
    save("qwen3", model.model, tokenizer, {"last": "lasttoken", "mean": "mean"}, rank=False)
    path = os.path.join(HERE, "qwen3.json")
    out = json.load(open(path))
    out["pairs"] = ranked
    json.dump(out, open(path, "w"), separators=(",", ":"))
    w = begin("qwen3", "qwen3", 2, layer_norm_rms_eps=1e-6, rope_freq_base=1000000.0, head_count_kv=1, key_length=24, value_length=24,
              pooling_type=gguf.PoolingType.LAST)
    write_vocab(w, t, "gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_eos_token_id(end)
    w.add_pad_token_id(end)
    w.add_add_bos_token(False)
    w.add_add_eos_token(True)
    state = {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}
    state["cls.output.weight"] = torch.stack([model.lm_head.weight[yes], model.lm_head.weight[no]])
    write(w, state, 2, gguf.MODEL_ARCH.QWEN3)


def spaced_bpe():
    """As Gemma's: SentencePiece's BPE with bytes, whose merges are all pairs that make a token."""
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.normalizer, trained.pre_tokenizer = normalizers.Replace(" ", "\u2581"), pre_tokenizers.Metaspace()
    trained.train_from_iterator(SENTENCES * 4, trainers.BpeTrainer(vocab_size=160, show_progress=False))
    made = json.loads(trained.to_str())["model"]
    specials = ["<pad>", "<eos>", "<bos>", "<unk>"]
    words = [w for w in sorted(made["vocab"], key=made["vocab"].get) if w not in specials]
    tokens = specials + [f"<0x{b:02X}>" for b in range(256)] + words
    number = {w: i for i, w in enumerate(tokens)}
    pairs = [(number[w], w[:i], w[i:]) for w in words for i in range(1, len(w)) if w[:i] in number and w[i:] in number]
    t = Tokenizer(models.BPE(vocab=number, merges=[(a, b) for _, a, b in sorted(pairs)], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer, t.pre_tokenizer = normalizers.Replace(" ", "\u2581"), pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_special_tokens([AddedToken(s, special=True) for s in specials])
    t.post_processor = processors.TemplateProcessing(single="<bos> $A <eos>", special_tokens=[("<bos>", 2), ("<eos>", 1)])
    return tokens, t


def gemma_embedding():
    name, layers, window, width = "gemma-embedding", 6, 8, 16
    tokens, t = spaced_bpe()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>")
    types = ["sliding_attention"] * 5 + ["full_attention"]
    bases = dict(full_attention=dict(rope_type="default", rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=1e4))
    model = randomise(Gemma3TextModel(Gemma3TextConfig(
        vocab_size=len(tokens), hidden_size=HIDDEN, intermediate_size=FFN, num_hidden_layers=layers, num_attention_heads=HEADS, num_key_value_heads=1, head_dim=width,
        query_pre_attn_scalar=width, max_position_embeddings=CONTEXT, sliding_window=window, use_bidirectional_attention=True, layer_types=types, rope_parameters=bases,
        pad_token_id=0, eos_token_id=1, bos_token_id=2)), 6).half().float()  # norms too, as the folder has them
    save(name, model, tokenizer, {"mean": "mean"}, rank=False)
    path, folder = os.path.join(HERE, name + ".json"), os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    identity = torch.nn.Identity()
    dense = [Dense(HIDDEN, 3 * HIDDEN, bias=False, activation_function=identity), Dense(3 * HIDDEN, 24, bias=False, activation_function=identity)]
    for i, d in enumerate(dense):
        randomise(d, 7 + i)
    with tempfile.TemporaryDirectory() as whole:
        model.save_pretrained(whole)
        tokenizer.save_pretrained(whole)
        body = Transformer(whole, max_seq_length=CONTEXT)
        st = SentenceTransformer(modules=[body, Pooling(HIDDEN, "mean"), *dense, Normalize()], device="cpu")
        out = json.load(open(path))
        for c, v in zip(out["texts"], st.encode([c["text"] for c in out["texts"]], batch_size=4)):
            c["dense"] = numbers(v)
        json.dump(out, open(path, "w"), separators=(",", ":"))
        st.half().save(folder, create_model_card=False)
        for root, _, files in os.walk(folder):
            for f in files:
                if f.endswith(".safetensors"):
                    os.chmod(os.path.join(root, f), 0o644)
        for unread in ("sentence_bert_config.json", "config_sentence_transformers.json"):
            os.remove(os.path.join(folder, unread))
    w = begin(name, "gemma-embedding", layers, layer_norm_rms_eps=1e-6, rope_freq_base=1e6, head_count_kv=1, key_length=width, value_length=width,
              sliding_window=window, pooling_type=gguf.PoolingType.MEAN)
    w.add_dense_features_dims("dense_2", HIDDEN, 3 * HIDDEN)
    w.add_dense_features_dims("dense_3", 3 * HIDDEN, 24)
    write_vocab(w, None, "llama", tokens, [-1000.0 if i < 260 else float(260 - i) for i in range(len(tokens))],
                [3, 3, 3, 2] + [6] * 256 + [1] * (len(tokens) - 260))
    w.add_tokenizer_pre("default")
    for add, i in {"bos": 2, "eos": 1, "unk": 3, "pad": 0}.items():
        getattr(w, f"add_{add}_token_id")(i)
    w.add_add_bos_token(True)
    w.add_add_eos_token(True)
    w.add_add_space_prefix(False)
    state = {k: v + 1 if k.endswith("norm.weight") else v for k, v in model.state_dict().items()}
    state |= {f"dense_{2 + i}.weight": d.linear.weight.float() for i, d in enumerate(dense)}
    write(w, state, layers, gguf.MODEL_ARCH.GEMMA_EMBEDDING)


for make in (bert, nomic, modern_bert, xlm_roberta, qwen3, gemma_embedding):
    if not sys.argv[1:] or make.__name__ in sys.argv[1:]:
        make()
        print(make.__name__)
