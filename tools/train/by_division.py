"""Short questions of one division."""
from changes import left_words
from wording import *

WHO = "friends children kids people students players neighbors pupils guests dogs cats teams cousins girls boys classes families brothers".split()


def share(p):
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    x, d = p.divs()
    v = dict(a=x, b=d)
    who = r.choice(WHO)
    he, do, his = S.he, S.does, S.his
    f1 = [f"{S.vs(w)} {x} {o}" for w in ("have", "have", "have", "buy", "bring", "get", "bake" if o1 in FOOD else "own")] + [f"there are {x} {o}"]
    f2 = [f"{he} {S.v('share')} them among {d} {who}", f"{he} {S.v('share')} them equally among {d} {who}", f"{he} {S.v('give')} the same number to each of {d} {who}", f"{d} {who} share them", f"{d} {who} share them equally", f"they are shared by {d} {who}",
          f"{he} {S.v('split')} them between {d} {who}", f"{he} {S.v('divide')} them equally among {d} {who}", f"they are split evenly among {d} {who}", f"they are divided among {d} {who}"]
    both = [f"{d} {who} share {x} {o}", f"{d} {who} share {x} {o} equally", f"{S.vs('share')} {x} {o} among {d} {who}", f"{S.vs('split')} {x} {o} between {d} {who}", f"{x} {o} are shared equally by {d} {who}", f"{x} {o} are divided among {d} {who}", f"{S.vs('divide')} {x} {o} equally among {d} {who}",
            f"{S.vs('give')} {x} {o} to {d} {who}, the same number to each", f"{x} {o} are split among {d} {who}", f"{S.vs('hand')} out {x} {o} equally to {d} {who}"]
    w1 = {"children": "child", "people": "person", "families": "family", "classes": "class"}.get(who, who[:-1])
    qs = [f"how many {o} does each get", f"how many does each {w1} get", f"how many {o} does each {w1} get", f"how many {o} does each one get", f"how many {o} for each {w1}", f"how many {o} per {w1}", f"how many does each get", f"how many {o} will each get", f"how many {o} does every {w1} get",
          f"how many {o} are there for each", f"how many {o} does one {w1} get", f"how many {o} does each of them get"]
    terse = [f"{x} {o}, {d} {who}", f"{x} {o} for {d} {who}", f"{x} {o} shared by {d} {who}", f"{x} {o} among {d} {who}", f"{d} {who}, {x} {o}"]
    if r.random() < 0.5:
        p.ask([f1, f2], qs, ("how many each", "how many does each get", "how many for each", "how many per person"), [t for t in terse])
    else:
        p.ask([both], qs, ("how many each", "how many does each get", "how many for each"), terse)
    p.vary = [("b", [f"And with {{x}} {who}?", f"and among {{x}} {who}?", f"What if there are {{x}} {who}?", f"what about {{x}} {who}?", f"and for {{x}}?", f"And if {{x}} {who} share them?"], lambda: p.div(v["a"])),
              ("a", [f"And if there are {{x}} {o}?", f"What about {{x}} {o}?", f"and with {{x}} {o}?", f"what if {he} had {{x}} {o}?"], lambda: v["b"] * r.randint(2, 20))]
    return v, lambda p, v: p.op(v["a"], "/", v["b"], "Each gets @.")


def pack(p):
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    b1 = r.choice(BOXES)
    bx = plural(b1)
    k, n = p.count(), p.size()
    if k * n > 999 or n < 2:
        raise Bad
    v = dict(a=k * n, b=n)
    x, m = v["a"], v["b"]
    he, do = S.he, S.does
    f1 = [f"{S.vs(w)} {x} {o}" for w in ("have", "have", "pack", "buy", "collect", "need")] + [f"there are {x} {o}"]
    f2 = [f"a {b1} holds {m} {o}", f"each {b1} holds {m}", f"{m} {o} fit in a {b1}", f"{he} {S.v('put')} {m} in each {b1}", f"{he} {S.v('put')} {m} {o} in every {b1}", f"{m} go in a {b1}", f"a {b1} has room for {m} {o}", f"{he} {S.v('pack')} them in {bx} of {m}", f"{m} {o} go into each {b1}"]
    both = [f"{S.vs('put')} {x} {o} into {bx} of {m}", f"{S.vs('pack')} {x} {o} in {bx} of {m}", f"{S.vs('have')} {x} {o} and {S.v('put')} {m} in each {b1}", f"{x} {o} are packed in {bx} of {m}", f"{x} {o} go into {bx} with {m} each"]
    qs = [f"how many {bx} {do} {he} need", f"how many {bx} are needed", f"how many {bx} is that", f"how many {bx} {do} {he} fill", f"how many {bx} can {he} fill", f"how many {bx} are there", f"how many {bx} do I need", f"how many {bx} does it take", f"how many {bx} will {he} need", f"how many {bx}"]
    inq = [f"how many {bx} {do} {he} need for {x} {o}", f"how many {bx} are needed for {x} {o}", f"how many {bx} for {x} {o}", f"how many {bx} do {x} {o} fill"]
    terse = [f"{x} {o}, {m} per {b1}", f"{x} {o} in {bx} of {m}", f"{x} {o}, {m} in each {b1}", f"{x} {o}, {bx} of {m}"]
    c = r.random()
    if c < 0.45:
        p.ask([f1, f2], qs, (f"how many {bx}", f"how many {bx} are needed"), [t for t in terse])
    elif c < 0.7:
        p.ask([both], qs, (f"how many {bx}",), terse)
    else:
        p.ask([[f"a {b1} holds {m} {o}", f"{m} {o} fit in a {b1}", f"each {b1} holds {m} {o}", f"there is room for {m} {o} in a {b1}"]], inq, inq)
    p.what = bx
    p.vary = [("a", [f"And for {{x}} {o}?", f"and with {{x}} {o}?", f"What about {{x}} {o}?", f"how many {bx} for {{x}} {o}?"], lambda: v["b"] * r.randint(2, 12)),
              ("b", [f"What if a {b1} holds {{x}}?", f"and if {{x}} fit in a {b1}?", f"and with {{x}} per {b1}?"], lambda: p.div(v["a"]))]
    return v, lambda p, v: p.op(v["a"], "/", v["b"], "That makes @.")


def unit(p):
    """what one costs, or how many can be bought"""
    r = p.r
    S = p.subject()
    o1 = r.choice(PRICED)
    o = plural(o1)
    n, c = p.count(), p.price()
    if c < 2:
        raise Bad
    if n * c > 999:
        raise Bad
    m = p.money()
    t = n * c
    p.what = "dollars"
    he, do = S.he, S.does
    if r.random() < 0.5:
        v = dict(a=t, b=n)
        both = [f"{n} {o} cost {m(t)}", f"{S.vs('pay')} {m(t)} for {n} {o}", f"{n} {o} cost {m(t)} together", f"{S.vs('buy')} {n} {o} for {m(t)}", f"the price of {n} {o} is {m(t)}", f"{S.vs('spend')} {m(t)} on {n} {o}", f"{S.n} paid {m(t)} for {n} {o}", f"{n} {o} are {m(t)} in total"]
        qs = [f"how much is one {o1}", f"how much does one {o1} cost", f"how much does each {o1} cost", f"how much is each {o1}", f"what is the price of one {o1}", f"what does one {o1} cost", f"how much does a single {o1} cost", f"how much is each", f"what did each cost", f"how much per {o1}",
              f"what is the cost of one {o1}", f"how much for one"]
        p.ask([both], qs, ("how much each", "how much is one", "how much does one cost", "price of one", "how much per piece"), [f"{n} {o} for {m(t)}", f"{n} {o} = {m(t)}"])
        p.vary = [("a", ["And if they cost ${x} together?", "what if it was ${x}?", "and if the total is ${x}?"], lambda: v["b"] * r.randint(2, 20))]
        return v, lambda p, v: p.op(v["a"], "/", v["b"], "Each one costs @.")
    v = dict(a=t, b=c)
    f1 = [f"{a(o1)} costs {m(c)}", f"{o} cost {m(c)} each", f"{o} are {m(c)} each", f"one {o1} costs {m(c)}"]
    f2 = [f"{S.vs('have')} {m(t)}", f"{S.vs('spend')} {m(t)} on {o}", f"{S.vs('pay')} {m(t)}", f"{S.n} {S.isv} given {m(t)}" if S.he != "it" else f"{S.vs('have')} {m(t)}"]
    qs = [f"how many {o} can {he} buy", f"how many can {he} buy", f"how many {o} {do} {he} get", f"how many {o} can {he} afford", f"how many {o} is that", f"how many {o} can {he} get"]
    inq = [f"how many {o} can {he} buy with {m(t)}", f"how many {o} can I buy for {m(t)}", f"how many {o} {do} {he} get for {m(t)}", f"how many can {he} buy with {m(t)}", f"how many {o} for {m(t)}"]
    if r.random() < 0.5:
        fs = [f2, f1]
        if r.random() < 0.4:
            fs.reverse()
        p.ask(fs, qs, (f"how many {o}", f"how many can {he} buy"))
    else:
        p.ask([f1], inq, inq)
    p.what = o
    p.vary = [("a", ["And with ${x}?", "and for ${x}?", "What about ${x}?", f"what if {he} had ${{x}}?"], lambda: v["b"] * r.randint(2, 20)), ("b", ["And if one costs ${x}?", f"what if they cost ${{x}} each?"], lambda: p.div(v["a"]))]
    return v, lambda p, v: p.op(v["a"], "/", v["b"], "That makes @.")


def part(p):
    """half, a third, a quarter"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    d = r.choice([2, 2, 2, 3, 4])
    x = d * r.randint(*((2, 12), (4, 40), (20, 200))[p.h])
    w = {2: "half", 3: "a third", 4: "a quarter"}[d]
    v = dict(a=x, b=d)
    f1 = [f"{S.vs(k)} {x} {o}" for k in ("have", "have", "buy", "own", "make")] + [f"there are {x} {o}"]
    act = r.choice(["are red", "are blue", "are new", "are broken", "are old", "are big", "are green", "are bad", "are missing"])
    f2 = [f"{w} of them {act}", f"{w} of the {o} {act}", f"{w} {act}"]
    qs = [f"how many {o} {act}", f"how many {act}", f"how many is that", f"how many {o} is that"]
    if d == 2 and r.random() < 0.5:
        k = r.choice(["give away", "sell", "use", "lose", "throw away", "eat" if o1 in FOOD else "drop"])
        he = S.he
        f2 = [f"{he} {S.v(k)} half of them", f"{he} {S.v(k)} half", f"{he} {S.v(k)} half of the {o}", f"{he} {S.v(k)} {w} of {S.his} {o}"]
        qs = left_words(S, o)[:6]
    p.ask([f1, f2], qs, ("how many", "how many is that") if act in qs[0] else SHORT_LEFT)
    p.vary = [("a", [f"And with {{x}} {o}?", f"what if there were {{x}}?", "and of {x}?"], lambda: v["b"] * r.randint(2, 30))]
    return v, lambda p, v: p.op(v["a"], "/", v["b"], f"{cap(w)} of them is @.")


SCHEMAS = [(share, 8), (pack, 5), (unit, 4), (part, 4)]
