"""The accuracy of turns.jsonl in the product:  ask_turns.py http://127.0.0.1:8080/v1 lutra-tiny-s [TEMPERATURE] [SEEDS]

Each conversation is held turn by turn, with the model's own answers in its history."""
import json, re, sys, urllib.request
from collections import defaultdict

url, model = sys.argv[1:3]
heat, seeds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0, int(sys.argv[4]) if len(sys.argv) > 4 else 1
right, asked = defaultdict(int), defaultdict(int)
for line in open("../../models/embedded/turns.jsonl"):
    for seed in range(seeds):
        history = []
        for n, turn in enumerate(json.loads(line)["turns"]):
            history.append(dict(role="user", content=turn["question"]))
            body = json.dumps(dict(model=model, messages=history, temperature=heat, seed=seed)).encode()
            with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body, {"Content-Type": "application/json"})) as r:
                reply = json.load(r)["choices"][0]["message"]["content"]
            history.append(dict(role="assistant", content=reply))
            if turn["answer"] is None:
                continue
            ok = re.search(r"Answer: (\d+)\.?$", reply.strip())
            for key in (turn["kind"], f"turn {n + 1}", "first turn" if n == 0 else "later turns"):
                asked[key] += 1
                right[key] += bool(ok) and int(ok[1]) == turn["answer"]
print(model, f"temperature {heat}:", ", ".join(f"{k} {100 * right[k] / n:.1f} % of {n}" for k, n in sorted(asked.items())))
