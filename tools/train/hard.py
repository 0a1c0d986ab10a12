"""The hard test set:  hard.py | gzip -9n >../../models/embedded/hard.jsonl.gz;  hard.py COUNT SEED LEVELS, as in 200 5 7,8;  hard.py check

Long stories of five and six steps, where training has five at most, all with large operands. A story is a chain: each sentence changes
one number, by one operation or by a product that is added or taken away. The sentences stand here and nowhere else: `check` looks for
each in the training data. Numbers of steps and wordings were chosen with seeds 3 and 9 for the small model to be right half the time."""
import json, random, sys
from problem import Bad, P
from story_words import BOX, FEMALE, MALE, OBJ

COUNT, SEED, LEVELS = 1000, 66, (5, 6, 6)

# {n} a person ({He} and {he} later), {m} another, {o} things, {x} the number at first, {k} by how much it changes, {a} groups of {b},
# {bx} and {bx1} what holds them, {w} how a sentence begins
FIRST = ["In {n}'s room there are {x} {o}.", "{n} begins with {x} {o}.", "{n} has {x} {o} at first.", "{n} starts off with {x} {o}."]
BEGIN = ["", "", "Soon ", "After that "]
EVENTS = dict(
    more=["{w}{he} buys {k} other {o}.", "{w}{he} finds another {k} {o}.", "{w}{he} gets another {k} {o} from {m}.", "{w}{he} picks up another {k} {o}.", "{w}{he} finds {k} other {o}.", "{w}{m} gives {him} another {k} {o}."],
    less=["{w}{he} loses {k} of the {o}.", "{w}{he} gives away {k} of {his} {o}.", "{w}{he} gives {k} of {his} {o} to {m}.", "{w}{he} sells {k} of {his} {o}.", "{w}{he} throws away {k} of the {o}.", "{w}{he} uses up {k} of the {o}."],
    groups=["{w}{he} gets {a} {bx} with {b} {o} each.", "{w}{he} finds {a} {bx} with {b} {o} each."],
    take=["{w}{a} children take {b} {o} each.", "{w}{he} gives each of {a} friends {b} {o}."],
    twice=["{w}the number of {his} {o} doubles.", "{w}{he} doubles the number of {his} {o}."],
    half=["{w}{he} gives half of {his} {o} away.", "{w}{he} loses half of the {o}.", "{w}{he} gives away half of {his} {o}."])
LAST = ["How many {o} does {n} have in the end?", "How many {o} are there in the end?", "What is the number of {o} {n} has in the end?", "How many {o} does {he} own now?"]


def chain(p, level):
    """writes a story of so many steps"""
    r = p.r
    (o, _), (bx, bx1) = r.choice(OBJ), r.choice(BOX)
    n, (he, his, him) = p.person()

    def say(forms, **v):
        text = r.choice(forms)
        if "{m}" in text:
            v["m"] = p.person()[0]
        text = text.format(n=n, he=he, his=his, him=him, o=o, bx=bx, bx1=bx1, w=r.choice(BEGIN), **v)
        p.q.append(text[0].upper() + text[1:])
    x = p.amt()
    say(FIRST, x=x)
    before = None
    while len(p.eqs) < level:
        e = r.choice(["more", "less", "more", "less", "groups", "take", "twice", "half"])
        if e in ("twice", "half") and e == before or e in ("groups", "take") and level - len(p.eqs) < 2:
            continue
        before = e
        if e == "more":
            k = p.addend()
            say(EVENTS[e], k=k)
            x = p.op(x, "+", k, "")
        elif e == "less":
            k = p.less(x)
            say(EVENTS[e], k=k)
            x = p.op(x, "-", k, "")
        elif e in ("groups", "take"):
            a, b = p.mul()
            say(EVENTS[e], a=a, b=b)
            x = p.op(x, "+" if e == "groups" else "-", p.op(a, "*", b, ""), "")
        else:
            say(EVENTS[e])
            x = p.op(x, *(("*", 2) if e == "twice" else ("/", 2)), "")
    say(LAST)


def problems(n, seed, levels):
    r, seen = random.Random(seed), set()
    while len(seen) < n:
        p, level = P(r, 2), levels[len(seen) % len(levels)]
        try:
            chain(p, level)
        except Bad:
            continue
        q = " ".join(p.q)
        if q not in seen:
            seen.add(q)
            yield dict(question=q, answer=p.eqs[-1][3], level=level)


def check(n=200000):
    """no sentence of the set occurs in n training conversations, whatever its names, things and numbers"""
    import re
    import turns
    words = {w.lower(): "n" for w in MALE + FEMALE} | {w: "o" for pair in OBJ for w in pair} | {w: "x" for pair in BOX for w in pair}
    plain = lambda s: " ".join(words.get(w, w) for w in re.findall(r"[a-z#]+", re.sub(r"\d+", "#", s.lower())))
    cut = lambda s: {plain(x) for x in re.split(r"[.?!]\s*", s)} - {""}
    r, seen = random.Random(5), set()
    for _ in range(n):
        for role, text in turns.conversation(r)[0]:
            if role == "user":
                seen |= cut(text)
    ours = set().union(*(cut(d["question"]) for d in problems(COUNT, SEED, LEVELS)))
    print(len(ours), "sentences, in training:", sorted(ours & seen))


if __name__ == "__main__" and sys.argv[1:2] == ["check"]:
    check(*map(int, sys.argv[2:3]))
elif __name__ == "__main__":
    n, seed, levels = (sys.argv[1:] + [COUNT, SEED, LEVELS][len(sys.argv) - 1:])[:3]
    for d in problems(int(n), int(seed), levels if levels is LEVELS else [int(x) for x in levels.split(",")]):
        print(json.dumps(d, separators=(",", ":")))
