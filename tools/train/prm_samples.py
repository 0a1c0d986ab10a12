"""Solutions that teach the verifier: sampled from generators, or written and made wrong on purpose."""
import pickle, random, time
import bpe, data, everyday, talk, told, turns
from gen import *
from prm_targets import token_targets


def asked_for(r, test=False, hard=False, short=False):
    """(prompt messages, problem or None, the reference reply) of one turn of a conversation, mostly the first; mostly a story of the
    test set's kind if hard, mostly one of told.txt if short"""
    if short and r.random() < 0.8:
        d = everyday.asked(r, kind=told.told if r.random() < 0.8 else None, test=test)
        return [("user", d["question"])], d, data.solution(d)
    if test or hard and r.random() < 0.6:
        d = data.story(r, r.choice([3, 4, 5] if test else [2, 3, 4, 5, 3, 4, 5]), r.choice([1, 2, 2]), test=test)
        return [("user", d["question"] if test else talk.dress(r, d["question"]))], d, data.solution(d)
    msgs, probs = turns.conversation(r, r.choices([1, 2, 3, 4, 5, 6], [60, 14, 10, 7, 5, 4])[0], talky=0.03)
    k = r.choice([i for i, (role, _) in enumerate(msgs) if role == "assistant"])
    return msgs[:k], probs[sum(role == "assistant" for role, _ in msgs[:k])], msgs[k][1]


def labels(d, ref, text):
    """0/1 per line of a reply: against the problem's equations, or as small talk"""
    if d:
        return label_steps(d, text)
    ok = text == ref if ref.startswith("Answer") else "Answer" not in text and "=" not in text
    return [int(ok)] * (text.count("\n") + 1)


def other_way(d, text):
    """a solution that reaches the right answer from the same numbers by other true steps, each of which is used: as a problem with these
    steps, else None"""
    lines = text.split("\n")
    eqs = [tuple(int(x) if x.isdigit() else x for x in e[0]) for e in map(EQ.findall, lines[:-1]) if len(e) == 1]
    if len(eqs) != len(lines) - 1 or not 0 < len(eqs) <= len(d["eqs"]) + 1 or parse_answer(text) != d["answer"]:
        return None
    for i, (a, o, b, c) in enumerate(eqs):
        true = {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b and a % b == 0 else None}[o]
        used = any(c in (e[0], e[2]) for e in eqs[i + 1:]) if i + 1 < len(eqs) else c == d["answer"]
        if c != true or not used:
            return None
    told = lambda eqs: {x for a, _, b, _ in eqs for x in (a, b)} - {c for *_, c in eqs}
    return dict(eqs=eqs, answer=d["answer"]) if told(eqs) == told(d["eqs"]) else None


def fair(tk, items):
    """the items, each labelled by that right way of its prompt with which it agrees the longest"""
    said = lambda x: tk.decode(x[:-1] if x[-1] == tk.end else x)
    ways = {}
    for pi, x, lab, d in items:
        w = ways.setdefault(tuple(pi), [d])
        o = d and not all(lab) and other_way(d, said(x))
        if o:
            w.append(o)
    out = []
    for pi, x, lab, d in items:
        if d and not all(lab):
            lab, _, d = max(((label_steps(w, said(x)), -i, w) for i, w in enumerate(ways[tuple(pi)])), key=lambda k: (sum(k[0]), k[1]))
        out.append((pi, x, lab, d))
    return out


def sample(out, n, seed, specs, temps=(0.8, 1.0, 1.2), test=False):
    """n prompts, each answered k times by each checkpoint of specs ("S,4"): pickled (prompt ids, answer ids, labels, problem)"""
    tk = bpe.Tokenizer("out/tokenizer.json")
    r = random.Random(seed)
    asked = [asked_for(r, test, seed.startswith("hard"), seed.startswith("told")) for _ in range(n)]
    items, t0 = [], time.time()
    for spec in specs:
        ck, k = spec.split(",")
        g = Gen(Model.load(f"ckpt/{ck}.pt"), tk)
        for a in range(0, n, 1024):
            chunk = [(tk.prompt(m), d, ref) for m, d, ref in asked[a:a + 1024]]
            chunk = [c for c in chunk if len(c[0]) < 850]
            res = g.generate([c[0] for c in chunk], int(k), temps[(a // 1024) % len(temps)])
            for (pi, d, ref), xs in zip(chunk, res):
                for x in {tuple(x) for x in xs}:
                    lab = labels(d, ref, tk.decode(x[:-1] if x[-1] == tk.end else x))
                    items.append((pi, list(x), lab, {k: d[k] for k in ("eqs", "answer")} if d else None))
            print(spec, a, len(items), "right %.3f" % (sum(all(i[2]) for i in items) / len(items)), "%.0fs" % (time.time() - t0), flush=True)
    pickle.dump(fair(tk, items), open(out, "wb"))


def corrupt(r, d):
    """a wrong solution made from the true one: (text, labels); later steps use the wrong value where they can"""
    k = r.randrange(len(d["eqs"]))
    steps, val, lab = [], {}, []
    nums = [int(x) for x in re.findall(r"\d+", d["question"])] + [x for e in d["eqs"] for x in (e[0], e[2])] + [c for *_, c in d["eqs"][:k]]
    for i, ((a, o, b, c), s) in enumerate(zip(d["eqs"], d["steps"])):
        a2, b2 = val.get(a, a), val.get(b, b)
        if i == k:
            m = r.random()
            if m < 0.55:  # wrong arithmetic
                z = str(c)
                w = r.random()
                if w < 0.35:
                    c2 = c + r.choice([-1, 1, -2, 2, 10, -10, 100, -100])
                elif w < 0.7:
                    j = r.randrange(len(z))
                    c2 = int(z[:j] + r.choice("0123456789") + z[j + 1:])
                else:
                    c2 = c + r.randint(-15, 15)
            elif m < 0.8:  # wrong operand
                x = r.choice(nums)
                a2, b2 = (x, b) if r.random() < 0.5 else (a, x)
                c2 = None
            else:
                o2 = r.choice("+-*/".replace(o, ""))
                o, c2 = o2, None
        else:
            c2 = None
        if c2 is None:
            if o == "/" and (b2 == 0 or a2 % b2):
                break
            c2 = a2 + b2 if o == "+" else a2 - b2 if o == "-" else a2 * b2 if o == "*" else a2 // b2
        if c2 < 0 or c2 > 9999:
            break
        if c2 != c:
            val[c] = c2
        t = s.replace("{}{}{}={}".format(*d["eqs"][i]), f"{a2}{o}{b2}={c2}")
        steps.append(t)
        if i > k and r.random() < 0.4:
            break
    else:
        steps.append(f"Answer: {c2}")
    txt = "\n".join(steps)
    return txt, label_steps(d, txt)


SAID = {"+": ["With {b} more it is @.", "She gets {b} more: @.", "Together that is @.", "Now it is @."], "-": ["That leaves @.", "{b} are gone: @.", "Now it is @."], "*": ["In all that is @.", "Twice as many is @.", "The boxes make @."], "/": ["Each gets @.", "Half of it is @.", "That makes @."]}


def misread(r, d):
    """a solution that is well written but of another story: a loss taken for a gain, a step left out, one too many, or with another
    number of the question. Its arithmetic is true, so that only the question tells: (text, labels)"""
    eqs, steps, val = d["eqs"], [], {}
    nums = [int(x) for x in re.findall(r"\d+", d["question"])] or [2]
    k, how = r.randrange(len(eqs)), r.random()
    x = None
    for i, ((a, o, b, c), s) in enumerate(zip(eqs, d["steps"])):
        a2, b2, told = val.get(a, a), val.get(b, b), None
        if i == k and how < 0.45:
            o, told = r.choice({"+": "--*", "-": "+++", "*": "+", "/": "*-"}[o]), True
        elif i == k and how < 0.7 and len(eqs) > 1:
            val[c] = a2
            continue
        elif i == k and how < 0.85:
            a2, b2 = (a2, r.choice(nums)) if r.random() < 0.7 else (r.choice(nums), b2)
        if o == "/" and (b2 == 0 or a2 % b2):
            break
        x = a2 + b2 if o == "+" else a2 - b2 if o == "-" else a2 * b2 if o == "*" else a2 // b2
        if not 0 <= x <= 9999:
            break
        if x != c:
            val[c] = x
        steps.append(r.choice(SAID[o]).format(b=b2).replace("@", f"{a2}{o}{b2}={x}") if told else s.replace("{}{}{}={}".format(a, eqs[i][1], b, c), f"{a2}{o}{b2}={x}"))
    else:
        if how >= 0.85 and x is not None:  # a step too many
            o, b2 = r.choice("++-"), r.choice(nums)
            y = x + b2 if o == "+" else x - b2
            if y >= 0:
                steps.append(r.choice(SAID[o]).format(b=b2).replace("@", f"{x}{o}{b2}={y}"))
                x = y
        if x is not None:
            steps.append(f"Answer: {x}")
    if not steps:
        return corrupt(r, d)
    txt = "\n".join(steps)
    return txt, label_steps(d, txt)


def scatter(r, d):
    """the true solution with the results of about half its lines replaced by wrong ones: (text, labels)"""
    steps = []
    for (a, o, b, c), s in zip(d["eqs"], d["steps"]):
        if r.random() < 0.5:
            z = str(c)
            w = r.random()
            if w < 0.5:
                c2 = c + r.choice([1, -1, 10, -10, 100, -100] if len(z) > 2 else [1, -1, 10, -10, 2, -2])
            elif w < 0.9:
                j = r.randrange(len(z))
                c2 = int(z[:j] + r.choice("0123456789") + z[j + 1:])
            else:
                c2 = c + r.randint(-30, 30)
            if c2 >= 0:
                s = s.replace(f"{a}{o}{b}={c}", f"{a}{o}{b}={c2}")
        steps.append(s)
    txt = "\n".join(steps) + f"\nAnswer: {d['answer']}"
    return txt, label_steps(d, txt)


def clean(tk, items, isend):
    out = []
    for pr, so, lab, d in items:
        if so[-1] == tk.end and sum(isend[t] for t in so) == len(lab):
            out.append((pr, so, lab, token_targets(tk, isend, d, so, lab)))
    return out


def made(r, tk, isend):
    """a fresh problem with its true solution, made wrong in most cases"""
    while True:
        k = r.random()
        if k < 0.3:
            d = data.story(r, None, r.choice([0, 1, 2, 2]))
            msgs = [("user", talk.dress(r, d["question"]))]
        elif k < 0.36:
            d = data.drill(r) if r.random() < 0.5 else everyday.sums(r)
            msgs = [("user", d["question"])]
        elif k < 0.85:
            d = everyday.asked(r)
            msgs = [("user", d["question"])]
        else:
            msgs, probs = turns.conversation(r, r.choice([2, 2, 3, 4, 5, 6]))
            n = r.randrange(len(probs))
            d = probs[n]
            k = [i for i, (role, _) in enumerate(msgs) if role == "assistant"][n]
            msgs = msgs[:k]
            if d is None:
                continue
        k = r.random()
        txt, lab = scatter(r, d) if k < 0.35 else corrupt(r, d) if k < 0.5 else misread(r, d) if k < 0.78 else (data.solution(d), [1] * (len(d["eqs"]) + 1))
        so = tk.encode(txt) + [tk.end] if "Answer" in txt else tk.encode(txt + ".\n" if not txt.endswith(".") else txt + "\n")
        pr = tk.prompt(msgs)
        if sum(isend[t] for t in so) == len(lab) and len(pr) < 850:
            return pr, so, lab, token_targets(tk, isend, d, so, lab)
