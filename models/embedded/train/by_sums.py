"""Short questions whose first step adds or subtracts."""
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


SCHEMAS = [(gained, 9), (lost, 11), (scene, 8), (chain, 8), (both, 9), (compare_more, 8), (twice_both, 4), (difference, 6), (need, 6), (rest, 6), (before, 6), (age, 9), (spend, 6), (sum_share, 4), (shape, 3)]
