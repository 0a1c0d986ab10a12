"""Gives the candidates of a journal to the selection code of its_hub and optillm, and says how often they choose
what Lutra's vote chooses.

    python3 -m venv venv && venv/bin/pip install its_hub==1.2.0
    venv/bin/pip download --no-deps optillm==0.4.0 && unzip optillm-0.4.0-py3-none-any.whl
    venv/bin/python others.py JOURNAL.jsonl.gz optillm > others.csv

its_hub votes on whole texts unless it is told how an answer is found in a text, and draws lots among equals. optillm
has patterns of its own, none of which knows \\boxed{}; equals go to the answer that came first. Lutra reads the number
in \\boxed{} or the last one, or the program in a fence, and the greater mean probability decides between equals. It
gives no vote to answers that were cut, unless all were; of these the others know nothing.
"""

import collections
import csv
import gzip
import importlib.util
import json
import random
import re
import sys
import types

from its_hub.core.algorithms.self_consistency import SelfConsistency

journal, optillm = sys.argv[1:]
open_ = gzip.open if journal.endswith(".gz") else open
records = [json.loads(line) for line in open_(journal, "rt")]
records = [r for r in records if len(r.get("candidates") or []) > 1]
if not records:
    sys.exit("the journal has no candidates")

spec = importlib.util.spec_from_file_location("voting", optillm + "/plugins/majority_voting_plugin.py")
voting = importlib.util.module_from_spec(spec)
spec.loader.exec_module(voting)


def answer(candidate):
    """What Lutra votes on: the answer that it has read, or a program in a fence without white space; empty: none."""
    if candidate.get("answer"):
        return re.sub(r"[,$\s]", "", candidate["answer"])
    fence = re.search(r"(?s)```[^\n]*\n(.*?)```", candidate["text"])
    return "".join(fence.group(1).split()) if fence else ""


answers = {c["text"]: answer(c) for r in records for c in r["candidates"]}


def its_hub(projection):
    def choose(texts):
        algorithm = SelfConsistency(projection)
        result = algorithm._process_responses([{"content": t} for t in texts], return_response_only=False)
        return result.selected_index
    return choose


def majority_voting(texts):
    choices = [types.SimpleNamespace(message=types.SimpleNamespace(content=t)) for t in texts]
    response = types.SimpleNamespace(choices=choices, usage=types.SimpleNamespace(completion_tokens=0))
    create = lambda **_: response
    client = types.SimpleNamespace(chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=create)))
    text, _ = voting.run("", "", client, "", {"k": len(texts)})
    return texts.index(text)


rows = [
    ("its_hub, its default", its_hub(None)),
    ("its_hub, told what Lutra reads as the answer", its_hub(answers.get)),
    ("optillm, majority_voting", majority_voting),
]
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(["who chooses", "problems", "right %", "Lutra's vote, right %", "same answer", "another, with as many votes", "another, with fewer votes"])
for name, choose in rows:
    random.seed(1)
    right = ours = same = equal = fewer = 0
    for r in records:
        texts = [c["text"] for c in r["candidates"]]
        voters = [i for i, c in enumerate(r["candidates"]) if not c.get("cut")] or range(len(texts))
        votes = collections.Counter(answers[texts[i]] for i in voters) - collections.Counter({"": len(texts)})
        chosen = max(voters, key=lambda i: (votes[answers[texts[i]]], r["candidates"][i]["score"]))
        other = choose(texts)
        right += bool(r["candidates"][other].get("right"))
        ours += bool(r["candidates"][chosen].get("right"))
        a, b = answers[texts[chosen]], answers[texts[other]]
        same += a == b
        equal += a != b and votes[a] == votes[b]
        fewer += a != b and votes[a] != votes[b]
    n = len(records)
    out.writerow([name, n, f"{100 * right / n:.1f}", f"{100 * ours / n:.1f}", same, equal, fewer])
