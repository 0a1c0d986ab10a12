"""Short questions: scores and measures compared, packs of a known number, twice as many at another time, sides and areas, trips of weeks."""
from by_words import DAYS2, DO, y
from wording import *

MEASURE = [("high", "higher", "lower", "feet meters inches stories".split(), "tower tree wall hill building oak pine ladder shelf mountain bridge statue house".split()), ("long", "longer", "shorter", "feet meters cm inches miles".split(), "rope board river road snake train pipe scarf fence trail belt hike movie".split()),
           ("deep", "deeper", "shallower", "feet meters".split(), "lake well pool hole river pond canyon".split()), ("tall", "taller", "shorter", "feet cm inches".split(), "girl boy man woman giraffe tree horse player dancer".split()), ("wide", "wider", "narrower", "feet meters inches cm".split(), "road river door desk street gate window".split()),
           ("heavy", "heavier", "lighter", "kg pounds kilos".split(), "bag box dog stone melon crate bike pumpkin suitcase".split()), ("old", "older", "younger", ["years"], "tree house church man cat dog tortoise bridge wall".split())]
POINTS = "points goals runs laps games votes stars tricks coins medals baskets hits".split()


def score(p):
    """who has more, and by how much"""
    r = p.r
    a_, _ = p.name()
    b_, _ = p.name()
    x, z = p.have(), p.have()
    if x == z:
        raise Bad
    if r.random() < 0.5:
        o = r.choice(POINTS)
        p.what = o
        w = r.choice(["score", "get", "win", "make", "earn", "collect", "reach"])
        V = past(w) if r.random() < 0.6 else third(w)
        if r.random() < 0.3:
            a_, b_ = r.choice([("my team", "your team"), ("the red team", "the blue team"), ("our class", "their class"), ("the girls", "the boys"), ("team A", "team B")])
        f = [[f"{a_} {V} {x} {o} and {b_} {V} {z}", f"{a_} {V} {x} {o}, {b_} {z}", f"{a_} has {x} {o} and {b_} has {z}", f"{a_} {V} {x} {o}. {cap(b_)} {V} {z}", f"{a_} {V} {x} {o}, {b_} only {z}" if x > z else f"{a_} only {V} {x} {o}, {b_} {z}", f"{a_} beats {b_} {x} to {z}" if x > z else f"{b_} beats {a_} {z} to {x}", f"the score is {x} to {z}", f"{a_} got {x} {o} while {b_} got {z}"]]
        hi, lo = (a_, b_) if x > z else (b_, a_)
        qs = [f"by how many {o} did {hi} win", f"by how many is {hi} ahead", f"how many more {o} does {hi} have", f"how many {o} is {lo} behind", f"by how much does {hi} lead", f"how far behind is {lo}", f"what is the difference", f"by how many {o} is {hi} ahead of {lo}", f"by how much did {hi} win", f"how many {o} more than {lo} does {hi} have", f"how many {o} did {lo} lose by", f"what is the lead of {hi}"]
    else:
        adj, up, down, units, things = r.choice(MEASURE)
        u = r.choice(units)
        i, j = r.sample(things, 2)
        p.what = u
        is_ = r.choice(["is", "is", "was"])
        f = [[f"the {i} {is_} {x} {u} {adj} and the {j} {is_} {z} {u}", f"the {i} {is_} {x} {u} {adj}, the {j} only {z} {u}" if x > z else f"the {i} {is_} {x} {u} {adj}, the {j} even {z} {u}", f"a {i} {is_} {x} {u} {adj}. A {j} {is_} {z} {u} {adj}", f"the {i} {is_} {x} {u} {adj} but the {j} {is_} {z} {u}", f"one {i} {is_} {x} {u} {adj} and another {z} {u}", f"the {i} has {x} {u}, the {j} {z} {u}"]]
        hi, lo = (f"the {i}", f"the {j}") if x > z else (f"the {j}", f"the {i}")
        qs = [f"how many {u} {up} is {hi}", f"how much {up} is {hi}", f"how much {down} is {lo}", f"what is the difference", f"how many {u} {up} is {hi} than {lo}", f"by how many {u} is {hi} {up}", f"how much {up} is {hi} than {lo}", f"how many {u} is that more", f"how many {u} does {lo} lack"]
    p.ask(f, qs, ("what is the difference", "by how much", "difference"))
    return dict(a=x, b=z), lambda p, v: p.op(max(v["a"], v["b"]), "-", min(v["a"], v["b"]), "The difference is @.")


def packs(p):
    """3 six-packs of soda, a box of a dozen"""
    r = p.r
    o, o1 = y(p)
    S = p.subject()
    k = r.choice([2, 3, 4, 5, 6, 6, 6, 8, 10, 12])
    n = p.count()
    word = number_word(k)
    dozen = k == 12 and r.random() < 0.6
    pk = r.choice([f"{word}-pack", f"{k}-pack", f"{word}-pack"])
    many = f"{n} dozen {o}" if dozen else r.choice([f"{n} {pk}s of {o}", f"{n} packs of {word} {o}", f"{n} {pk}s", f"{n} sets of {word} {o}"])
    one = "" if dozen or "packs of" in many or "sets" in many else r.choice(["", "", f", that is {k} {o} each", f", {k} {o} in each", f" with {k} {o} each"])
    he, do = S.he, S.does
    if many.endswith("s") and o not in many and not one:
        one = f" with {k} {o} each"
    f = [[f"{S.vs(w)} {many}{one}" for w in ("buy", "have", "get", "bring", "order", "need", "sell", "find", "take")] + [f"there are {many}{one}", f"we have {many}{one}"]]
    e = r.choice(["", "", "", "+", "-"])
    p.skel.append(e)
    qs = [f"how many {o} is that", f"how many {o} {do} {he} have", f"how many {o} are there", f"how many {o} in all", f"how many {o} are that", f"how many {o} altogether", f"what is the number of {o}", f"how many single {o} is that"]
    v = dict(a=n, b=k)
    if e:
        m = p.more() if e == "+" else r.randint(1, n * k - 1)
        v["c"] = m
        f.append([f"{he} {S.v('find')} {m} more", f"{m} more {o} are there", f"{he} {S.v('get')} {m} single {o}", f"there are {m} extra {o}"] if e == "+" else [f"{he} {S.v('use')} {m}", f"{m} {o} are gone", f"{he} {S.v('give away')} {m} {o}", f"{he} {S.v('drink' if o1 in ('soda', 'bottle', 'can') else 'sell')} {m} {o}", f"{m} are used", f"{m} of them are bad"])
        qs = [f"how many {o} are left", f"how many are left", f"how many {o} {do} {he} have left", f"how many {o} remain"] if e == "-" else qs
    p.ask(f, qs, SHORT_LEFT if e == "-" else SHORT)

    def fn(p, v):
        z = p.times(v["a"], v["b"], "In all that is @.")
        return p.op(z, e, v["c"], "Together that is @." if e == "+" else "That leaves @.") if e else z
    if not e:
        p.vary = [("a", ["And with {x} of them?", "and {x}?", "what about {x} packs?"] if not dozen else ["And {x} dozen?", "what about {x} dozen?"], p.count)]
    return v, fn


def again(p):
    """so many at one time, twice as many (or k more, or fewer) at another"""
    r = p.r
    S = p.subject()
    S.past = S.past or r.random() < 0.5
    o, o1 = y(p)
    A, B = r.choice(DAYS2)
    w = r.choice(DO)
    x = p.have() if p.h < 2 else r.randint(20, 150)
    e = r.choice("**+-")
    k = r.choice([2, 2, 2, 3, 4]) if e == "*" else p.more() if e == "+" else r.randint(1, x - 1)
    t = f"{MANY[k]} as many" if e == "*" else f"{k} more" if e == "+" else f"{k} {r.choice(['fewer', 'less'])}"
    he, do = S.he, "did" if S.past else S.does
    come = r.choice([True, False, False])
    if come:
        g = r.choice("visitors guests people kids customers birds cars".split())
        o = p.what = g
        c, cp = r.choice([("come", "came"), ("are there", "were there"), ("arrive", "arrived"), ("stop by", "stopped by")])
        f = [[f"{A} {x} {g} {cp} and {t} {B}", f"{x} {g} {cp} {A} and {t} {B}", f"there were {x} {g} {A} and {t} {B}", f"{x} {g} {cp} {A}, {B} it was {t}", f"{x} {g} {cp} {A}. {cap(B)} {t} {cp}"]]
        last = [f"how many {g} {cp} {B}", f"how many {cp} {B}", f"how many {g} were there {B}", f"how many {g} is that {B}", f"how many was it {B}"]
        tog = [f"how many {g} {cp} in all", f"how many {g} {cp} altogether", f"how many {g} is that together", f"how many {g} {cp} on both days" if A.startswith("on") else f"how many {g} were there in total"]
    else:
        f = [[f"{S.vs(w)} {x} {o} {A} and {t} {B}", f"{A} {S.vs(w)} {x} {o} and {t} {B}", f"{S.vs(w)} {x} {o} {A}. {cap(B)} {he} {S.v(w)} {t}", f"{S.vs(w)} {x} {o} {A}, {B} {t}", f"{A} {S.vs(w)} {x} {o}. {cap(B)} {t}", f"{S.vs(w)} {x} {o} {A} and {B} {he} {S.v(w)} {t}", f"{S.vs(w)} {x} {o} {A} and {t} {o} {B}"]]
        last = [f"how many {o} {do} {he} {w} {B}", f"how many {do} {he} {w} {B}", f"how many {o} is that {B}", f"how many {o} were it {B}", f"how many {B}"]
        tog = [f"how many {o} {do} {he} {w} in all", f"how many {o} {do} {he} {w} altogether", f"how many {o} {do} {he} {w} on both days" if A.startswith("on") else f"how many {o} {do} {he} {w} both times", f"how many {o} is that together", f"how many {o} {do} {he} {w} in total", f"how many {o} {do} {he} {w} on the two days" if A.startswith("on") else f"how many {o} is that in all"]
    both = r.random() < 0.5
    p.skel += [e, str(both)]
    p.ask(f, tog if both else last, ("how many together", "how many in all", "how many in total") if both else (f"how many {B}",))

    def fn(p, v):
        z = p.op(v["a"], e, v["b"], f"{cap(MANY[v['b']])} as many is @." if e == "*" else f"With {v['b']} more it is @." if e == "+" else f"With {v['b']} fewer it is @.")
        return p.op(v["a"], "+", z, "Together that is @.") if both else z
    return dict(a=x, b=k), fn


LAND = "garden room yard field floor wall rug lawn plot court deck roof patch page board pool park kitchen hall terrace carpet tile window sheet bed".split()


def land(p):
    """the area of what is so long and so wide"""
    r = p.r
    x, z = p.size(), p.size()
    g = r.choice(LAND) + r.choice(["", "", " plot", " floor"])
    u = r.choice(["feet", "meters", "cm", "inches", "yards", "m"])
    be = r.choice(["is", "was", "measures"])
    f = [[f"a {g} {be} {x} by {z} {u}", f"the {g} {be} {x} {u} by {z} {u}", f"a {g} {be} {x} {u} long and {z} {u} wide", f"my {g} {be} {x} {u} times {z} {u}", f"a {x} by {z} {u} {g}", f"a {g} of {x} by {z} {u}", f"the sides of the {g} are {x} {u} and {z} {u}", f"a {g} has a length of {x} {u} and a width of {z} {u}", f"our {g} {be} {z} {u} wide and {x} {u} long"]]
    around = r.random() < 0.25
    p.what = u
    if around:
        qs = ["what is the perimeter", "how long is the way around it", f"how many {u} of fence go around it", "how far is it all the way around", "how long is its border", f"what is the perimeter in {u}"]
        p.ask(f, qs, ("perimeter", "what is the perimeter"))
        p.skel.append("peri")
        return dict(a=x, b=z), lambda p, v: p.op(p.op(v["a"], "+", v["b"], "Two sides are @."), "*", 2, "All four are @.")
    qs = ["what is the area", "what is its area", f"how many square {u} is that", f"how many square {u} are there", f"what is the area in square {u}", "how big is it", f"how large is the {g.split()[0]}", f"how many square {u} does it have", f"how many square {u} does the {g.split()[0]} cover"]
    p.ask(f, qs, ("area", "what is the area", f"how many square {u}"))
    p.skel.append("area")
    return dict(a=x, b=z), lambda p, v: p.times(v["a"], v["b"], "The area is @.")


SPAN = [("week", "days", 7), ("week", "days", 7), ("day", "hours", 24), ("hour", "minutes", 60), ("minute", "seconds", 60), ("year", "months", 12), ("dozen", "", 12), ("year", "weeks", 52), ("decade", "years", 10), ("foot", "inches", 12), ("dollar", "cents", 100), ("meter", "cm", 100)]
LASTS = ["a trip", "a holiday", "the camp", "a course", "vacation", "the trial", "a job", "the race", "a movie", "the flight", "my break", "the project", "school", "the show", "a ship's voyage", "the wait", "a visit", "the rain"]


def span(p):
    """a time, length or sum in smaller units"""
    r = p.r
    big, small, k = r.choice(SPAN)
    n = r.randint(2, min(999 // k, (9, 15, 60)[p.h]))
    bigs = {"foot": "feet", "dozen": "dozen"}.get(big, big + "s")
    if big == "dozen":
        o, _ = y(p)
        S = p.subject()
        f = [[f"{S.vs(w)} {n} dozen {o}" for w in ("buy", "have", "need", "order", "bake", "get")] + [f"there are {n} dozen {o}"]]
        p.ask(f, [f"how many {o} is that", f"how many {o} are there", f"how many {o} {S.does} {S.he} have", f"how many single {o} is that"], SHORT, [f"{n} dozen {o}"])
    elif big in ("week", "day", "hour", "minute", "year", "decade"):
        t = r.choice(LASTS)
        f = [[f"{t} lasts {n} {bigs}", f"{t} takes {n} {bigs}", f"{t} is {n} {bigs} long", f"it takes {n} {bigs}", f"we wait {n} {bigs}", f"I am away for {n} {bigs}"]]
        inq = [f"how many {small} does {t} of {n} {bigs} last", f"how many {small} does {t} of {n} {bigs} take", f"how many {small} is {t} of {n} {bigs}", f"how long is {t} of {n} {bigs} in {small}", f"how many {small} are {n} {bigs}", f"how many {small} will {n} {bigs} be", f"{n} {bigs} make how many {small}", f"how many {small} go into {n} {bigs}", f"{n} {bigs} - how many {small}"]
        if r.random() < 0.5:
            p.ask([], inq, inq)
        else:
            p.ask(f, [f"how many {small} is that", f"how many {small} is it", f"how long is that in {small}", f"what is that in {small}", f"how many {small} are that", f"how many {small} does it take"], (f"how many {small}", f"in {small}"))
        p.what = small
    else:
        f = [[f"it is {n} {bigs}", f"I have {n} {bigs}", f"a rope has {n} {bigs}" if big in ("foot", "meter") else f"she has {n} {bigs}"]]
        p.ask(f, [f"how many {small} is that", f"what is that in {small}", f"how many {small} are {n} {bigs}"], (f"how many {small}", f"in {small}"))
        p.what = small
    p.vary = [("a", [f"And {{x}} {bigs}?", f"and for {{x}} {bigs}?", f"what about {{x}} {bigs}?", f"how many in {{x}} {bigs}?"], lambda: r.randint(2, 12))]
    return dict(a=n, b=k), lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


SCHEMAS = [(score, 10), (packs, 7), (again, 9), (land, 5), (span, 7)]
