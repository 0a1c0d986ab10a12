"""Short questions that go on from a product: more, fewer, change, a second product, shares."""
from by_division import WHO
from changes import left_words, lose
from wording import *


def groups_more(p):
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    b1 = r.choice(BOXES)
    bx = plural(b1)
    n, m = p.count(), p.size()
    he, do = S.he, S.does
    both = [f"{S.vs(w)} {n} {bx} {how}" for w in ("buy", "have", "get", "bring", "pack") for how in (f"of {m} {o}", f"with {m} {o} each", f"with {m} {o} in each", f"of {m} {o} each")] + [f"there are {n} {bx} with {m} {o} each", f"{S.vs('have')} {n} {bx} and each has {m} {o}"]
    if r.random() < 0.5:
        k = p.more()
        v = dict(a=n, b=m, c=k)
        f2 = [f"{k} single {o}", f"{k} loose {o}", f"{k} more {o}", f"{k} extra {o}"]
        f2 = [f"{he} also {S.v(w)} {t}" for w in ("have", "buy", "get") for t in f2] + [f"there are {k} more {o} on the table", f"{he} {S.v('find')} {k} more", f"{k} more {o} are outside", f"{he} {S.v('get')} {k} more {o}", f"then {he} {S.v('get')} {k} more"]
        qs = [f"how many {o} {do} {he} have", f"how many {o} {do} {he} have in total", f"how many {o} is that", f"how many {o} are there in all", f"how many {o} altogether", f"how many {o} {do} {he} have now"]
        p.ask([both, f2], qs, SHORT, [f"{n} {bx} of {m} {o} plus {k} more", f"{n} {bx} of {m} and {k} single {o}"])
        fn = lambda p, v: p.op(p.times(v["a"], v["b"], "The " + bx + " make @."), "+", v["c"], "Together that is @.")
    else:
        if n * m > 999:
            raise Bad
        k = p.less(n * m)
        v = dict(a=n, b=m, c=k)
        f2 = lose(p, S, o, o1, k)
        p.ask([both, f2], left_words(S, o), SHORT_LEFT)
        fn = lambda p, v: p.op(p.times(v["a"], v["b"], "The " + bx + " make @."), "-", v["c"], "That leaves @.")
    p.vary = [("a", [f"And with {{x}} {bx}?", f"what if {he} had {{x}} {bx}?", f"and {{x}} {bx}?", f"What about {{x}} {bx}?"], p.count)]
    return v, fn


def change(p):
    """what is left of a note after buying"""
    r = p.r
    S = p.subject()
    o1 = r.choice(PRICED)
    o = plural(o1)
    m = p.money()
    n, c = p.count(), p.price()
    if c < 2:
        raise Bad
    he, do = S.he, S.does
    p.what = "dollars"
    one = r.random() < 0.45
    t = c if one else n * c
    w = r.choice([x for x in (5, 10, 20, 50, 100, 200, 500) if x > t] or [t + p.more()]) if r.random() < 0.7 else t + p.more()
    buy = [f"{S.vs('buy')} {a(o1)} for {m(c)}", f"{a(o1)} costs {m(c)}", f"{S.vs('spend')} {m(c)} on {a(o1)}"] if one else [f"{S.vs('buy')} {n} {o} for {m(c)} each", f"{S.vs('buy')} {n} {o} at {m(c)} each", f"{n} {o} cost {m(c)} each", f"{S.vs('get')} {n} {o} that cost {m(c)} each"]
    if r.random() < 0.5:
        pay = [f"{he} {S.v('pay')} with {m(w)}", f"{he} {S.v('pay')} with a ${w} bill", f"{he} {S.v('give')} the clerk {m(w)}", f"{he} {S.v('hand')} over {m(w)}", f"{he} {S.v('give')} {m(w)}", f"{he} {S.v('pay')} {m(w)}"]
        qs = [f"how much change {do} {he} get", f"how much change is that", f"what is the change", f"how much {do} {he} get back", f"how much money {do} {he} get back", f"how much change", f"how many dollars {do} {he} get back"]
        p.ask([buy, pay], qs, ("how much change", "change", "what's the change", f"how much {do} {he} get back"))
    else:
        has = [f"{S.vs('have')} {m(w)}", f"{S.n} had {m(w)}"]
        buy2 = [f"{he} {S.v('buy')} {a(o1)} for {m(c)}", f"{he} {S.v('spend')} {m(c)}", f"{he} {S.v('spend')} {m(c)} on {a(o1)}", f"{he} {S.v('pay')} {m(c)} for {a(o1)}"] if one else [f"{he} {S.v('buy')} {n} {o} for {m(c)} each", f"{he} {S.v('buy')} {n} {o} at {m(c)} each", f"{he} {S.v('get')} {n} {o} for {m(c)} each", f"{he} {S.v('buy')} {n} {o} that cost {m(c)} each"]
        qs = [f"how much {do} {he} have left", f"how much money is left", f"how much is left", f"how many dollars {do} {he} have left", f"how much money {do} {he} have left", f"how many dollars are left", f"what is left", f"how much money {do} {he} have now", f"how much {do} {he} still have"]
        p.ask([has, buy2], qs, ("how much is left", "what's left", "how much left", f"how much {do} {he} have left"))
    v = dict(a=n, b=c, w=w)
    p.vary = [("w", [f"And with ${{x}}?", f"What if {he} {S.v('have')} ${{x}}?", f"and if {he} {S.v('pay')} with ${{x}}?"], lambda: t + r.randint(2, 60))]
    if one:
        v.pop("a")
        return v, lambda p, v: p.op(v["w"], "-", v["b"], "That leaves @.")
    p.vary.append(("a", [f"And with {{x}} {o}?", f"what if {he} {S.v('buy')} {{x}} {o}?", f"and for {{x}} {o}?"], lambda: r.randint(2, 9)))

    def fn(p, v):
        x = p.times(v["a"], v["b"], "The cost is @.")
        if x >= v["w"]:
            raise Bad
        return p.op(v["w"], "-", x, "That leaves @.")
    return v, fn


def two_prices(p):
    r = p.r
    S = p.subject()
    i, j = r.sample(PRICED, 2)
    m = p.money()
    he, do = S.he, S.does
    n, c, k, d = r.randint(1, 6), max(2, p.price()), r.randint(1, 6), max(2, p.price())
    if c == d:
        raise Bad
    p.what = "dollars"
    w = lambda n, x, c: r.choice([f"{a(x)} for {m(c)}", f"{a(x)} at {m(c)}", f"one {x} for {m(c)}"]) if n == 1 else r.choice([f"{n} {plural(x)} for {m(c)} each", f"{n} {plural(x)} at {m(c)} each", f"{n} {plural(x)} that cost {m(c)} each"])
    both = [f"{S.vs('buy')} {w(n, i, c)} and {w(k, j, d)}", f"{S.vs('get')} {w(n, i, c)} and {w(k, j, d)}", f"{S.vs('order')} {w(n, i, c)} and {w(k, j, d)}"]
    facts = [both]
    if r.random() < 0.3:
        f1 = [f"{a(i)} costs {m(c)} and {a(j)} costs {m(d)}", f"{plural(i)} cost {m(c)} and {plural(j)} cost {m(d)}", f"{plural(i)} are {m(c)} each and {plural(j)} are {m(d)} each"]
        num = lambda n, x: f"{n} {plural(x)}" if n > 1 else a(x)
        facts = [f1, [f"{S.vs('buy')} {num(n, i)} and {num(k, j)}", f"{S.vs('want')} {num(n, i)} and {num(k, j)}"]]
    qs = [f"how much {do} {he} pay", f"how much is that", f"what is the total", f"how much {do} {he} spend", f"how much does it cost in total", f"how much {do} {he} pay altogether", f"what is the total cost", f"how much is it altogether", f"how many dollars {do} {he} spend"]
    p.ask(facts, qs, SHORT_COST)
    v = dict(n=n, c=c, k=k, d=d)

    def fn(p, v):
        x = v["c"] if v["n"] == 1 else p.times(v["n"], v["c"], f"The {plural(i)} cost @.")
        y = v["d"] if v["k"] == 1 else p.times(v["k"], v["d"], f"The {plural(j)} cost @.")
        return p.op(x, "+", y, "Together that is @.")
    if n > 1:
        p.vary = [("n", [f"And with {{x}} {plural(i)}?", f"what if {he} {S.v('buy')} {{x}} {plural(i)}?"], lambda: r.randint(2, 7))]
    return v, fn


def two_groups(p):
    """3 boxes of 6 and 2 bags of 5"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    b1, b2 = r.sample(BOXES, 2)
    n, m, k, d = r.randint(2, 7), p.size(), r.randint(2, 7), p.size()
    he, do = S.he, S.does
    x, y = plural(b1), plural(b2)
    if r.random() < 0.35:  # the same box: "2 boxes of 6 and 3 boxes of 4"
        b2, y = b1, x
    both = [f"{S.vs(w)} {n} {x} of {m} {o} and {k} {y} of {d}" + t for w in ("have", "buy", "get", "pack") for t in ("", f" {o}")] + [f"there are {n} {x} with {m} {o} each and {k} {y} with {d} {o} each", f"{S.vs('buy')} {n} {x} of {m} {o} and {k} {y} of {d} {o} each"]
    qs = [f"how many {o} {do} {he} have", f"how many {o} is that", f"how many {o} are there in total", f"how many {o} altogether", f"how many {o} in all", f"how many {o} {do} {he} have in total"]
    p.ask([both], qs, SHORT, [f"{n} {x} of {m} and {k} {y} of {d} {o}"])
    v = dict(n=n, m=m, k=k, d=d)
    p.vary = [("n", [f"And with {{x}} {x}?", f"what if there are {{x}} {x}?"], lambda: r.randint(2, 8))]
    if b1 == b2:
        p.vary = []
    return v, lambda p, v: p.op(p.times(v["n"], v["m"], f"The {x} make @."), "+", p.times(v["k"], v["d"], f"The {y} make @."), "Together that is @.")


def take_groups(p):
    """x - n*m"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    n, m = r.randint(2, 8), p.size()
    x = n * m + p.more()
    who = r.choice(WHO)
    he, do = S.he, S.does
    f1 = [f"{S.vs(w)} {x} {o}" for w in ("have", "have", "own", "start with", "buy")] + [f"there are {x} {o}"]
    f2 = [f"{he} {S.v('give')} {m} to each of {n} {who}", f"{he} {S.v('give')} {n} {who} {m} each", f"{n} {who} take {m} each", f"{he} {S.v('give')} {m} {o} to each of {S.his} {n} {who}", f"{n} {who} get {m} {o} each", f"{he} {S.v('use')} {m} a day for {n} days", f"{he} {S.v('sell')} {n} bags of {m}", f"each of {n} {who} takes {m}",
          f"{he} {S.v('use')} {m} every day for {n} days"]
    p.ask([f1, f2], left_words(S, o), SHORT_LEFT)
    v = dict(x=x, n=n, m=m)

    def fn(p, v):
        c = p.times(v["n"], v["m"], "That is @ fewer.")
        if c >= v["x"]:
            raise Bad
        return p.op(v["x"], "-", c, "That leaves @.")
    p.vary = [("x", [f"And with {{x}} {o} at first?", f"what if {he} had {{x}}?", f"and if {he} {S.v('start')} with {{x}}?"], lambda: v["n"] * v["m"] + r.randint(2, 60)), ("n", [f"And with {{x}} {who}?", f"what if there are {{x}} {who}?"], lambda: r.randint(2, 8))]
    if "day" in p.text or "bags" in p.text:
        p.vary = p.vary[:1]
    return v, fn


def product_share(p):
    """n groups of m, shared by d"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    b1 = r.choice(BOXES)
    bx = plural(b1)
    n, m = r.randint(2, 8), p.size()
    if n * m > 999:
        raise Bad
    d = p.div(n * m)
    who = r.choice(WHO)
    he = S.he
    both = [f"{S.vs(w)} {n} {bx} {how}" for w in ("buy", "have", "get") for how in (f"of {m} {o}", f"with {m} {o} each", f"with {m} {o} in each")]
    f2 = [f"{d} {who} share them equally", f"{he} {S.v('share')} them among {d} {who}", f"{he} {S.v('split')} them between {d} {who}", f"{he} {S.v('divide')} the {o} among {d} {who}", f"they are shared by {d} {who}", f"{d} {who} share the {o}"]
    p.ask([both, f2], [f"how many {o} does each get", "how many does each get", f"how many {o} does each one get", f"how many {o} per person", f"how many {o} does each of them get"], ("how many each", "how many does each get", "how many for each"))
    v = dict(n=n, m=m, d=d)
    p.vary = [("d", [f"And with {{x}} {who}?", f"what if there are {{x}} {who}?", f"and among {{x}}?"], lambda: p.div(n * m))]
    return v, lambda p, v: p.op(p.times(v["n"], v["m"], "In all that is @."), "/", v["d"], "Each gets @.")


SCHEMAS = [(groups_more, 6), (change, 7), (two_prices, 5), (two_groups, 3), (take_groups, 4), (product_share, 3)]
