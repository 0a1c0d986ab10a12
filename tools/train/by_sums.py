"""Short questions about what comes and goes, and about parts together."""
from changes import gain, left_words, lose
from wording import *

NOW = ("how many now", "how many", "how many in total", "how many is that", "how many in all")


def owns(p, S, o, x):
    return [f"{S.vs(w)} {x} {o}" for w in ("have", "have", "have", "have", "own", "buy", "collect", "start with", "get")] + [f"there are {x} {o} in {S.his} box", f"{S.n} had {x} {o}", f"there are {x} {o}", f"{S.n} {'have' if S.pl else 'has'} got {x} {o}"]


def gained(p):
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    v = dict(a=p.have(), b=p.more())
    he, do = S.he, S.does
    qs = [f"how many {o} {do} {he} have now", f"how many {o} {do} {he} have", f"how many {o} are there now", f"how many {o} is that", f"how many {do} {he} have now", f"how many {o} {do} {he} have in total", f"how many {o} {do} {he} have in all", f"how many {o} {do} {he} have altogether", f"what is the total", f"how many {o} now",
          f"how many {do} {he} have"]
    p.ask([owns(p, S, o, v["a"]), gain(p, S, o, o1, v["b"])], qs, NOW, [f"{v['a']} {o} plus {v['b']} more", f"{v['a']} {o} and {v['b']} more"])
    p.vary = [("b", [f"And with {{x}} more?", f"what if {he} {S.v('get')} {{x}} instead?", f"and if {he} {S.v('get')} {{x}} instead?", "What if it is {x} more instead?", "and with {x} instead?", f"what if it were {{x}} instead of {v['b']}?"], p.more), ("a", [f"What if {he} had {{x}} at first?", f"and if {he} {S.v('start')} with {{x}}?", f"and with {{x}} at the start?", f"what if {he} started with {{x}} {o}?"], p.have)]
    return v, lambda p, v: p.op(v["a"], "+", v["b"], "With the new ones it is @.")


def lost(p):
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    x = p.have()
    if x < 4:
        raise Bad
    v = dict(a=x, b=r.randint(1, x - 1) if p.h == 0 else p.less(x))
    he = S.he
    p.ask([owns(p, S, o, x), lose(p, S, o, o1, v["b"])], left_words(S, o), SHORT_LEFT, [f"{x} {o} minus {v['b']}", f"{x} {o}, {v['b']} gone", f"{x} {o}, {v['b']} are lost"])
    p.vary = [("b", [f"And if it is {{x}} instead?", f"what if {he} {S.v('lose')} {{x}} instead?", "and with {x} instead?", f"what if it were {{x}} instead of {v['b']}?"], lambda: p.less(x)), ("a", [f"What if {he} had {{x}} at first?", f"and if {he} {S.v('start')} with {{x}}?", f"and with {{x}} at the start?"], lambda: v["b"] + p.more())]
    return v, lambda p, v: p.op(v["a"], "-", v["b"], "That leaves @.")


SCENES = [("on a bus", "people", ["get on", "board"], ["get off", "leave"]), ("in a tree", "birds", ["fly in", "join them", "land there"], ["fly away", "fly off"]), ("in a pond", "frogs", ["jump in", "join them"], ["jump out", "hop away"]), ("in a room", "people", ["come in", "enter"], ["leave", "go home", "walk out"]),
          ("in a class", "students", ["join", "come new"], ["go home", "are sick", "leave"]), ("in a parking lot", "cars", ["arrive", "drive in"], ["leave", "drive away"]), ("on a shelf", "books", ["are added", "are put there"], ["are taken", "fall down", "are borrowed"]), ("at a party", "guests", ["arrive", "come later"], ["leave", "go home"]),
          ("on a train", "passengers", ["get on", "board"], ["get off"]), ("in a garden", "flowers", ["grow", "are planted"], ["die", "are picked", "wither"]), ("in a tank", "fish", ["are added"], ["die", "are sold"]), ("on a farm", "cows", ["are bought", "are born"], ["are sold"]), ("in a shop", "toys", ["are delivered", "come in"], ["are sold"]),
          ("in the fridge", "eggs", ["are added"], ["are used", "are eaten", "break"]), ("in a box", "pencils", ["are put in"], ["are taken out", "are lost"]), ("on a plate", "cookies", ["are added"], ["are eaten"]), ("in a basket", "apples", ["are put in"], ["are eaten", "are rotten", "are taken out"]), ("on a team", "players", ["join"], ["leave", "are injured"]),
          ("on the bus", "kids", ["get on"], ["get off"]), ("in a library", "books", ["come back"], ["are borrowed", "are lent out"]), ("in the yard", "chickens", ["come"], ["run away"]), ("in a park", "trees", ["are planted"], ["are cut down", "fall"])]


def scene(p):
    """people and things that come and go"""
    r = p.r
    where, o, come, go = r.choice(SCENES)
    x = max(5, p.have())
    p.what = o
    v = dict(a=x)
    f = [[f"there are {x} {o} {where}", f"{x} {o} are {where}", f"{where} there are {x} {o}"]]
    signs = r.choice([["+"], ["-"], ["-"], ["+", "-"], ["-", "+"], ["-", "-"], ["+", "+"]])
    y = x
    for i, s in enumerate(signs):
        k = p.more() if s == "+" else r.randint(1, min(y - 1, (15, 60, 300)[p.h])) if y > 2 else 1
        v["bcd"[i]] = k
        y = y + k if s == "+" else y - k
        w = r.choice(come if s == "+" else go)
        f.append([f"{k} {w}", f"then {k} {w}", f"{k} more {o} {w}" if s == "+" else f"{k} of them {w}", f"{k} {o} {w}", f"{k} more {w}" if s == "+" else f"then {k} {o} {w}", f"{k} new {o} {w}" if s == "+" else f"later {k} {w}"])
    if y < 1:
        raise Bad
    p.skel += signs
    if signs[-1] == "-":
        qs = [f"how many {o} are left", f"how many are left", f"how many {o} remain", f"how many are still there", f"how many {o} are there now", f"how many {o} are still {where}"]
        p.ask(f, qs, SHORT_LEFT, [f"{x} {o} {where}, {v['b']} {r.choice(go)}"] if signs == ["-"] else ())
    else:
        qs = [f"how many {o} are there now", f"how many {o} are {where} now", f"how many are there now", f"how many {o} are there", f"how many {o} is that", f"how many {o} are {where}"]
        p.ask(f, qs, NOW, [f"{x} {o} {where}, {v['b']} {r.choice(come)}"] if signs == ["+"] else ())

    def fn(p, v):
        y = v["a"]
        for s, k in zip(signs, "bcd"):
            y = p.op(y, s, v[k], f"With {v[k]} more it is @." if s == "+" else "That leaves @.")
        return y
    if len(signs) == 1:
        p.vary = [("b", [f"And if {{x}} {w}?", f"what if {{x}} {w}?", f"and if {{x}} of them {w}?" if signs == ["-"] else f"What if {{x}} {o} {w}?"], lambda: r.randint(2, max(3, min(x - 1, 60))))]
    return v, fn


def chain(p):
    """two or three changes"""
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    x = max(6, p.have())
    signs = r.choice([["+", "-"], ["-", "+"], ["-", "-"], ["+", "+"], ["-", "-"], ["+", "-", "+"], ["-", "+", "-"], ["+", "-", "-"]])
    v, f, y = dict(a=x), [owns(p, S, o, x)], x
    for i, s in enumerate(signs):
        k = p.more() if s == "+" else r.randint(1, min(y - 1, (15, 60, 300)[p.h])) if y > 2 else 1
        v["bcd"[i]] = k
        y = y + k if s == "+" else y - k
        f.append([t if i == 0 or r.random() < 0.5 else "then " + t for t in (gain if s == "+" else lose)(p, S, o, o1, k) if not t.startswith("then ")])
    if y < 1:
        raise Bad
    he, do = S.he, S.does
    p.skel += signs
    qs = [f"how many {o} {do} {he} have now", f"how many {o} {do} {he} have", f"how many {do} {he} have now", f"how many {o} are there now", f"how many {o} {do} {he} have in the end", f"how many {o} now"] + ([f"how many {o} are left", "how many are left", f"how many {o} {do} {he} have left"] if signs[-1] == "-" else [])
    p.ask(f, qs, SHORT_LEFT[:1] + ("how many now", "how many") if signs[-1] == "-" else ("how many now", "how many"))

    def fn(p, v):
        y = v["a"]
        for s, k in zip(signs, "bcd"):
            y = p.op(y, s, v[k], f"With {v[k]} more it is @." if s == "+" else "That leaves @.")
        return y
    p.vary = [("a", [f"What if {he} had {{x}} at first?", f"and if {he} {S.v('start')} with {{x}}?", f"And with {{x}} {o} at the start?"], lambda: x + r.randint(1, 40))]
    return v, fn


COLORS = "red blue green yellow white black big small old new".split()
PAIRS = [("boys", "girls", "children", "in a class"), ("cats", "dogs", "animals", "in a shelter"), ("men", "women", "people", "in a room"), ("cows", "sheep", "animals", "on a farm"), ("apples", "pears", "fruits", "in a bowl"), ("cars", "trucks", "vehicles", "in a parking lot"), ("adults", "children", "people", "on a bus"), ("roses", "tulips", "flowers", "in a garden"),
         ("pens", "pencils", "things", "in a case"), ("cakes", "pies", "desserts", "on a table"), ("forks", "spoons", "pieces", "in a drawer"), ("chickens", "ducks", "birds", "in a yard"), ("oranges", "lemons", "fruits", "in a basket"), ("shirts", "hats", "clothes", "in a box"), ("goats", "pigs", "animals", "in a barn"), ("students", "teachers", "people", "in a school")]


def both(p):
    """two or three parts together"""
    r = p.r
    k = r.random()
    x, y, z = p.have(), p.have(), p.more()
    three = r.random() < 0.2
    v = dict(a=x, b=y)
    if three:
        v["c"] = z
    if k < 0.3:
        i, j, all_, where = r.choice(PAIRS)
        p.what = all_
        three, _ = False, v.pop("c", 0)
        f = [[f"there are {x} {i} and {y} {j} {where}", f"{where} there are {x} {i} and {y} {j}", f"there are {x} {i} and there are {y} {j} {where}", f"we see {x} {i} and {y} {j}", f"we count {x} {i} and {y} {j} {where}"]]
        qs = [f"how many {all_} are there", f"how many {all_} are there in all", f"how many {all_} is that", f"how many {all_} are {where}", f"how many {all_} in total", f"how many are there altogether", f"how many {all_} altogether"]
        p.ask(f, qs, SHORT, [f"{x} {i} and {y} {j}", f"{x} {i} + {y} {j}", f"{x} {i}, {y} {j}"])
    elif k < 0.6:
        o, o1 = p.noun()
        c = r.sample(COLORS[:6] if r.random() < 0.7 else COLORS, 3)
        S = p.subject()
        t = f"{x} {c[0]} {o}, {y} {c[1]} {o} and {z} {c[2]} {o}" if three else r.choice([f"{x} {c[0]} {o} and {y} {c[1]} {o}", f"{x} {c[0]} and {y} {c[1]} {o}", f"{x} {c[0]} {o} and {y} {c[1]} ones"])
        f = [[f"{S.vs('have')} {t}", f"there are {t}", f"{S.vs('buy')} {t}", f"{S.vs('see')} {t}", f"{S.vs('find')} {t}", f"a box has {t}"]]
        qs = [f"how many {o} are there", f"how many {o} is that", f"how many {o} {S.does} {S.he} have", f"how many {o} are there in all", f"how many {o} in total", f"how many {o} altogether", f"how many {o} {S.does} {S.he} have in all"]
        if "box has" in f[0][-1]:
            f[0].pop()
        p.ask(f, qs, SHORT, [t])
    else:
        o, o1 = p.noun()
        S = p.subject(0.25, 0.1, 0)
        b, _ = p.name()
        c, _ = p.name()
        w = r.choice(["have", "have", "have", "find", "pick", "sell", "collect", "make", "buy"])
        f = [[f"{S.vs(w)} {x} {o}", f"{S.vs(w)} {x} {o}"], [f"{b} {third(w)} {y}", f"{b} {third(w)} {y} {o}"]] + ([[f"{c} {third(w)} {z}", f"{c} {third(w)} {z} {o}"]] if three else [])
        they = "we" if S.he in ("I", "we") else "they"
        qs = [f"how many {o} do {they} {w} together", f"how many {o} do {they} {w} in all", f"how many {o} do {they} {w} altogether", f"how many {o} do {they} {w} in total", f"how many {o} is that together", f"how many do {they} {w} together", f"how many {o} are there in total", f"how many {o} do {they} {w}"]
        p.ask(f, qs, SHORT, [f"{S.n} {x}, {b} {y} {o}"] if S.he in ("he", "she") and not three else ())
    p.vary = [("b", [f"And if the second number is {{x}}?", f"what if it is {{x}} instead of {y}?"], p.have)] if x != y else []

    def fn(p, v):
        t = p.op(v["a"], "+", v["b"], "Together that is @.")
        return p.op(t, "+", v["c"], "Together that is @.") if "c" in v else t
    return v, fn


SCHEMAS = [(gained, 9), (lost, 11), (scene, 8), (chain, 8), (both, 9)]
