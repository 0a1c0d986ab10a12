"""Problems to train the generators' probes on:  probes.py >problems.jsonl;  lutra probe train --data problems.jsonl

13,000 chains of hard.py with another seed than the test set's, 4,000 long stories, 3,000 short questions of all kinds and 7,000
stories of told.txt, shuffled. What the embedded sets ask is left out."""
import gzip, json, os, random
import data, everyday, hard, told

SEED = 9001
SETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/embedded")


def held():
    """the questions of the embedded sets"""
    for name in ("test.jsonl", "everyday.jsonl", "written.jsonl"):
        with open(os.path.join(SETS, name)) as f:
            yield from (json.loads(line)["question"] for line in f)
    with gzip.open(os.path.join(SETS, "hard.jsonl.gz"), "rt") as f:
        yield from (json.loads(line)["question"] for line in f)


def problems():
    yield from ((d, "hard") for d in hard.problems(13000, SEED, [5, 6, 6]))
    r = random.Random(SEED + 1)
    for _ in range(4000):
        yield data.story(r, level=r.choice([3, 4, 5]), h=r.choice([1, 2, 2])), "story"
    for _ in range(3000):
        yield everyday.asked(r), "asked"
    for _ in range(7000):
        yield everyday.asked(r, kind=told.told), "told"


if __name__ == "__main__":
    seen, out = set(held()), []
    for d, kind in problems():
        if d["question"] not in seen:
            seen.add(d["question"])
            out.append(dict(question=d["question"], answer=d["answer"], kind=kind))
    random.Random(SEED).shuffle(out)
    for d in out:
        print(json.dumps(d))
