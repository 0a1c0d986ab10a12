"""Everyday stories of two to four steps: how a number of things begins, what happens to it, and what is asked.

Each part is told in its own sentence or joined with the next, as people tell it: "A box holds 12 eggs. Ann buys 7 boxes. She eats 5."
The verbs of loss and gain are those of changes.py; a beginning may be a number, boxes, a rate, two kinds, or money.
"""
from changes import gain, lose
from wording import *

HOLD = ("holds", "has", "contains", "comes with", "is filled with", "has room for")
PERIOD = [("hour", "an hour", 12), ("day", "a day", 10), ("week", "a week", 8), ("minute", "a minute", 12), ("month", "a month", 9)]
GOES = [("train", "travel"), ("car", "drive"), ("bus", "travel"), ("boat", "sail"), ("truck", "drive"), ("plane", "fly"), ("cyclist", "ride"), ("runner", "run"), ("bike", "go"), ("ship", "sail"), ("horse", "run"), ("snail", "crawl"), ("robot", "move"), ("taxi", "drive")]
MAKES = "make bake pick pack paint sell plant wash fold collect write print read solve catch build draw knit fix sort".split()
PARTS = [("red", "blue"), ("big", "small"), ("old", "new"), ("green", "yellow"), ("white", "black"), ("long", "short"), ("sweet", "sour"), ("full", "empty"), ("cheap", "expensive"), ("wooden", "plastic"), ("clean", "dirty"), ("ripe", "green")]


class Telling:
    """A story under construction: its subject S, its things (o many, o1 one), the sentences so far and the quantity now."""

    def __init__(s, p):
        s.p, s.r, s.S = p, p.r, p.subject()
        s.o, s.o1 = p.noun()
        s.facts, s.ops, s.x = [], [], 0
        s.nums = {}
        s.money = False

    def num(s, value):
        """a number of the story, under a letter"""
        k = "abcdefgh"[len(s.nums)]
        s.nums[k] = value
        return k

    def begin(s, value):
        s.first = s.num(value)
        s.x = value

    def then(s, op, value, text):
        """what happens: its operation on the quantity, and how the solution says it"""
        x = s.x + value if op == "+" else s.x - value if op == "-" else s.x * value if op == "*" else s.x // value
        if op == "/" and s.x % value or not 1 <= x <= 999:
            raise Bad
        s.ops.append((op, s.num(value), text))
        s.x = x
        s.p.skel.append(op)

    def who(s):
        """the subject again: a pronoun or the name"""
        return s.S.he if s.r.random() < 0.75 else s.S.n


def has(t):
    """a plain number"""
    S, o, x = t.S, t.o, t.p.have()
    t.begin(x)
    w = t.r.choice(["have", "have", "have", "own", "start with", "get", "buy", "find", "collect", "pick", "make"])
    t.facts.append([f"{S.vs(w)} {x} {o}", f"there are {x} {o} in {S.his} {t.r.choice(BOXES)}", f"{S.n} {'had' if S.past else S.v('have')} {x} {o}", f"{S.vs(w)} {x} {o}"])


def boxes(t):
    """so many boxes with so many things in each, in one sentence or two"""
    p, r, S, o = t.p, t.r, t.S, t.o
    b1 = r.choice(BOXES)
    bx, n, m = plural(b1), p.count(), p.size()
    if n * m > 999 or n < 2:
        raise Bad
    t.begin(n)
    t.then("*", m, f"The {bx} make @.")
    w = r.choice(["buy", "have", "get", "bring", "pack", "open", "carry", "find", "order", "take home", "fill"])
    each = [f"{cap(a(b1))} {r.choice(HOLD)} {m} {o}", f"there are {m} {o} in {r.choice(['a', 'one', 'each', 'every'])} {b1}", f"each {b1} {r.choice(HOLD)} {m} {o}", f"{m} {o} fit in {a(b1)}", f"one {b1} {r.choice(HOLD[:4])} {m} {o}", f"{o} come in {bx} of {m}", f"every {b1} {r.choice(HOLD)} {m} {o}"]
    many = [f"{S.vs(w)} {n} {bx}", f"{S.vs(w)} {n} {bx}", f"{S.vs(w)} {n} of these {bx}", f"{S.vs(w)} {n} {bx} of {o}"]
    k = r.random()
    if k < 0.5:
        t.facts += [each, many]
    elif k < 0.75:
        t.facts += [many, [f"each {b1} {r.choice(HOLD)} {m} {o}", f"there are {m} {o} in each {b1}", f"every {b1} has {m} {o} in it", f"each one has {m} {o}", f"each has {m} {o}"]]
    else:
        t.facts.append([f"{S.vs(w)} {n} {bx} of {m} {o}", f"{S.vs(w)} {n} {bx} with {m} {o} in each", f"{S.vs(w)} {n} {bx}, each with {m} {o}", f"{S.vs(w)} {n} {bx} with {m} {o} each"])


def works(t):
    """so many in a period, for so many periods"""
    p, r, S, o = t.p, t.r, t.S, t.o
    u, per, top = r.choice(PERIOD)
    n, m = r.randint(2, top), p.size()
    if n * m > 999:
        raise Bad
    w = r.choice(MAKES)
    t.begin(m)
    t.then("*", n, "In all that is @.")
    us, he = u + "s", t.who()
    per = r.choice([per, f"each {u}", f"every {u}", f"per {u}"])
    t.facts.append([f"{S.vs(w)} {m} {o} {per}", f"in one {u}, {S.vs(w)} {m} {o}", f"{S.n} can {w} {m} {o} in one {u}", f"{S.vs(w)} {m} {o} {per}"])
    t.facts.append([f"{he} {S.v('do')} this for {n} {us}", f"{he} {S.v('work')} for {n} {us}", f"{he} {S.v('do')} that for {n} {us}", f"{he} {S.v('keep')} going for {n} {us}", f"this goes on for {n} {us}", f"{n} {us} {'went' if S.past else 'go'} by"])


def kinds(t):
    """two kinds of one thing"""
    p, r, S, o = t.p, t.r, t.S, t.o
    x, z = p.have(), p.more()
    i, j = r.sample(r.choice(PARTS), 2)
    t.begin(x)
    t.then("+", z, "Together that is @.")
    w = r.choice(["have", "have", "buy", "pick", "find", "own", "see", "get"])
    t.facts.append([f"{S.vs(w)} {x} {i} {o} and {z} {j} {o}", f"{S.vs(w)} {x} {i} and {z} {j} {o}", f"{S.vs(w)} {x} {i} {o} and {z} {j} ones", f"{S.n} has {x} {i} {o}. There are also {z} {j} ones" if not S.pl else f"{S.vs('have')} {x} {i} {o} and also {z} {j} ones"])


def days(t):
    """some on one day, some on the next"""
    p, r, S, o = t.p, t.r, t.S, t.o
    x, z = p.have(), p.more()
    A, B = r.choice([("on Monday", "on Tuesday"), ("in the morning", "in the afternoon"), ("on Saturday", "on Sunday"), ("yesterday", "today"), ("last week", "this week"), ("first", "then"), ("before lunch", "after lunch"), ("on Friday", "the next day")])
    w = r.choice(["bake", "make", "pick", "sell", "find", "read", "collect", "buy", "paint", "catch", "count"])
    t.begin(x)
    t.then("+", z, "Together that is @.")
    t.facts.append([f"{S.vs(w)} {x} {o} {A} and {z} {B}", f"{A} {S.vs(w)} {x} {o} and {B} {z}", f"{S.vs(w)} {x} {o} {A} and {z} more {B}", f"{S.vs(w)} {x} {o} {A}. {cap(B)} {S.he} {S.v(w)} {z}", f"{S.vs(w)} {x} {o} {A}. {cap(B)} {S.he} {S.v(w)} {z} more"])


def loses(t):
    if t.x < 4:
        raise Bad
    k = t.r.randint(1, t.x - 1) if t.p.h == 0 else t.p.less(t.x)
    f = [x for x in lose(t.p, t.S, t.o, t.o1, k) if not x.startswith("then ")]
    t.facts.append(f + t.r.sample(f, min(4, len(f))))
    t.then("-", k, "That leaves @.")


def gains(t):
    k = t.p.more()
    t.facts.append([x for x in gain(t.p, t.S, t.o, t.o1, k) if not x.startswith("then ")])
    t.then("+", k, f"With {k} more it is @.")


def halves(t):
    """gives away half of them, or a third"""
    S, o, he = t.S, t.o, t.who()
    d, w = t.r.choice([(2, "half"), (2, "half"), (2, "half"), (2, "one half")])
    v = t.r.choice(["give away", "sell", "lose", "use", "hand out", "donate", "throw away"] + (["eat", "eat"] if t.o1 in FOOD else ["break"]))
    t.facts.append([f"{he} {S.v(v)} {w} of {x}" for x in ("them", f"the {o}", "these", "all of them")] + [f"{w} of them {'were' if S.past else 'are'} {g}" for g in ("gone", "bad", "sold", "given away")])
    t.then("/", d, "Half of it is @.")


def doubles(t):
    S, o = t.S, t.o
    t.facts.append([f"then the number of {o} doubles", f"the number of {o} doubles", f"{S.he} {S.v('get')} as many again", f"then {S.he} {S.v('get')} as many again", f"a friend {'doubled' if S.past else 'doubles'} them", f"{S.he} {S.v('double')} the number of {o}"])
    t.then("*", 2, "Twice as many is @.")


def shares(t):
    """ends: everybody's part"""
    r, S, o = t.r, t.S, t.o
    d = [k for k in range(2, 11) if t.x % k == 0 and t.x // k > 1]
    if not d:
        raise Bad
    k = r.choice(d)
    to = r.choice(PEOPLE + ["cousin", "brother", "sister", "neighbor", "teammate", "kid"])
    tos = plural(to)
    left = "the rest" if any(op == "-" for op, _, _ in t.ops) else r.choice(["them", "all of them", f"the {o}"])
    t.facts.append([f"{t.who()} {S.v('share')} {left} equally among {k} {tos}", f"{k} {tos} share {left} equally", f"{t.who()} {S.v('divide')} {left} fairly among {k} {tos}", f"{t.who()} {S.v('give')} {left} to {k} {tos}, the same number each", f"{t.who()} {S.v('split')} {left} evenly between {k} {tos}", f"{left} {'was' if left == 'the rest' and S.past else 'were' if S.past else 'is' if left == 'the rest' else 'are'} shared by {k} {tos}"])
    t.then("/", k, "Each gets @.")
    return [f"how many {o} does each {to} get", f"how many {o} does each one get", f"how many does each {to} get", f"how many {o} are that for each", f"what does each {to} get", f"how many {o} does one {to} get", f"how many {o} {'did' if S.past else 'does'} each {to} get"], ("how many each", "how many does each get", "how many for each")


def packs(t):
    """ends: how many boxes are needed"""
    r, S, o = t.r, t.S, t.o
    d = [k for k in range(2, 13) if t.x % k == 0 and t.x // k > 1]
    if not d:
        raise Bad
    k = r.choice(d)
    b1 = r.choice(BOXES)
    bx = plural(b1)
    left = "the rest" if any(op == "-" for op, _, _ in t.ops) else r.choice(["them", "all of them", f"the {o}"])
    t.facts.append([f"{t.who()} {S.v('put')} {left} into {bx} of {k}", f"{t.who()} {S.v('pack')} {left} in {bx} of {k}", f"{t.who()} {S.v('put')} {left} in {bx}, {k} in each", f"{t.who()} {S.v('pack')} {left} in {bx}. Each {b1} holds {k}", f"{t.who()} {S.v('put')} {k} in each {b1}"])
    t.then("/", k, "That makes @.")
    t.p.what = bx
    do = S.does
    return [f"how many {bx} {do} {S.he} need", f"how many {bx} is that", f"how many {bx} {do} {S.he} fill", f"how many {bx} are there", f"how many {bx} can {S.he} fill", f"how many {bx} are needed"], (f"how many {bx}",)


def sells(t):
    """ends: what they bring"""
    r, S, o, m = t.r, t.S, t.o, t.p.money()
    c = r.randint(2, (5, 9, 12)[t.p.h])
    if t.x * c > 999:
        raise Bad
    left = "the rest" if any(op == "-" for op, _, _ in t.ops) else r.choice(["them", "all of them", f"the {o}"])
    t.facts.append([f"{t.who()} {S.v('sell')} {left} for {m(c)} each", f"{t.who()} {S.v('sell')} {left} at {m(c)} each", f"{t.who()} {S.v('sell')} {left}. Each {r.choice(['one', t.o1])} costs {m(c)}", f"{t.who()} {S.v('get')} {m(c)} for each of them", f"each {t.o1} {r.choice(['sells for', 'is worth', 'costs'])} {m(c)}"])
    t.then("*", c, "The money is @ dollars." if not t.p.coin else "The money is @.")
    t.p.what = "dollars"
    do = S.does
    return [f"how much money {do} {S.he} get", f"how much {do} {S.he} get", f"how many dollars {do} {S.he} get", f"how much money is that", f"how much is that", f"how much {do} {S.he} earn", f"how much money {do} {S.he} make", f"how much are they worth"], ("how much", "how much is that", "how much money")


def now(t):
    """ends: how many there are"""
    S, o, he, do = t.S, t.o, t.S.he, t.S.does
    qs = [f"how many {o} {do} {he} have now", f"how many {o} {do} {he} have", f"how many {o} are there now", f"how many {do} {he} have now", f"how many {o} {do} {he} have in the end"]
    if t.ops and t.ops[-1][0] == "-":
        return qs + [f"how many {o} are left", "how many are left", f"how many {o} {do} {he} have left", f"how many {o} {do} {he} still have", f"how many {o} remain"] * 2, SHORT_LEFT
    return qs + [f"how many {o} is that", f"how many {o} are there in all", f"how many {o} {do} {he} have in total", f"how many {o} {do} {he} have altogether"], ("how many now", "how many", "how many in all")


STARTS = [(has, 30), (boxes, 30), (works, 12), (kinds, 10), (days, 10)]
EVENTS = [(loses, 40), (gains, 26), (halves, 7), (doubles, 5)]
ENDS = [(now, 60), (shares, 12), (packs, 8), (sells, 12)]


def pick(r, table):
    return r.choices([f for f, _ in table], [w for _, w in table])[0]


def joined(r, facts, first):
    """neighbouring events told in one sentence: "He loses 3 and then finds 5" is one fact with the wordings of both. The first facts are no events"""
    out = facts[:first]
    for f in facts[first:]:
        if len(out) > first and r.random() < 0.35:
            a_, b_ = r.choice(out[-1]), r.choice(f)
            if ". " not in a_ and ". " not in b_:
                out[-1] = [f"{a_} {r.choice(['and then', 'and', 'but', 'and later', 'and after that', 'but then'])} {b_}"]
                continue
        if r.random() < 0.25:
            out.append([f"{w} {x}" for x in r.sample(f, min(6, len(f))) for w in (r.choice(["then", "later", "after that", "the next day", "then", "in the evening"]),)])
            continue
        out.append(f)
    return out


def happens(p):
    """a beginning, up to two events, an end"""
    r = p.r
    t = Telling(p)
    start, end = pick(r, STARTS), pick(r, ENDS)
    start(t)
    first = len(t.facts)
    for _ in range(r.choice([0, 1, 1, 2]) if end is not now else r.choice([1, 1, 1, 2, 2, 3]) if start is has else r.choice([1, 1, 2])):
        pick(r, EVENTS)(t)
    p.skel += [start.__name__, end.__name__]
    qs, short = end(t)
    if not t.ops or len(t.ops) > 4:
        raise Bad
    p.ask(joined(r, t.facts, first), qs, short)

    def fn(p, v):
        x = v[t.first]
        for op, k, text in t.ops:
            x = p.times(x, v[k], text) if op == "*" else p.op(x, op, v[k], text)
        return x
    return dict(t.nums), fn


def travels(p):
    """how far something goes in a time, also when it has gone a part or stops"""
    r = p.r
    who, w = r.choice(GOES)
    o = r.choice(["km", "miles", "kilometers"])
    p.what = o
    n = r.randint(2, 9)
    x = r.randint(*((3, 12), (10, 60), (40, 110))[p.h])
    if x * n > 999:
        raise Bad
    past_ = r.random() < 0.3
    V = past(w) if past_ else third(w)
    f = [[f"{a(who)} {V} {x} {o} in one hour", f"{a(who)} {V} {x} {o} an hour", f"{a(who)} {V} {x} {o} per hour", f"{a(who)} {V} {x} {o} every hour", f"{a(who)} {V} at {x} {o} per hour", f"in one hour {a(who)} {V} {x} {o}", f"the {who} {V} {x} {o} each hour"]]
    v = dict(a=x, b=n)
    k = r.random()
    do = "did" if past_ else "does"
    it = "he" if who in ("cyclist", "runner") else "it"
    if k < 0.5:
        qs = [f"how far {do} it {w} in {n} hours", f"how many {o} {do} it {w} in {n} hours", f"how far is that in {n} hours", f"how far will it {w} in {n} hours", f"how many {o} is that in {n} hours", f"how far {do} it go in {n} hours", f"how many {o} in {n} hours", f"how far in {n} hours"]
        qs = [q.replace(" it ", f" {it} ") for q in qs]
        p.ask(f, qs, qs)
        return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")
    f.append([f"{it} {V} for {n} hours", f"{it} is on the way for {n} hours", f"the trip takes {n} hours", f"{it} needs {n} hours", f"after {n} hours {it} stops"])
    if k < 0.7:
        qs = [f"how far {do} {it} {w}", f"how many {o} is that", f"how long is the way in {o}", f"how far is the trip", f"how many {o} {do} {it} {w}", f"how far is that"]
        p.ask(f, qs, qs)
        return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")
    c = r.randint(2, 60)
    if k < 0.85:
        v["c"] = c
        p.skel.append("+")
        f.append([f"then {it} {V} {c} {o} more", f"after that {it} {V} another {c} {o}", f"{it} had gone {c} {o} before", f"later {it} {V} {c} more {o}"])
        qs = [f"how far {do} {it} {w} in all", f"how many {o} is that in all", f"how far is that altogether", f"how many {o} {do} {it} {w} in total"]
        p.ask(f, qs, ("how far in all", "how far", "how far in total"))
        return v, lambda p, v: p.op(p.times(v["a"], v["b"], "In all that is @."), "+", v["c"], "Together that is @.")
    v["c"] = x * n + c
    p.skel.append("-")
    f.append([f"the whole way is {x * n + c} {o}", f"the goal is {x * n + c} {o} away", f"the whole trip is {x * n + c} {o} long", f"the next town is {x * n + c} {o} away"])
    qs = [f"how many {o} are left", f"how far is it still", f"how many {o} does {it} still have to go", "how far is left", f"how many {o} remain"]
    p.ask(f, qs, ("how far is left", "what is left", "how far still"))

    def fn(p, v):
        x = p.times(v["a"], v["b"], "In all that is @.")
        return p.op(v["c"], "-", x, "That leaves @.")
    return v, fn


def purse(p):
    """money that is earned, saved, given and spent"""
    r = p.r
    S = p.subject()
    m = p.money()
    p.what = "dollars"
    he, do = S.he, S.does
    k = r.random()
    if k < 0.55:
        x = p.have() + 4
        v, f = dict(a=x), [[f"{S.vs('have')} {m(x)}", f"{S.n} {'had' if S.past else S.v('have')} {m(x)} in {S.his} purse", f"{S.vs('save')} {m(x)}", f"{S.vs('get')} {m(x)} for {S.his} birthday", f"{S.vs('earn')} {m(x)}"]]
        ops, y = [], x
    else:
        n, c = p.count(), p.price()
        if n * c > 999 or n < 2 or c < 2:
            raise Bad
        u = r.choice(["hour", "day", "week", "month"])
        v, ops, y = dict(a=n, b=c), [("*", "b", "The money is @ dollars." if not p.coin else "The money is @.")], n * c
        w = r.choice(["earn", "save", "get", "make", "put aside"])
        f = [[f"{S.vs(w)} {m(c)} {q}" for q in (f"each {u}", f"every {u}", f"per {u}", f"a {u}" if u != "hour" else "an hour")], [f"{he} {S.v('do')} this for {n} {u}s", f"{he} {S.v('work')} {n} {u}s" if w in ("earn", "make") else f"{he} {S.v('do')} that for {n} {u}s", f"{n} {u}s {'went' if S.past else 'go'} by"]]
        if r.random() < 0.4:
            f = [[f"{S.vs(w)} {m(c)} {q} for {n} {u}s" for q in (f"each {u}", f"every {u}", f"per {u}")]]
    first = len(f)
    for _ in range(r.choice([1, 1, 2])):
        key = "abcdef"[len(v)]
        if r.random() < 0.68:
            n, c = r.randint(2, 6), p.price()
            if r.random() < 0.5:
                if y - c < 1:
                    raise Bad
                v[key], y = c, y - c
                t = a(r.choice(PRICED))
                f.append([f"{he} {S.v('buy')} {t} for {m(c)}", f"{he} {S.v('spend')} {m(c)} on {t}", f"{he} {S.v('pay')} {m(c)} for {t}", f"{he} {S.v('spend')} {m(c)}", f"{he} {S.v('lose')} {m(c)}", f"{he} {S.v('give')} {m(c)} to {r.choice(GIVEN)}", f"{t} {'cost' if S.past else 'costs'} {S.him} {m(c)}", f"{he} {S.v('lend')} {m(c)} to {r.choice(GIVEN)}"])
                ops.append(("-", key, "That leaves @."))
            else:
                if c < 2 or y - n * c < 1:
                    raise Bad
                k2 = "abcdef"[len(v) + 1]
                v[key], v[k2], y = n, c, y - n * c
                t = plural(r.choice(PRICED))
                f.append([f"{he} {S.v('buy')} {n} {t} for {m(c)} each", f"{he} {S.v('buy')} {n} {t} at {m(c)} each", f"{he} {S.v('buy')} {n} {t} that cost {m(c)} each", f"{he} {S.v('buy')} {n} {t}. Each costs {m(c)}"])
                ops.append(("-*", key + k2, "The cost is @."))
        else:
            c = p.more()
            v[key], y = c, y + c
            t = r.choice(GIVEN)
            f.append([f"{t} {'gave' if S.past else 'gives'} {S.him} {m(c)}", f"{he} {S.v('earn')} {m(c)}", f"{he} {S.v('find')} {m(c)}", f"{he} {S.v('get')} {m(c)} from {t}", f"{he} {S.v('get')} {m(c)} more", f"{he} {S.v('win')} {m(c)}", f"{t} {'paid' if S.past else 'pays'} {S.him} {m(c)}"])
            ops.append(("+", key, f"With {c} more it is @."))
    p.skel += [o for o, _, _ in ops]
    qs = [f"how much money {do} {he} have now", f"how much {do} {he} have now", f"how much money {do} {he} have", f"how many dollars {do} {he} have now", f"how much {do} {he} have"]
    if ops[-1][0][0] == "-":
        qs += [f"how much is left", f"how much money {do} {he} have left", f"how much {do} {he} have left", f"how much money is left", f"how many dollars are left"] * 2
    p.ask(joined(r, f, first), qs, ("how much now", "how much") if ops[-1][0] == "+" else ("how much is left", "how much now", "what is left"))

    def fn(p, v):
        x = v["a"]
        for op, k, text in ops:
            if op == "-*":
                y = p.times(v[k[0]], v[k[1]], text)
                if y >= x:
                    raise Bad
                x = p.op(x, "-", y, "That leaves @.")
            else:
                x = p.times(x, v[k], text) if op == "*" else p.op(x, op, v[k], text)
        return x
    return v, fn


GIVEN = "her brother,his sister,a friend,grandma,her mom,his dad,an aunt,the neighbor,a classmate,her uncle,my cousin,the boss".split(",")


def together(p):
    """two people: one has more, fewer or a multiple; together, or after one has changed"""
    r = p.r
    S = p.subject(0.15, 0.15, 0)
    o, o1 = p.noun()
    b, (he2, his2, him2) = p.name()
    x = p.have() + 2
    e = r.choice("**+-")
    k = r.choice([2, 2, 2, 3, 4]) if e == "*" else p.more() if e == "+" else r.randint(1, x - 1)
    t = f"{MANY[k]} as many" if e == "*" else f"{k} more" if e == "+" else f"{k} {r.choice(['fewer', 'less'])}"
    w = r.choice(["have", "have", "have", "find", "pick", "collect", "read", "sell", "make", "bake", "buy", "catch"])
    V2 = past(w) if S.past else third(w)
    f = [[f"{S.vs(w)} {x} {o}"], [f"{b} {V2} {t}", f"{b} {V2} {t} {o}", f"{b} {V2} {t} than {S.him if S.he != 'I' else 'me'}" if e != "*" else f"{b} {V2} {t} as {S.him if S.he != 'I' else 'me'}", f"{S.his} friend {b} {V2} {t}", f"{b} {V2} {t} {o} {'as' if e == '*' else 'than'} {S.n if S.n != 'I' else 'I do'}"]]
    v, ops = dict(a=x, b=k), None
    change = r.random()
    z = x * k if e == "*" else x + k if e == "+" else x - k
    p.skel.append(e)
    V = "did" if S.past else "do"
    they = "we" if S.he == "I" else "they"
    if change < 0.5:
        qs = [f"how many {o} {V} {they} {w} together", f"how many {o} {V} {they} {w} in all", f"how many {o} {V} {they} {w} altogether", f"how many {o} is that together", f"how many {V} {they} {w} in total", f"how many {o} {V} both of them {w} together" if they == "they" else f"how many {o} {V} we both {w} together", f"how many {o} {V} the two {w} together"]
        p.ask(f, qs, ("how many together", "how many in all", "how many altogether"))
        last = None
    else:
        if z < 3:
            raise Bad
        c = r.randint(1, z - 1) if p.h == 0 else p.less(z)
        v["c"] = c
        T = Subject(b, he2, his2, him2)
        T.past = S.past
        p.skel.append("-")
        f.append([x for x in lose(p, T, o, o1, c) if not x.startswith("then ")])
        qs = [f"how many {o} does {b} have now", f"how many {o} does {b} have left", f"how many does {b} have left", f"how many {o} are left for {b}", f"how many {o} does {he2} have now", f"how many {o} does {b} still have", f"how many {o} does {b} keep"]
        p.ask(f, qs, (f"how many does {b} have now", f"how many does {b} have left"))
        last = "c"

    def fn(p, v):
        z = p.op(v["a"], e, v["b"], f"{cap(MANY[v['b']])} as many is @." if e == "*" else f"With {v['b']} more it is @." if e == "+" else f"With {v['b']} fewer it is @.")
        return p.op(z, "-", v["c"], "That leaves @.") if last else p.op(v["a"], "+", z, "Together that is @.")
    return v, fn


SCHEMAS = [(happens, 140), (travels, 30), (purse, 50), (together, 36)]
