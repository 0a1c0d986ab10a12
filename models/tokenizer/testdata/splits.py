"""Writes splits.json: how Hugging Face's tokenizers (PyPI, 0.23.3) splits texts by the
patterns that published tokenizers have, stage by stage, and what its NFC gives.

    python splits.py > splits.json
"""

import json
import random

from tokenizers import Regex, normalizers, pre_tokenizers

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + TAIL
U, L = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"


def cased(upper, lower, digits, ends):
    lead, c = r"[^\r\n\p{L}\p{N}]?", CONTRACTIONS + "?"
    return (f"{lead}[{upper}]*[{lower}]+{c}|{lead}[{upper}]+[{lower}]*{c}|{digits}"
            + r"| ?[^\s\p{L}\p{N}]+" + ends + "|" + TAIL)


GPT4O = cased(U, L, r"\p{N}{1,3}", r"[\r\n/]*")
HAN = r"&&[^\p{Han}]"
KANA = "[一-龥぀-ゟ゠-ヿ]+"
PUNCT = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
V3 = [r"\p{N}{1,3}", KANA, PUNCT + r"[\r\n]*|" + TAIL]
THREES = r"\d{1,3}(?=(?:\d{3})*\b)"
# Trinity's scripts, as ranges.
SCRIPTS = ("[一-鿿㐀-䶿豈-\uFAFF぀-ゟ゠-ヿ･-ﾟ⼀-\u2FDF\u0E40-\u0E7F\u0E80-\u0EFF\u1780-\u17FF\u1000-\u109F"
           "\uAA60-\uAA7F\uA9E0-\uA9FF\uAC00-\uD7AF\u1100-\u11FF]+")

PATTERNS = {
    "falcon_e": [LLAMA3], "jina-v5-nano": [LLAMA3], "minicpm5": [r"\p{N}{1,3}", LLAMA3.replace("{1,3}", "+")],
    "f2llmv2": [QWEN2], "kormo": [QWEN2], "laguna": [r"[^\n]+|[\n]+", QWEN2], "ufakzeka": [QWEN2[len(CONTRACTIONS) + 1:]],
    "mellum2": [r"\p{N}", GPT2],
    "joyai-llm": V3, "hy_v4": V3, "spark2_5": [r"\p{N}{1,3}", KANA, PUNCT + r"|[\r\n]|\s+(?!\S)|\s+", r"\p{N}"],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))", SCRIPTS, V3[2]],
    "talkie": [GPT4O], "granite-embed-multi-97m": [GPT4O], "tiny_aya": [THREES, GPT4O], "cohere2moe": [THREES, GPT4O],
    "kimi-k2": [r"[\p{Han}]+|" + cased(U + HAN, L + HAN, r"\p{N}{1,3}", r"[\r\n]*")],
    "youtu": [r"[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+", cased(U, L, r"\p{N}", r"[\r\n/]*")],
    "jais-2": [LLAMA3.replace(r"\s+(?!\S)|\s+", "|".join(rf"\s{{{1 << i}}}(?!\S)" for i in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}")],
    "exaone-moe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+"],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "chameleon": [r"<sentinel:[0-9]+>", r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", r"([\t\n]|    |  )", r"\p{N}", r"[\p{P}!-/:-@\[-`{-~]", GPT2],
}

TEXTS = [
    "Hello world, it's 12345678 o'clock: I'LL pay $1,234.50!\n\n  def f(x):\n\treturn x**2  # don't\r\n",
    "12 123 1234 1234567 12345678abc 1_000 x1234, 1234é ٣٤٥٦ ½⅓¼ 3.14159e10\n",
    "HTTPServer getURLFor iPhone15Pro ÉCOLE école Ǆungla ǅ snake_case/path/\n\nto//x",
    "中文汉字とカタカナひらがな한국어 ㄅㄆㄇ ㄱㄴ 我在apple工作1314151天～，、。“引号”……——！？",
    "नमस्ते दुनिया สวัสดีชาวโลก ខ្មែរ မြန်မာ ພາສາລາວ العربية עִבְרִית",
    "e\u0301cole n\u0303o a\u0323\u0302 \u1100\u1161\u11a8 cafe\u0301's",
    "   \t \t\n \n\n\r\n   x    y\u00a0\u2003z      ",
    " " * 9 + "a" + " " * 40 + "b\n" + " " * 700 + "c" + " " * 3,
    "<sentinel:12> IMGIMGABCZ IMGIMGJZ <|im_end|> [x] `y` {z} a'b 'tis 'Twas we'VE",
    "🚀🦙😶‍🌫️ ✅ ------======= '''''' ```` \"\"\"\" ...... !!!!!! ?????? a/b\\c",
    "ünïcödé ςΣσ ẞß ﬁ ǆ I\u0307 K K Å Å Ⅷ 〇 々 ゝ ヿ ｱｲｳ ÀÉ",
]


def splits(stages, text):
    steps = [pre_tokenizers.Split(Regex(s), "isolated") for s in stages]
    return [piece for piece, _ in pre_tokenizers.Sequence(steps).pre_tokenize_str(text)]


def main():
    r = random.Random(7)
    letters = list("aZé'sdtlLrevE019 \n\t\r.,!/_-") + ["中", "한", "ね", "\u0301", "ǅ", "½", "٣", "🚀", "  ", "123"]
    texts = TEXTS + ["".join(r.choices(letters, k=r.randint(5, 60))) for _ in range(60)]
    json.dump({
        "texts": texts,
        "splits": {name: [splits(stages, text) for text in texts] for name, stages in PATTERNS.items()},
        "nfc": [normalizers.NFC().normalize_str(text) for text in texts],
    }, __import__("sys").stdout, ensure_ascii=True, separators=(",", ":"))


main()
