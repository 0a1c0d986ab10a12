"""Short questions about ages, money and lengths, and about sums that are shared."""
from by_sums import COLORS
from changes import gain, lose
from wording import *

REL = [("sister", "she"), ("brother", "he"), ("mother", "she"), ("father", "he"), ("friend", "he"), ("friend", "she"), ("cousin", "he"), ("cousin", "she"), ("dog", "it"), ("aunt", "she"), ("uncle", "he"), ("wife", "she"), ("husband", "he"), ("son", "he"), ("daughter", "she"), ("teacher", "she"), ("mom", "she"), ("dad", "he")]


def age(p):
    r = p.r
    S = p.subject(0.3, 0.1, 0)
    x = r.randint(4, (15, 40, 80)[p.h])
    is_ = S.isv
    f1 = [f"{S.n} {is_} {x} years old", f"{S.n} {is_} {x}", f"{S.n} {is_} {x} years old"]
    k = r.random()
    p.what = "years"
    if k < 0.6:
        if r.random() < 0.6:
            rel, h2 = r.choice(REL)
            B, bs = f"{S.his} {rel}", h2
        else:
            B, (bs, _, _) = p.name()
        w = r.choice(["older", "younger", "times"])
        if w == "younger":
            d = r.randint(1, x - 1)
        else:
            d = r.randint(2, 30) if w == "older" else r.choice([2, 2, 3, 4])
        if w == "times" and x * d > 110:
            raise Bad
        A = S.n if S.he != "I" else "me"
        if w == "times":
            f2 = [f"{B} is {MANY[d]} as old", f"{B} is {MANY[d]} as old as {A}", f"{B} is {MANY[d]} {'my' if S.he == 'I' else S.his} age"]
        else:
            f2 = [f"{B} is {d} years {w}", f"{B} is {d} years {w} than {A}", f"{B} is {d} {w}", f"{B} is {d} years {w} than {S.him}"]
        qs = [f"how old is {bs}", f"how old is {B}", f"what is {B}'s age", f"how old is {bs} now", f"how many years old is {bs}"]
        tog = r.random() < 0.15
        if tog:
            they = "we" if S.he == "I" else "they"
            qs = [f"how old are {they} together", "what is the sum of the ages", f"how old are {they} in total"]
        p.ask([f1, f2], qs, qs)
        v = dict(a=x, b=d)
        op = {"older": "+", "younger": "-", "times": "*"}[w]
        p.skel += [w, str(tog)]

        def fn(p, v):
            y = p.op(v["a"], op, v["b"], f"{cap(bs)} is @.")
            return p.op(v["a"], "+", y, "Together that is @.") if tog else y
        if w != "times":
            p.vary = [("b", [f"And if {bs} is {{x}} years {w}?", f"what if {bs} is {{x}} years {w}?", f"and {{x}} years {w}?"], lambda: r.randint(2, max(3, min(x - 1, 30))))]
        p.vary.append(("a", [f"And if {S.n} {is_} {{x}}?", f"what if {S.n} {'was' if not S.pl or S.he == 'I' else 'were'} {{x}}?"], lambda: r.randint(max(4, x - 3), x + 20)))
        return v, fn
    n = r.randint(2, 30)
    ago = k > 0.8
    if ago:
        n = r.randint(1, x - 1)
        was = "was" if S.he == "I" or not S.pl else "were"
        qs = [f"how old {was} {S.he} {n} years ago", f"how old {was} {S.n} {n} years ago", f"what was {S.his} age {n} years ago"]
    else:
        qs = [f"how old will {S.he} be in {n} years", f"how old {is_} {S.he} in {n} years", f"how old will {S.n} be in {n} years", f"how old will {S.he} be {n} years from now", f"how old will {S.he} be after {n} years", f"what will {S.his} age be in {n} years"]
    p.skel.append("ago" if ago else "in")
    p.ask([f1], qs, qs, [f"{S.n} {is_} {x}"])
    v = dict(a=x, b=n)
    p.vary = [("b", ["And {x} years ago?", "what about {x} years ago?"] if ago else ["And in {x} years?", "what about in {x} years?", "and in {x}?"], lambda: r.randint(1, x - 1) if ago else r.randint(2, 40))]
    return v, lambda p, v: p.op(v["a"], "-" if ago else "+", v["b"], "That makes @.")


def spend(p):
    """two costs together, or money before and after"""
    r = p.r
    S = p.subject()
    m = p.money()
    x, y = p.price() + 1, p.price() + 1
    i, j = r.sample(PRICED, 2)
    he, do = S.he, S.does
    p.what = "dollars"
    k = r.random()
    v = dict(a=x, b=y)
    if k < 0.5:
        f = [[f"{S.vs('buy')} {a(i)} for {m(x)} and {a(j)} for {m(y)}", f"{a(i)} costs {m(x)} and {a(j)} costs {m(y)}", f"{S.vs('spend')} {m(x)} on {a(i)} and {m(y)} on {a(j)}", f"{S.vs('pay')} {m(x)} for {a(i)} and {m(y)} for {a(j)}", f"{a(i)} is {m(x)} and {a(j)} is {m(y)}"]]
        qs = [f"how much {do} {he} pay", f"how much {do} {he} spend", f"how much is that together", f"how much do they cost together", f"what is the total", f"how much is that in total", f"how much {do} {he} spend in all", f"how much do both cost", f"what do both cost"]
        p.ask(f, qs, SHORT_COST, [f"{a(i)} for {m(x)}, {a(j)} for {m(y)}", f"{i} {m(x)}, {j} {m(y)}"])
        fn = lambda p, v: p.op(v["a"], "+", v["b"], "Together that is @.")
    elif k < 0.75:
        f = [[f"{S.vs('have')} {m(x)}", f"{S.n} had {m(x)}"], [f"{he} {S.v('get')} {m(y)} more", f"{he} {S.v('earn')} {m(y)}", f"{he} {S.v('find')} {m(y)}", f"{S.his} mom gives {S.him} {m(y)}", f"{he} {S.v('get')} {m(y)} for {S.his} birthday", f"grandma gives {S.him} {m(y)}", f"{he} {S.v('earn')} {m(y)} more"]]
        qs = [f"how much {do} {he} have now", f"how much money {do} {he} have", f"how many dollars {do} {he} have", f"how much is that", f"how much money {do} {he} have now", f"how much {do} {he} have in total"]
        p.ask(f, qs, ("how much now", "how much", "how much in total"))
        fn = lambda p, v: p.op(v["a"], "+", v["b"], "Together that is @.")
    else:
        if x == y:
            raise Bad
        v = dict(a=max(x, y), b=min(x, y))
        f = [[f"{a(i)} costs {m(x)}"], [f"{a(j)} costs {m(y)}", f"{a(j)} is {m(y)}"]]
        hi, lo = (i, j) if x > y else (j, i)
        p.ask(f, [f"how much more does the {hi} cost", f"how much cheaper is the {lo}", "what is the difference", f"how much more is the {hi}", f"how much more does the {hi} cost than the {lo}"], ("what is the difference", f"how much more is the {hi}"))
        fn = lambda p, v: p.op(v["a"], "-", v["b"], "The difference is @.")
    p.skel.append(str(k < 0.5) + str(k < 0.75))
    return v, fn


def sum_share(p):
    """(a + b) / d or (a - b) / d"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    t, d = p.divs()
    who = r.choice("friends children kids boxes bags people students plates".split())
    up = r.random() < 0.5
    he = S.he
    if up:
        if t < 3:
            raise Bad
        x = r.randint(1, t - 1)
        y = t - x
        f = [[f"{S.vs('have')} {x} {o}"], gain(p, S, o, o1, y)]
        if r.random() < 0.5:
            c = r.sample(COLORS[:6], 2)
            f = [[f"{S.vs('have')} {x} {c[0]} {o} and {y} {c[1]} {o}", f"there are {x} {c[0]} and {y} {c[1]} {o}"]]
    else:
        y = p.more()
        x = t + y
        f = [[f"{S.vs('have')} {x} {o}", f"{S.vs('buy')} {x} {o}"], lose(p, S, o, o1, y)]
    share = [f"{he} {S.v('share')} the rest among {d} {who}", f"{he} {S.v('share')} them among {d} {who}"] if who not in ("boxes", "bags", "plates") else [f"{he} {S.v('put')} the rest into {d} {who}", f"{he} {S.v('put')} them into {d} {who}"]
    share = share[1:] + [f"{d} {who} share them equally"] * (who not in ("boxes", "bags", "plates")) if up else share[:1] + ([f"{d} {who} share the rest", f"the rest are shared by {d} {who}"] if who not in ("boxes", "bags", "plates") else [f"the rest go into {d} {who}"])
    w1 = {"children": "child", "people": "person", "boxes": "box"}.get(who, who[:-1])
    qs = [f"how many {o} does each {w1} get", f"how many does each {w1} get", f"how many {o} does each get"] if who not in ("boxes", "bags", "plates") else [f"how many {o} are in each {w1}", f"how many {o} go in one {w1}", f"how many are in each {w1}"]
    p.ask(f + [share], qs, ("how many each", f"how many per {w1}", f"how many in each" if who in ("boxes", "bags", "plates") else "how many does each get"))
    v = dict(a=x, b=y, d=d)
    p.skel.append(str(up))
    s = "+" if up else "-"

    def fn(p, v):
        z = p.op(v["a"], s, v["b"], "Together that is @." if up else "That leaves @.")
        return p.op(z, "/", v["d"], "Each gets @.")
    p.vary = [("d", [f"And with {{x}} {who}?", f"what if there are {{x}} {who}?"], lambda: p.div(t))]
    return v, fn


def shape(p):
    r = p.r
    x, y = p.size(), p.size()
    u = r.choice(["cm", "meters", "feet", "m", "inches"])
    k = r.random()
    p.what = u
    if k < 0.35:
        what = r.choice(["room", "garden", "rectangle", "field", "wall", "floor", "rug"])
        f = [[f"{a(what)} is {x} {u} long and {y} {u} wide", f"{a(what)} is {x} by {y} {u}", f"{a(what)} has sides of {x} and {y} {u}", f"{a(what)} measures {x} by {y} {u}"]]
        p.ask(f, ["what is the area", f"what is the area of the {what}", "how big is the area", "how large is the area"], ("area", "what is the area"), [f"{what} {x} by {y}"])
        p.skel.append("area")
        return dict(a=x, b=y), lambda p, v: p.times(v["a"], v["b"], "The area is @.")
    if k < 0.6:
        what = r.choice(["room", "garden", "rectangle", "field", "yard"])
        f = [[f"{a(what)} is {x} {u} long and {y} {u} wide", f"{a(what)} is {x} by {y} {u}", f"{a(what)} has sides of {x} and {y} {u}"]]
        p.ask(f, ["what is the perimeter", f"what is the perimeter of the {what}", "how long is the way around it", "how long is a fence around it"], ("perimeter", "what is the perimeter"))
        p.skel.append("peri")
        return dict(a=x, b=y), lambda p, v: p.op(p.op(v["a"], "+", v["b"], "Two sides are @."), "*", 2, "All four are @.")
    n, t = r.choice([("square", 4), ("triangle", 3), ("hexagon", 6), ("square", 4)])
    f = [[f"{a(n)} has sides of {x} {u}", f"each side of {a(n)} is {x} {u}", f"the sides of {a(n)} are {x} {u} long", f"one side of {a(n)} is {x} {u}"]]
    p.ask(f, ["what is the perimeter", f"what is the perimeter of the {n}", "how long are all sides together"], ("perimeter", "what is the perimeter"))
    p.skel.append(n)
    return dict(a=x, b=t), lambda p, v: p.times(v["a"], v["b"], "All sides are @.")


SCHEMAS = [(age, 9), (spend, 6), (sum_share, 4), (shape, 3)]
