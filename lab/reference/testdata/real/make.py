"""Makes the references that TestPublicModels* compare with: ids and log probabilities that transformers
gives in float32, what llama.cpp gives beside them, greedy answers, sentence vectors, ids of odd strings, and
digests of the files that llama.cpp quantises.

    python make.py CACHE [logits|greedy|vectors|strings|quantised]...

CACHE is the folder that .ci/real fills. Wants torch, transformers, accelerate, gguf and llama-cpp-python.
Nothing of Lutra is used.
"""

import base64, ctypes, gzip, hashlib, json, pathlib, random, struct, sys, tempfile, zlib

import numpy as np

HERE = pathlib.Path(__file__).parent
CACHE = pathlib.Path(sys.argv[1])
MODELS = ["smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"]
KEPT = 16  # log probabilities a position; all others are one rest
TOKENS = 96  # of a text, at the most
GREEDY = 40  # tokens of an answer


def write(name, value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    (HERE / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def load(name):
    import torch, transformers

    torch.set_grad_enabled(False)
    file = f"{name}.gguf"
    tok = transformers.AutoTokenizer.from_pretrained(CACHE, gguf_file=file)
    model = transformers.AutoModelForCausalLM.from_pretrained(CACHE, gguf_file=file, dtype=torch.float32)
    return tok, model.eval()


def ids_of(tok, text):
    if "text" in text:
        return tok(text["text"])["input_ids"][:TOKENS]
    messages = text["messages"]
    if tok.chat_template:
        return tok.apply_chat_template(messages, return_dict=False)[:TOKENS]
    return tok("\n".join(f"{m['role']}: {m['content']}" for m in messages))["input_ids"][:TOKENS]


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def kept(logits):
    """The KEPT largest log probabilities of each row, in units of 1e-4."""
    lp = log_softmax(logits)
    top = np.argsort(-lp, -1, kind="stable")[:, :KEPT]
    return top, np.take_along_axis(lp, top, -1)


def divergence(top, p, logits):
    """KL(reference || logits), all but the KEPT tokens being one."""
    q = np.take_along_axis(log_softmax(logits), top, -1)
    rest_p = np.maximum(1 - np.exp(p).sum(-1), 1e-9)
    rest_q = np.maximum(1 - np.exp(q).sum(-1), 1e-9)
    return (np.exp(p) * (p - q)).sum(-1) + rest_p * (np.log(rest_p) - np.log(rest_q))


def llama(name, **options):
    import llama_cpp

    return llama_cpp.Llama(str(CACHE / f"{name}.gguf"), n_ctx=512, n_batch=512, n_threads=2, logits_all=True, verbose=False, **options)


def logits():
    import torch

    texts = json.loads((HERE / "texts.json").read_text())
    for name in MODELS:
        tok, model = load(name)
        of, rows = [], []
        for text in texts:
            ids = ids_of(tok, text)
            top, p = kept(model(torch.tensor([ids])).logits[0].numpy())
            rows.append((ids, top, p))
            of.append({"name": text["name"], "ids": ids, "top": top.tolist(), "logprobs": np.rint(p * -1e4).astype(int).tolist()})
        del model
        peer = llama(name)
        kl, same = [], []
        for ids, top, p in rows:
            peer.reset()
            peer.eval(ids)
            got = np.array(peer.scores[: len(ids)])
            kl.append(divergence(top, np.rint(p * 1e4) / 1e4, got))
            same.append(got.argmax(-1) == top[:, 0])
        kl, same = np.concatenate(kl), np.concatenate(same)
        summary = {"positions": len(kl), "kl": float(kl.mean()), "median": float(np.median(kl)), "p99": float(np.quantile(kl, 0.99)), "top1": float(same.mean())}
        print(name, "llama.cpp:", summary)
        write(f"{name}.logits.json.gz", {"peer": summary, "texts": of})


def greedy():
    import torch

    questions = json.loads((HERE / "questions.json").read_text())
    for name in MODELS:
        tok, model = load(name)
        out, equal = [], 0
        for q in questions:
            if tok.chat_template:
                ids = tok.apply_chat_template([{"role": "user", "content": q}], add_generation_prompt=True, return_dict=False)
            else:
                ids = tok(f"Question: {q}\nAnswer:")["input_ids"]
            got = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=GREEDY, output_logits=True, return_dict_in_generate=True,
                                 temperature=None, top_p=None, top_k=None, eos_token_id=tok.eos_token_id)
            lp = log_softmax(torch.stack(got.logits)[:, 0].numpy())
            two = np.sort(lp, -1)[:, -2:]
            out.append({"prompt": ids, "answer": got.sequences[0, len(ids):].tolist(), "lead": np.round(two[:, 1] - two[:, 0], 3).tolist()})
        del model
        peer = llama(name)
        for o in out:
            peer.reset()
            answer = []
            for t in peer.generate(o["prompt"], temp=0, repeat_penalty=1.0):
                answer.append(t)
                if len(answer) == len(o["answer"]):
                    break
            equal += answer == o["answer"]
        print(name, "llama.cpp: equal to float32", equal, "of", len(out))
        write(f"{name}.greedy.json.gz", {"peer": equal, "answers": out})


def vectors():
    import torch, transformers

    torch.set_grad_enabled(False)
    tok = transformers.AutoTokenizer.from_pretrained(CACHE / "minilm")
    model = transformers.AutoModel.from_pretrained(CACHE / "minilm", dtype=torch.float32).eval()
    texts = json.loads((HERE / "questions.json").read_text()) + [t["text"] for t in json.loads((HERE / "texts.json").read_text()) if "text" in t]
    out = []
    for text in texts:
        x = tok(text, return_tensors="pt", truncation=True, max_length=256)
        mean = model(**x).last_hidden_state[0].mean(0)
        out.append({"text": text, "ids": x["input_ids"][0].tolist(), "vector": [round(v, 6) for v in (mean / mean.norm()).tolist()]})
    write("minilm.json.gz", out)


def odd_strings(n=2000):
    """Strings that tokenizers cut in many ways: scripts, marks, digits, blanks, code, controls."""
    r = random.Random(20261128)
    words = ("the Harbour can't WE'LL naïve Straße Ελλάδα привет мир שלום سلام नमस्ते 你好世界 こんにちは 안녕하세요 ไทย Tiếng "
             "x1 3.14159 1234567 0x7f 1e-9 -42 ½ Ⅳ ² ﬁ K Å e\u0301 \u1e9b\u0323 I\u0307 ǆ 👩‍👩‍👧‍👦 🏳️‍🌈 ❤️ €9.99 foo_bar fooBar HTTPServer "
             "</s> <|im_start|> <bos> [INST] <0x41> ▁ Ġ #include a+=b; ->* :: // /* */ {{}} [[]] \"'\" `` … — “q” ¿? !!! ??? ....... ----- =====").split(" ")
    blanks = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \t ", "\u00a0", "\u3000", "\u200b", "", "", "", "\u2028", " \n", "\n "]
    out = []
    while len(out) < n:
        k = r.choice([1, 2, 3, 4, 6, 9])
        s = "".join(r.choice(blanks) + (r.choice(words) if r.random() < 0.8 else chr(r.choice([r.randrange(1, 0x250), r.randrange(0x250, 0xd800), r.randrange(0xe000, 0x20000)]))) for _ in range(k)) + r.choice(blanks)
        if s and s not in out:
            out.append(s)
    return out


def sums(encode, strings):
    """16 bits for the ids of each string."""
    crc = [zlib.crc32(struct.pack(f"<{len(ids)}i", *ids)) & 0xFFFF for ids in map(encode, strings)]
    return base64.b64encode(struct.pack(f"<{len(crc)}H", *crc)).decode()


def rebuilt(name):
    """The tokenizer of a GGUF file by the rules that the model's authors publish: transformers gives all
    byte-level BPE of GGUF files those of Llama 3."""
    import gguf, tokenizers
    from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers

    fields = gguf.GGUFReader(CACHE / f"{name}.gguf").fields
    tokens, kinds = (fields[f"tokenizer.ggml.{key}"].contents() for key in ["tokens", "token_type"])
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    tok = tokenizers.Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, merges))
    if name == "smollm2":
        tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    else:  # Qwen2
        words = Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
        tok.normalizer = normalizers.NFC()
        tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(words, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t, k in zip(tokens, kinds) if k == 3])
    tok.add_tokens([AddedToken(t, normalized=False) for t, k in zip(tokens, kinds) if k == 4])
    return tok


def strings():
    import tokenizers

    odd = odd_strings()
    out = {"strings": odd, "tokenizers": {}}
    for name in ["smollm2", "qwen2.5-coder-1.5b"]:
        tok = rebuilt(name)
        out["tokenizers"][f"{name}.gguf"] = sums(lambda s: tok.encode(s, add_special_tokens=False).ids, odd)
    for file in sorted(CACHE.glob("tokenizers/*/tokenizer.json")):
        tok = tokenizers.Tokenizer.from_file(str(file))
        out["tokenizers"][file.parent.name] = sums(lambda s: tok.encode(s, add_special_tokens=False).ids, odd)
    tok = tokenizers.Tokenizer.from_file(str(CACHE / "minilm/tokenizer.json"))
    tok.no_truncation(), tok.no_padding()
    out["tokenizers"]["minilm"] = sums(lambda s: tok.encode(s, add_special_tokens=False).ids, odd)
    # Gemma's published tokenizer is that of its GGUF.
    write("strings.json.gz", out)


def quantised():
    """SHA-256 over the matrices of some layers of what llama.cpp makes of SmolLM2, in the order of their names."""
    import gguf, llama_cpp

    out = {}
    for typ in ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "IQ4_XS", "TQ1_0", "TQ2_0"]:
        p = llama_cpp.llama_model_quantize_default_params()
        p.ftype, p.allow_requantize, p.nthread = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{typ}"), True, 2
        with tempfile.NamedTemporaryFile(suffix=".gguf") as f:
            if llama_cpp.llama_model_quantize(str(CACHE / "smollm2.gguf").encode(), f.name.encode(), ctypes.byref(p)):
                raise SystemExit(f"{typ}: llama.cpp cannot")
            h = hashlib.sha256()
            for t in sorted(gguf.GGUFReader(f.name).tensors, key=lambda t: t.name):
                if not t.name.startswith(("blk.0.", "blk.7.", "blk.29.")):
                    continue
                h.update(t.name.encode() + t.tensor_type.name.encode() + t.data.tobytes())
            out[typ] = h.hexdigest()
            print(typ, out[typ])
    (HERE / "quantised.json").write_text(json.dumps(out, indent=1) + "\n")


for step in sys.argv[2:] or ["logits", "greedy", "vectors", "strings", "quantised"]:
    globals()[step]()
