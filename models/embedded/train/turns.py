"""Conversations: one to six exchanges of stories, short questions, sums, small talk, and questions that go on from the answer before.

turns.py [SEED] [N] shows some."""
import sys
import by_words, data, everyday, talk
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
        if r.random() < 0.12:
            q = r.choice(["What would it be ", "do it again ", "the same ", "try it ", "redo it ", "how about it "]) + f"with {x} instead of {d['vals'][key]}"
        return dict(d, question=typed(r, q), answer=z, steps=p.steps, eqs=p.eqs, vals=v, level=len(p.eqs))
    return None


def reckon(r, last, test):
    """the answer before, plus, minus, times or divided by a number"""
    x, S = last.answer, last.who
    he, him, his, pl = (S.he, S.him, S.his, S.pl) if S else (r.choice(["he", "she"]), "him", "his", False)
    v = lambda w: w if pl or he in ("I", "we", "you", "they") else third(w)
    do = "do" if pl else "does"
    o = f" {last.what}" if last.what and r.random() < 0.4 else ""
    money = last.what == "dollars"
    things = not money and last.what not in ("years", "miles", "km", "hours", "minutes", "seconds", "cm", "meters")
    p = Q(r, 0)
    for _ in range(20):
        p.eqs, p.steps = [], []
        op = r.choice("++--**/")
        k = r.randint(2, r.choice([9, 20, 60])) if op in "+-" else r.randint(2, 9)
        left = r.choice(["How many are left?", "How many are left then?", "how many now?", "What is left?", "How many remain?", "", f"How many {do} {he} have left?"] if not money else ["How much is left?", "What is left?", "", f"How much {do} {he} have left?", "how much is that?"])
        now = r.choice(["How many now?", "How many is that?", f"How many {do} {he} have now?", "How many are there now?", "", "how many in total?"] if not money else ["How much now?", "How much is that?", "", "how much in total?"])
        w = data.OPW
        if op == "+":
            forms = [f"What if {he} had {k} more{o}?", f"And if {he} {v('get')} {k} more{o}?", f"what if there were {k} more?", f"and {k} more?", f"And with {k} more?", f"Then {he} {v('buy')} {k} more{o}. {now}", f"then {he} {v('get')} {k} more. {now}", f"add {k}", f"add {k} to that", f"plus {k}?", f"and plus {k}", f"Now add {k}.", f"with {k} more?",
                     f"what if {he} {v('find')} {k} more?", f"And if there are {k} more?", f"now {he} {v('get')} {k} more{o}, {now or 'how many now?'}", f"And {k} more on top?", f"if someone gives {him} {k} more, {now or 'how many is that?'}", f"Later {he} {v('find')} {k} more. {now}"]
            w2 = r.choice(by_words.IN)[r.random() < 0.5]
            forms += [f"{k} more {w2}. {now}", f"and if {k} more {w2}?", f"increase that by {k}", f"what is {k} more than that?", f"the sum of that and {k}?", f"another {k} {w2}, {now or 'how many now?'}", f"on top of that {k} more {w2}. {now}", f"together with another {k}?", f"put {k} more with them. {now}", f"suppose {he} {v('get')} another {k}", f"that plus {k}", f"what is it after adding {k}?", f"{k} on top?", f"{k} come in addition. {now}", f"what is the new number if {k} are added?", f"make it go up by {k}", f"it grows by {k}. {now}", f"what if there were {k} extra ones?", f"count {k} more", f"someone puts in {k} more. {now}", f"{k} extra, {now or 'how many?'}"]
            t = f"With {k} more it is @."
        elif op == "-":
            if k >= x:
                continue
            forms = [f"And if {he} {v(r.choice(['lose', 'give away', 'use', 'sell'] if not money else ['spend', 'lose', 'give away']))} {k}?", f"what if {k} are missing?" if not money else f"what if ${k} are missing?", f"Then {he} {v(r.choice(['lose', 'give away', 'use', 'sell'] if not money else ['spend', 'lose']))} {k}{o}. {left}", f"minus {k}?", f"subtract {k}",
                     f"subtract {k} from that", f"take away {k}", f"now take away {k}", f"What if {he} had {k} fewer?" if not money else f"What if {he} had {k} dollars less?", f"and {k} less?", f"{k} are gone. {left}" if not money else f"{he} {v('spend')} ${k}. {left}", f"and without {k} of them?" if not money else f"and minus ${k}?", f"And if {k} of them break?" if things else f"and {k} less?",
                     f"then {k} get lost. {left}" if things else f"and {k} fewer?", f"If {he} {v('give')} {k} to a friend, {left.lower() or 'how many are left?'}", f"What if {he} {v('eat')} {k}?" if things else f"take off {k}"]
            w2 = r.choice(by_words.OUT)[r.random() < 0.5]
            forms += [f"{k} of them {w2}. {left}", f"and if {k} {w2}?", f"reduce it by {k}", f"what is that minus {k}?", f"{k} {w2}, {left.lower() or 'what is left?'}", f"what is left without {k}?", f"suppose {k} of them {w2}", f"now {k} {w2}. {left}", f"remove {k}. {left}", f"what remains if {k} {w2}?", f"decrease that by {k}", f"make it go down by {k}", f"it drops by {k}. {left}", f"cut it by {k}", f"{k} get used. {left}" if not money else f"${k} get used. {left}", f"what is left after {k} are gone?", f"knock off {k}", f"throw {k} of them out. {left}", f"somebody takes {k} away. {left}", f"without {k}, how many?", f"how many stay if {k} go?", f"{k} {'dollars' if money else 'of those'} are used. {left}"]
            t = "That leaves @."
        elif op == "*":
            ppl = r.choice(["friends", "people", "kids", "days", "weeks", "groups", "families"])
            forms = [f"how many would {k} of {his} friends have together?", f"How many do {k} such {ppl} have together?", f"and for {k} {ppl}?" if ppl not in ("days", "weeks") else f"and in {k} such {ppl}?", f"times {k}?", f"and times {k}", f"multiply that by {k}", f"what is {k} times that?", f"and {k} times as many?", f"What if it were {k} times as many?", f"{k} times that?"]
            forms += [f"a friend has {k} times as many. How many is that?", f"and for {k} of them?", f"what would {k} of these be?", f"and {k} groups like that?", f"every {ppl[:-1] if ppl in ('days', 'weeks') else 'week'}, {k} times?", f"take it {k} times", f"{k} times as much?", f"{k} of those make how many?", f"the same {k} times, how many is that?", f"{k} people have that many each. how many together?", f"do that {k} times", f"if each of {k} has as many, what is the total?", f"{k} days like that, how many in all?", f"make that {k} times as big", f"what is the total for {k} of them?", f"if it happens {k} times?", f"my brother has {k} times that. how many has he?"]
            if k in (2, 3):
                forms += [("double that", "twice as many?", "what is twice that?", "And twice as much?", "double it")[r.randrange(5)] if k == 2 else r.choice(["triple that", "three times as many?", "what is three times that?"])] * 4
            if things:
                forms += [f"and if each costs ${k}?", f"They cost ${k} each. How much is that?", f"What if each costs {k} dollars?", f"how much are they at ${k} each?", f"and if {he} {v('sell')} them for ${k} each?", f"{he} {v('sell')} them all for {k} dollars each. How much {do} {he} get?", f"each one costs ${k}, how much in total?", f"How much do they cost if one is ${k}?",
                          f"one is worth ${k}. what are they all worth?", f"sold at ${k} each, how much is it?", f"what is the value at ${k} each?", f"each brings ${k}. how much in all?", f"at {k} dollars each, what do they cost?", f"all of them for ${k} each?", f"what is the price if one costs ${k}?", f"{he} {v('get')} ${k} for each. how much is that?", f"and what do they cost at ${k} each?", f"if each is worth ${k}, how much is that?"] * 2
            t = "In all that is @."
        else:
            d = [i for i in range(2, 13) if x % i == 0 and x // i > 1]
            if not d:
                continue
            k = r.choice(d)
            ppl = r.choice(["friends", "kids", "people", "children", "students"])
            forms = [f"and if {k} {ppl} share them?" if things else f"and if {k} {ppl} share it?", f"share that among {k}", f"divide that by {k}", f"divided by {k}?", f"split between {k} {ppl}, how many each?", f"And if {he} {v('share')} them among {k} {ppl}?", f"how much is that for each of {k} {ppl}?", f"{k} {ppl} share this equally. How many does each get?",
                     f"What does each get if {k} {ppl} share?", f"split it into {k} equal parts", f"Now {k} {ppl} share them. How many each?"]
            forms += [f"put them on {k} plates equally, how many on each?", f"shared by {k}?", f"give each of {k} {ppl} the same, how many each?", f"in {k} rows, how many in a row?", f"each of {k} gets how many?", f"and for {k} {ppl}, the same for each?", f"split that {k} ways", f"{k} equal piles of that, how many in a pile?", f"what is one of {k} equal parts of that?", f"how many does one of {k} {ppl} get then?", f"if {k} {ppl} divide it, what does each get?", f"divide it up among {k}", f"make {k} equal groups of it, how many in one?", f"shared out to {k}, how many each?", f"what does one of {k} get?", f"and per person for {k} people?", f"hand it out to {k} {ppl}, how many each?", f"break it into {k} equal pieces"]
            if k == 2:
                forms += ["and half of that?", "what is half of that?", "half of it?", "And half of them?"] * 2
            if things:
                forms += [f"how many bags of {k} is that?", f"How many boxes of {k} can {he} fill with them?", f"and in bags of {k}?"]
        q = r.choice(forms).strip()
        if op == "/":
            t = "That makes @." if (" of " + str(k)) in q and ("bags" in q or "boxes" in q) else "Half of it is @." if "alf" in q else "Each gets @."
        cost = op == "*" and ("$" in q or "dollars" in q)
        try:
            z = p.times(x, k, t) if op == "*" else p.op(x, op, k, t)
        except Bad:
            continue
        if (data.bucket(p, "reckon") == 7) != test:
            continue
        what = "dollars" if cost else None if op == "/" and "bags" in q else last.what
        return dict(question=typed(r, q), answer=z, steps=p.steps, eqs=p.eqs, level=len(p.eqs), hard=0, kind="reckon", what=what, who=S)
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


def conversation(r, turns=None, long=0.47, talky=0.05):
    """list of (role, text), and the dict of the problem that each assistant's text answers (None: small talk)"""
    msgs, probs = [], []
    if r.random() < 0.12:
        msgs.append(("system", r.choice(talk.SYSTEM)))
    if turns is None:
        turns = r.choices([1, 2, 3, 4, 5, 6], [50, 13, 11, 9, 8, 9])[0]
    if turns > 1:
        long = r.choice([0.2, 0.5, 0.5, 0.9])
    last = None
    for t in range(turns):
        q = d = None
        k = r.random()
        if last and k < 0.4:
            d = follow(r, last)
            if d:
                q = d["question"]
        elif t and k < 0.43 and last:
            q, a = r.choice(SURE), f"Answer: {last.answer}"
            if r.random() < 0.5:
                q = cap(q)
        elif t and k < 0.48:
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
