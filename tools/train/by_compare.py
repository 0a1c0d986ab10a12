"""Short questions that compare two amounts."""
from by_sums import PAIRS
from wording import *

TALL = [("tall", "taller", "shorter", "cm"), ("old", "older", "younger", "years"), ("heavy", "heavier", "lighter", "kg"), ("long", "longer", "shorter", "meters")]


def compare_more(p):
    """b has k more (fewer) than a: how many has b, or both together"""
    r = p.r
    S = p.subject(0.25, 0.15, 0)
    b, (he, his, him) = p.name()
    o, o1 = p.noun()
    x = p.have()
    up = r.random() < 0.55
    k = p.more() if up else r.randint(1, x - 1)
    w = r.choice(["have", "have", "have", "sell", "find", "make", "pick", "read", "collect"])
    if w == "read":
        o, o1 = "pages", "page"
    A = S.n if S.he != "I" else "me"
    d = "more" if up else r.choice(["fewer", "fewer", "less"])
    f1 = [f"{S.vs(w)} {x} {o}"]
    f2 = [f"{b} {third(w)} {k} {d}", f"{b} {third(w)} {k} {d} than {A}", f"{b} {third(w)} {k} {d} {o} than {A}", f"{b} {third(w)} {k} {d} {o}", f"{b} {third(w)} {k} {d} than that"]
    v = dict(a=x, b=k)
    tog = r.random() < 0.3
    they = "we" if S.he in ("I", "we") else "they"
    if tog:
        qs = [f"how many {o} do {they} {w} together", f"how many {o} do {they} {w} in all", f"how many do {they} {w} altogether", f"how many {o} do {they} {w} in total"]
        shorts = ("how many together", "how many in total", "how many altogether", f"how many {o} together")
    else:
        qs = [f"how many {o} does {b} {w}", f"how many does {b} {w}", f"how many {o} does {he} {w}", f"how many does {he} {w}", f"how many {o} are {b}'s" if w == "have" else f"how many {o} does {b} {w}"]
        shorts = (f"how many does {b} {w}", f"how many {o} does {b} {w}", f"how many does {he} {w}")
    p.ask([f1, f2], qs, shorts)
    p.skel.append(("+" if up else "-") + str(tog))
    s = "+" if up else "-"

    def fn(p, v):
        y = p.op(v["a"], s, v["b"], f"{b} {'has' if w == 'have' else third(w)} @.")
        return p.op(v["a"], "+", y, "Together that is @.") if tog else y
    p.vary = [("b", [f"And if it is {{x}} {d}?", f"what if {b} {third(w)} {{x}} {d}?", f"and with {{x}} {d}?"], lambda: r.randint(2, max(3, x - 1)))]
    return v, fn


def twice_both(p):
    r = p.r
    S = p.subject(0.2, 0.15, 0)
    b, _ = p.name()
    o, o1 = p.noun()
    k = r.choice([2, 2, 3, 4])
    x = p.have() if p.h < 2 else r.randint(20, 190)
    w = r.choice(["have", "have", "sell", "find", "pick", "make"])
    A = S.n if S.he != "I" else "me"
    they = "we" if S.he in ("I", "we") else "they"
    f1 = [f"{S.vs(w)} {x} {o}"]
    f2 = [f"{b} {third(w)} {MANY[k]} as many", f"{b} {third(w)} {MANY[k]} as many as {A}", f"{b} {third(w)} {MANY[k]} as many {o}", f"{b} {third(w)} {MANY[k]} that many"]
    p.ask([f1, f2], [f"how many {o} do {they} {w} together", f"how many {o} do {they} {w} in all", f"how many {o} do {they} {w} altogether", f"how many do {they} {w} in total"], ("how many together", "how many in total", "how many altogether"))
    v = dict(a=x, b=k)
    return v, lambda p, v: p.op(v["a"], "+", p.op(v["a"], "*", v["b"], f"{b} {third(w)} @."), "Together that is @.")


def difference(p):
    """how many more"""
    r = p.r
    S = p.subject(0.25, 0.15, 0)
    b, _ = p.name()
    x, y = p.have(), p.have()
    if x == y:
        raise Bad
    o, o1 = p.noun()
    B = S.n if S.he != "I" else "I"
    k = r.random()
    v = dict(a=x, b=y)
    if k < 0.5:
        w = r.choice(["have", "have", "sell", "find", "pick", "make", "read"])
        o = "pages" if w == "read" else o
        f = [[f"{S.vs(w)} {x} {o}"], [f"{b} {third(w)} {y}", f"{b} {third(w)} {y} {o}"]]
        do = S.does
        me = S.n if S.he != "I" else "me"
        more = [f"how many more {o} {do} {S.n} {w} than {b}", f"how many more {do} {S.n} {w}", f"how many more {o} {do} {S.n} {w}"] if x > y else [f"how many more {o} does {b} {w} than {me}", f"how many more does {b} {w}", f"how many fewer {o} {do} {S.n} {w} than {b}"]
        p.ask(f, more + ["what is the difference", f"how many {o} is the difference"], ("what is the difference", "how many more", "difference"), [f"{S.n} {x} {o}, {b} {y}"] if S.he in ("he", "she") else ())
    elif k < 0.75:
        adj, up, down, u = r.choice(TALL)
        f = [[f"{S.n} {S.isv} {x} {u} {adj}" if u != "kg" else f"{S.vs('weigh')} {x} kg"], [f"{b} is {y} {u} {adj}" if u != "kg" else f"{b} weighs {y} kg", f"{b} is {y}" if u != "kg" else f"{b} weighs {y}"]]
        o = u
        hi, lo = (S, b) if x > y else (b, S)
        nm = lambda t: t if isinstance(t, str) else t.n
        isv = lambda t: "is" if isinstance(t, str) else t.isv
        me = lambda t: t if isinstance(t, str) else ("me" if t.he == "I" else t.n)
        p.ask(f, [f"how much {up} {isv(hi)} {nm(hi)}", f"how much {up} {isv(hi)} {nm(hi)} than {me(lo)}", f"what is the difference", f"how many {u} {up} {isv(hi)} {nm(hi)}", f"how much {down} {isv(lo)} {nm(lo)}"], ("what is the difference", f"how much {up}"))
    else:
        i, j, all_, where = r.choice(PAIRS)
        f = [[f"there are {x} {i} and {y} {j} {where}", f"{where} there are {x} {i} and {y} {j}", f"{where} are {x} {i} and {y} {j}"]]
        hi, lo = (i, j) if x > y else (j, i)
        p.ask(f, [f"how many more {hi} than {lo} are there", f"how many more {hi} are there", f"how many more {hi} are there than {lo}", f"how many fewer {lo} than {hi} are there", "what is the difference", f"how many more {hi} than {lo}"], (f"how many more {hi}", "what is the difference"), [f"{x} {i}, {y} {j}"])
    p.what = o
    return v, lambda p, v: p.op(max(v["a"], v["b"]), "-", min(v["a"], v["b"]), "The difference is @.")


SCHEMAS = [(compare_more, 8), (twice_both, 4), (difference, 6)]
