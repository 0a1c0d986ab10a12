"""Short questions about a missing number: up to a goal, the rest of a whole, what there was before."""
from changes import lose
from wording import *


def need(p):
    """how many are missing to a goal"""
    r = p.r
    S = p.subject()
    cash = r.random() < 0.35
    m = p.money()
    o, o1 = p.noun()
    x = p.have()
    t = x + p.more()
    he, do = S.he, S.does
    v = dict(t=t, a=x)
    if cash:
        thing = r.choice(["bike", "phone", "game", "book", "toy", "camera", "guitar", "scooter", "trip", "pair of shoes", "watch", "tablet"])
        p.what = "dollars"
        f1 = [f"{S.vs('have')} {m(x)}", f"{S.n} saved {m(x)}", f"{S.n} already {'have' if S.pl else 'has'} {m(x)}"]
        f2 = [f"{a(thing)} costs {m(t)}", f"{he} {S.v('want')} {a(thing)} that costs {m(t)}", f"{he} {S.v('need')} {m(t)} for {a(thing)}", f"{he} {S.v('want')} to buy {a(thing)} for {m(t)}", f"the {thing} {he} {S.v('want')} costs {m(t)}", f"{he} {S.v('need')} {m(t)}"]
        qs = [f"how much more {do} {he} need", f"how much is missing", f"how much more money {do} {he} need", f"how much {do} {he} still need", f"how many more dollars {do} {he} need", f"how much more {do} {he} have to save"]
        p.ask([f1, f2] if r.random() < 0.6 else [f2[:1] + f2[2:3] if S.he == "I" else f2[:1], f1], qs, ("how much more", "how much is missing", f"how much more {do} {he} need"))
    else:
        f1 = [f"{S.vs('have')} {x} {o}", f"{S.n} already {'have' if S.pl else 'has'} {x} {o}", f"{S.n} collected {x} {o}"]
        f2 = [f"{he} {S.v('need')} {t}", f"{he} {S.v('want')} {t}", f"{he} {S.v('need')} {t} {o}", f"{he} {S.v('want')} to have {t}", f"{S.his} goal is {t}", f"{he} {S.v('want')} to reach {t}"]
        qs = [f"how many more {do} {he} need", f"how many more {o} {do} {he} need", f"how many are missing", f"how many {o} are missing", f"how many {do} {he} still need", f"how many {o} {do} {he} still need"]
        if r.random() < 0.3:
            p.ask([f1], [f"how many more {do} {he} need to have {t}", f"how many more {o} {do} {he} need to reach {t}", f"how many more to get {t}", f"how many more {o} {do} {he} need for {t}"], (f"how many more to reach {t}", f"how many more {do} {he} need to have {t}"))
        else:
            p.ask([f1, f2], qs, ("how many more", "how many are missing", f"how many more {do} {he} need"), [f"has {x} {o}, needs {t}", f"{x} of {t} {o}"])
    p.vary = [("t", [f"And if {he} {S.v('need')} {{x}}?", f"what if {he} {S.v('need')} {{x}}?", "and for {x}?"], lambda: x + r.randint(2, 90)), ("a", [f"And if {he} {S.v('have')} {{x}}?", f"what if {he} had {{x}}?"], lambda: r.randint(1, t - 1))]
    return v, lambda p, v: p.op(v["t"], "-", v["a"], "To reach it takes @ more.")


WHOLE = [("students", "girls", "boys", "in a class"), ("people", "adults", "children", "on a bus"), ("animals", "cows", "sheep", "on a farm"), ("children", "boys", "girls", "in a group"), ("fruits", "apples", "pears", "in a bowl"), ("balls", "red", "blue", "in a bag"), ("marbles", "green", "red", "in a jar"), ("cars", "black", "white", "in a parking lot"),
         ("flowers", "roses", "tulips", "in a garden"), ("pets", "dogs", "cats", "in a shelter"), ("eggs", "brown", "white", "in a box"), ("books", "old", "new", "on a shelf"), ("players", "girls", "boys", "on a team"), ("guests", "men", "women", "at a party"), ("birds", "ducks", "geese", "on a lake"), ("cookies", "big", "small", "on a plate"), ("seats", "taken", "free", "in a hall"), ("lights", "on", "off", "in a house"), ("workers", "men", "women", "in a factory")]


def rest(p):
    """the other part of a whole; the rest of a way"""
    r = p.r
    x = max(4, p.have())
    k = r.randint(1, x - 1) if p.h == 0 else p.less(x)
    v = dict(t=x, a=k)
    if r.random() < 0.55:
        o, i, j, where = r.choice(WHOLE)
        p.what = o
        f1 = [f"there are {x} {o} {where}", f"{where} there are {x} {o}", f"we have {x} {o} {where}"]
        f2 = [f"{k} of them are {i}", f"{k} are {i}", f"{k} of the {o} are {i}"]
        f2b = [f2, [f"the rest are {j}", f"the others are {j}"]] if r.random() < 0.4 else [f2]
        qs = [f"how many are {j}", f"how many {j} are there" if i in ("girls", "boys", "adults", "cows", "apples", "roses", "dogs", "men", "ducks") else f"how many {o} are {j}", f"how many of them are {j}"]
        p.ask([f1, *f2b], qs, (f"how many {j}", f"how many are {j}"), [f"{x} {o}, {k} {i}", f"{x} {o}, {k} are {i}"])
        p.vary = [("a", [f"And if {{x}} are {i}?", f"what if {{x}} are {i}?", f"what if {{x}} of them are {i}?"], lambda: r.randint(1, x - 1))]
    else:
        S = p.subject()
        w, o, did = r.choice([("has", "pages", "read"), ("is", "miles", "walked"), ("is", "miles", "driven"), ("has", "problems", "solved"), ("has", "pages", "read"), ("has", "episodes", "seen"), ("has", "rooms", "cleaned"), ("is", "km", "cycled")])
        what = {"pages": "a book", "miles": "a trip", "problems": "a test", "episodes": "a show", "rooms": "a house", "km": "a tour"}[o]
        p.what = o
        he, has = S.he, "have" if S.pl else "has"
        f1 = [f"{what} {w} {x} {o}" + (" long" if w == "is" else ""), f"{what} of {x} {o}"][:1]
        f2 = [f"{S.n} {has} {did} {k}", f"{S.n} {has} {did} {k} {o}", f"{S.n} {has} already {did} {k} {o}"]
        qs = [f"how many {o} are left", f"how many {o} remain", f"how many {o} {S.does} {he} still have to go", f"how many are left", f"how many {o} are still to go", f"how many more {o} are there"]
        p.ask([f1, f2], qs, SHORT_LEFT, [f"{x} {o}, {k} done"])
        p.vary = [("a", [f"And after {{x}} {o}?", f"what if it is {{x}} {o}?"], lambda: r.randint(1, x - 1))]
    return v, lambda p, v: p.op(v["t"], "-", v["a"], "The rest is @.")


def before(p):
    """how many there were, or how many came or went"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    x = p.have()
    he, do = S.he, S.does
    k = r.random()
    if k < 0.35:  # lost b, a are left
        b = p.more()
        v = dict(a=x, b=b)
        f = [[t for t in lose(p, S, o, o1, b) if t.startswith(he + " ") and "then" not in t] or [f"{he} {S.v('lose')} {b}"]]
        f[0] = [S.n + t[len(he):] for t in f[0]]
        f.append([f"{he} {'have' if S.pl else 'has'} {x} left", f"now {x} are left", f"{x} {o} are left", f"now {he} {'have' if S.pl else 'has'} {x} {o}"])
        op, t = "+", "At first there were @."
    elif k < 0.7:  # got b, has a now
        b = r.randint(1, x - 1)
        v = dict(a=x, b=b)
        f = [[f"{S.n} got {b} {o}", f"{S.n} found {b} {o}", f"{S.vs('get')} {b} more {o}", f"{S.vs('find')} {b} {o}", f"{S.vs('buy')} {b} {o}", f"{S.n} bought {b} more {o}"], [f"now {he} {'have' if S.pl else 'has'} {x}", f"now {he} {'have' if S.pl else 'has'} {x} {o}", f"then {he} {'have' if S.pl else 'has'} {x}"]]
        op, t = "-", "At first there were @."
    else:  # had, now has
        b = r.randint(1, x - 1)
        v = dict(a=x, b=b)
        up = r.random() < 0.5
        i, j = (b, x) if up else (x, b)
        f = [[f"{S.n} had {i} {o}", f"{S.n} had {i} {o} yesterday", f"at first {S.n} had {i} {o}"], [f"now {he} {'have' if S.pl else 'has'} {j}", f"now there are {j}", f"{he} {'have' if S.pl else 'has'} {j} now", f"today {he} {'have' if S.pl else 'has'} {j}"]]
        qs = [f"how many did {he} get", f"how many {o} did {he} get", "how many are new", f"how many {o} were added"] if up else [f"how many did {he} lose", f"how many {o} did {he} lose", "how many are gone", f"how many {o} did {he} give away", f"how many are missing", f"how many {o} are gone", f"how many did {he} use"]
        p.ask(f, qs, qs)
        return v, lambda p, v: p.op(v["a"], "-", v["b"], "The difference is @.")
    qs = [f"how many {o} did {he} have at first", f"how many did {he} have before", f"how many {o} did {he} have before", f"how many did {he} have at the start", f"how many were there at first", f"how many {o} did {he} have in the beginning", f"how many {o} were there before"]
    p.ask(f, qs, ("how many at first", "how many before", f"how many did {he} have before"))
    p.skel.append(op)
    return v, lambda p, v: p.op(v["a"], op, v["b"], t)


SCHEMAS = [(need, 6), (rest, 6), (before, 6)]
