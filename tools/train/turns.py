"""Conversations: one to six exchanges of stories, short questions, sums, small talk, and questions that go on from the answer before.

turns.py [SEED] [N] shows some."""
import sys
import data, everyday, further, talk
from data import Bad, solution
from wording import *

MAX_TURNS = 6  # the latest user turns that a model reads well; lutra.chat.max_turns in the GGUF files


class Last:
    """what a further question can go on from: the answer, of what, whose"""

    def __init__(s, d):
        s.d, s.answer, s.what = d, d["answer"], d.get("what")
        who = d.get("who")
        if who is None and d.get("people"):
            n, he = d["people"][0]
            who = Subject(n, *he)
        s.who = who
        s.again = d.get("again") or []


def follow(r, last, test=False):
    """a question about the answer before: dict like a story's, or None"""
    if last.again and r.random() < 0.55:
        return vary(r, last, test)
    return reckon(r, last, test)


def vary(r, last, test):
    """the same question with another number"""
    key, forms, draw = r.choice(last.again)
    d = last.d
    p = Q(r, 0)
    for _ in range(20):
        p.eqs, p.steps, p.skel = [], [], list(d["skel"]) + [key]
        try:
            x = draw()
            v = {**d["vals"], key: x}
            if x == d["vals"][key] or x < 1:
                continue
            z = d["fn"](p, v)
        except Bad:
            continue
        if (data.bucket(p, d["kind"] + "+") == 7) != test:
            continue
        q = r.choice(forms).format(x=x, m=MANY.get(x, f"{x} times"))
        if r.random() < 0.2:
            q = r.choice(["What would it be ", "What is it ", "and ", "how about ", "let's do it ", "once more ", "What do we get ", "run it ", "do it again ", "the same ", "try it ", "redo it ", "how about it "]) + f"with {x} instead of {d['vals'][key]}" + r.choice(["", "?"])
        return dict(d, question=typed(r, q), answer=z, steps=p.steps, eqs=p.eqs, vals=v, level=len(p.eqs))
    return None


def reckon(r, last, test):
    """the answer before, plus, minus, times or divided by a number"""
    x, who = last.answer, last.who
    he, him, pl = (who.he, who.him, who.pl) if who else (r.choice(["he", "she"]), "him", False)
    S = he, lambda w: w if pl or he in ("I", "we", "you", "they") else third(w), him
    money = last.what == "dollars"
    things = not money and last.what not in ("years", "miles", "km", "hours", "minutes", "seconds", "cm", "meters")
    p = Q(r, 0)
    for _ in range(20):
        p.eqs, p.steps = [], []
        op = r.choice("++--**/")
        k = r.randint(2, r.choice([9, 20, 60])) if op in "+-" else r.randint(2, 9)
        groups = False
        if op == "+":
            q, t = further.more(r, k, S, last.what, money), f"With {k} more it is @."
        elif op == "-":
            if k >= x:
                continue
            q, t = further.fewer(r, k, S, last.what, money), "That leaves @."
        elif op == "*":
            q, t = further.times(r, k, S, last.what, money, things), "In all that is @."
        else:
            d = [i for i in range(2, 13) if x % i == 0 and x // i > 1]
            if not d:
                continue
            k = r.choice(d)
            q, groups = further.shares(r, k, S, last.what, things)
            t = "That makes @." if groups else "Half of it is @." if "half" in q.lower() else "Each gets @."
        try:
            z = p.times(x, k, t) if op == "*" else p.op(x, op, k, t)
        except Bad:
            continue
        if (data.bucket(p, "reckon") == 7) != test:
            continue
        what = "dollars" if op == "*" and ("$" in q or "dollars" in q) else None if groups else last.what
        return dict(question=typed(r, q), answer=z, steps=p.steps, eqs=p.eqs, level=len(p.eqs), hard=0, kind="reckon", what=what, who=who)
    return None


JOIN = ["ok, ", "thanks. ", "great! ", "Thanks! ", "and ", "Good. ", "Now, ", "OK. ", "so ", "nice, ", "hm, ", "cool. "]


def typed(r, q):
    """how a further question is typed"""
    k = r.random()
    if k < 0.1:
        j = r.choice(JOIN)
        q = j + (q if j.endswith(". ") or j.endswith("! ") else q[0].lower() + q[1:] if not q.startswith("I ") else q)
        q = q.replace("and and ", "and ").replace("and And ", "and ")
    if r.random() < 0.12:
        q = spell(r, q)
    k = r.random()
    if k < 0.25:
        q = q.lower()
    elif k < 0.6:
        q = cap(q)
    if r.random() < 0.2:
        q = q.rstrip("?.")
    if r.random() < 0.02:
        q = typo(r, q)
    return q


NEXT = ["Next: ", "Next one: ", "Another one: ", "ok, ", "OK. ", "Thanks! ", "thanks, ", "New question: ", "Now this: ", "Great. ", "And this one: ", "Here is another: ", "Next question. ", "Now: ", "Cool, ", "Another question: ", "2) ", "Good. ", "Now a different one: "]
SURE = ["are you sure?", "Are you sure", "really?", "is that right?", "what was the answer?", "say that again", "repeat the answer", "what is the result?", "and the answer is?", "sure?", "what did you get?", "the answer again please", "so what is it?"]
OK = ["solve it", "what is the answer to that?", "ok, solve that", "and the answer?", "do it", "yes", "yes please", "show me", "go on", "solve that one", "answer it", "ok do that"]
EXAMPLES = [dict(question="Tom has 12 apples and buys 5 more. How many apples does he have?", answer=17, steps=["He gets 5 more: 12+5=17."], eqs=[(12, "+", 5, 17)], level=1, kind="example"),
            dict(question="Mia has 30 cards and gives 12 away. How many are left?", answer=18, steps=["She has 12 fewer: 30-12=18."], eqs=[(30, "-", 12, 18)], level=1, kind="example")]


def problem(r, long=0.5):
    """(question, its dict): a story, a short question or a sum"""
    k = r.random()
    if k < long:
        d = data.story(r, r.choice([1, 2, 2, 3, 3, 4, 4, 5, 5]), r.choice([0, 1, 1, 2, 2, 2]))
        q = talk.dress(r, d["question"])
        if r.random() < 0.04:
            q = spell(r, q)
    elif k < long + (1 - long) * 0.8:
        d = everyday.asked(r)
        q = d["question"]
    elif k < long + (1 - long) * 0.88:
        d = data.drill(r)
        q = d["question"]
    elif k < 0.995:
        d = everyday.sums(r)
        q = d["question"]
    else:
        d = r.choice(EXAMPLES)
        q = d["question"]
    return q, d


def conversation(r, turns=None, long=0.3, talky=0.05):
    """list of (role, text), and the dict of the problem that each assistant's text answers (None: small talk)"""
    msgs, probs = [], []
    if r.random() < 0.12:
        msgs.append(("system", r.choice(talk.SYSTEM)))
    if turns is None:
        turns = r.choices([1, 2, 3, 4, 5, 6], [40, 16, 14, 11, 10, 9])[0]
    if turns > 1:
        long = r.choice([0.2, 0.5, 0.5, 0.9])
    last = None
    for t in range(turns):
        q = d = None
        k = r.random()
        if last and k < 0.46:
            d = follow(r, last)
            if d:
                q = d["question"]
        elif t and k < 0.49 and last:
            q, a = r.choice(SURE), f"Answer: {last.answer}"
            if r.random() < 0.5:
                q = cap(q)
        elif t and k < 0.53:
            q, a = r.choice(talk.THX + ["ok", "I see", "got it", "good", "right", "yes", "correct", "thx", "thank you!", "Thanks!", "cool thanks", "very good"]), r.choice(talk.R_THX)
        elif msgs and msgs[-1][0] == "assistant" and any(e["question"] in msgs[-1][1] for e in EXAMPLES) and k < 0.8:
            d = next(e for e in EXAMPLES if e["question"] in msgs[-1][1])
            q = r.choice(OK)
        elif r.random() < talky:
            q, a = talk.chat(r) if r.random() < 0.72 else talk.hard(r)
        if q is None:
            q, d = problem(r, long)
            if t and r.random() < 0.12:
                q = r.choice(NEXT) + q
        if d:
            a = solution(d)
            last = Last(d)
        msgs += [("user", q), ("assistant", a)]
        probs.append(d)
    return msgs, probs


if __name__ == "__main__":
    r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 10):
        for role, t in conversation(r, r.choice([2, 3, 4, 5, 6]), 0.15)[0]:
            print(f"{role:>10}: ", t.replace("\n", " / "))
        print()
