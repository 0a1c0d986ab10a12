"""Short questions whose first step multiplies or divides."""
from changes import gain, left_words, lose
from wording import *


# ---------------------------------------------------------------- one multiplication
def groups(p):
    r = p.r
    S = p.subject()
    o, o1 = p.noun()
    b1 = r.choice(BOXES)
    bx = plural(b1)
    v = dict(a=p.count(), b=p.size())
    n, m = v["a"], v["b"]
    holds = [f"a {b1} holds {m} {o}", f"each {b1} has {m} {o}", f"there are {m} {o} in a {b1}", f"there are {m} {o} in each {b1}", f"one {b1} contains {m} {o}", f"every {b1} has {m} {o} in it", f"{m} {o} fit in a {b1}",
             f"a {b1} has {m} {o}", f"{o} come in {bx} of {m}", f"a {b1} of {o} contains {m}", f"each {b1} contains {m} {o}", f"{bx} hold {m} {o} each", f"we put {m} {o} in each {b1}", f"a full {b1} has {m} {o}"]
    owns = [f"{S.vs(w)} {n} {bx}" for w in ("buy", "have", "get", "fill", "need", "order", "take", "bring", "carry", "sell", "open", "pack", "own", "see", "find", "want")] + [f"there are {n} {bx}", f"{S.n} bought {n} {bx}", f"{S.n} got {n} {bx}"]
    both = [f"{S.vs(w)} {n} {bx} {how}" for w in ("buy", "have", "get", "fill", "order", "pack", "find", "carry") for how in (f"of {m} {o}", f"with {m} {o} each", f"with {m} {o} in each", f"of {m} {o} each", f"and each has {m} {o}",
            f"and there are {m} {o} in each {b1}", f"and each {b1} holds {m} {o}", f"with {m} {o} per {b1}")] + [f"there are {n} {bx} with {m} {o} each", f"there are {n} {bx} of {m} {o}", f"there are {n} {bx} and each has {m} {o}",
            f"{n} {bx} have {m} {o} each", f"{n} {bx} hold {m} {o} each", f"{n} {bx} with {m} {o} in each"]
    he, do = S.he, S.does
    qs = [f"how many {o} {do} {he} have", f"how many {o} is that", f"how many {o} are there", f"how many {o} {do} {he} have in total", f"how many {o} {do} {he} have in all", f"how many {o} are there in total", f"how many {o} are that altogether",
          f"how many {o} are there altogether", f"how many {o} {do} {he} get", f"what is the total number of {o}", f"how many {o} {do} {he} have altogether", f"how many {o} in total", f"how many {o} together"]
    inq = [f"how many {o} are in {n} {bx}", f"how many are in {n} {bx}", f"how many {o} are there in {n} {bx}", f"how many {o} do {n} {bx} hold", f"how many {o} do {n} {bx} have", f"how many {o} in {n} {bx}", f"how many {o} fit in {n} {bx}",
           f"how many {o} does {n} {bx} make", f"how many {o} {do} {he} have in {n} {bx}", f"how many {o} {do} {he} get from {n} {bx}", f"how many are there in {n} {bx}", f"what about {n} {bx}", f"how many {o} {do} {he} have with {n} {bx}",
           f"how many {o} will be in {n} {bx}"]
    terse = [f"{m} {o} a {b1}, {n} {bx}", f"{n} {bx}, {m} {o} each", f"{n} {bx} of {m} {o}", f"{n} {bx} with {m} {o} each", f"{m} {o} per {b1}, {n} {bx}", f"{n} {bx}, {m} {o} in each", f"{m} {o} in a {b1}, {n} {bx}", f"{n} {bx} x {m} {o}",
             f"{m} per {b1}, {n} {bx}", f"{n} {bx} and {m} {o} in each"]
    k = r.random()
    if k < 0.3:
        p.ask([holds, owns], qs, SHORT + (f"how many {o}",), terse)
    elif k < 0.6:
        p.ask([holds], inq, inq, terse)
    else:
        p.ask([both], qs, SHORT + (f"how many {o}",), terse)
    p.vary = [("a", [f"And with {{x}} {bx}?", f"and {{x}} {bx}?", f"What about {{x}} {bx}?", f"how many in {{x}} {bx}?", f"and in {{x}} {bx}", f"what if {he} {S.v('have') if he != 'it' else 'has'} {{x}} {bx}?", f"And how many are in {{x}} {bx}?", f"now with {{x}} {bx}", f"same with {{x}} {bx}?",
                   f"and if there are {{x}} {bx}?", f"what if there were {{x}} {bx}?", f"How many {o} would {{x}} {bx} have?"], p.count),
              ("b", [f"What if each {b1} holds {{x}}?", f"and if there are {{x}} {o} in each {b1}?", f"What about {bx} of {{x}}?", f"and with {{x}} {o} per {b1}?", f"what if a {b1} had {{x}} {o}?", f"And if a {b1} holds {{x}} {o}?", f"same but {{x}} in each {b1}"], p.size)]
    return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


def price(p):
    r = p.r
    S = p.subject()
    o1 = r.choice(PRICED)
    o = plural(o1)
    p.what = "dollars"
    v = dict(a=p.count(), b=p.price())
    n, c = v["a"], v["b"]
    m = p.money()
    costs = [f"{a(o1)} costs {m(c)}", f"one {o1} costs {m(c)}", f"each {o1} costs {m(c)}", f"{o} cost {m(c)} each", f"{a(o1)} is {m(c)}", f"{o} are {m(c)} each", f"the price of {a(o1)} is {m(c)}", f"every {o1} costs {m(c)}", f"{o} sell for {m(c)} each",
             f"{a(o1)} sells for {m(c)}", f"the {o} cost {m(c)} each", f"{o} go for {m(c)} apiece", f"{o} cost {m(c)} apiece"]
    he, do = S.he, S.does
    buys = [f"{S.vs(w)} {n} {o}" for w in ("buy", "get", "order", "take", "want", "need")] + [f"{S.n} bought {n} {o}"]
    both = [f"{S.vs(w)} {n} {o} {how}" for w in ("buy", "get", "order", "sell") for how in (f"for {m(c)} each", f"at {m(c)} each", f"that cost {m(c)} each", f"and each costs {m(c)}", f"and pays {m(c)} for each" if not S.pl else f"and pay {m(c)} for each", f"at {m(c)} apiece")]
    qs = [f"how much {do} {he} pay", f"how much {do} {he} spend", f"how much is that", f"how many dollars is that", f"how much is it in total", f"how much {do} {he} pay in total", f"what is the total cost", f"how much does it cost", f"how much {do} {he} need",
          f"what is the total price", f"what do they cost together", f"how much {do} {he} have to pay", f"how much money is that"]
    inq = [f"how much do {n} {o} cost", f"how much do {n} cost", f"what do {n} {o} cost", f"how much are {n} {o}", f"what is the price of {n} {o}", f"how much for {n} {o}", f"how much would {n} {o} cost", f"how much {do} {he} pay for {n} {o}", f"what's the cost of {n} {o}",
           f"how much is {n} {o}", f"how many dollars do {n} {o} cost", f"how much money {do} {he} need for {n} {o}", f"how much will {n} {o} cost"]
    if c == 1:
        raise Bad
    terse = [f"{n} {o} at {m(c)} each", f"{n} {o}, {m(c)} each", f"{o} {m(c)} each, {n} of them", f"{n} {o} for {m(c)} each", f"{n} x {o} at {m(c)}", f"1 {o1} = {m(c)}, {n} {o}", f"{o1} {m(c)}, {n} {o}"]
    k = r.random()
    if k < 0.3:
        p.ask([costs, buys], qs, SHORT_COST, terse)
    elif k < 0.62:
        p.ask([costs], inq, inq, terse)
    else:
        p.ask([both], qs, SHORT_COST, terse)
    p.vary = [("a", [f"And {{x}} {o}?", f"and for {{x}} {o}?", f"What about {{x}} {o}?", f"how much are {{x}}?", f"And how much do {{x}} {o} cost?", f"what if {he} {S.v('buy')} {{x}}?", f"and {{x}} of them?", f"how much for {{x}}", f"And if {he} {S.v('take')} {{x}} {o}?"], p.count),
              ("b", [f"And if {a(o1)} costs ${{x}}?", f"What if they cost ${{x}} each?", f"and at ${{x}} each?", f"and if each costs {{x}} dollars?", f"what if the price is ${{x}}?", f"what if {a(o1)} was ${{x}}?"], p.price)]
    return v, lambda p, v: p.times(v["a"], v["b"], "The cost is @.")


RATE = [("read", "pages", ["day", "hour", "evening", "week"]), ("earn", "dollars", ["hour", "day", "week", "month"]), ("save", "dollars", ["week", "month", "day"]), ("drive", "miles", ["hour", "day"]), ("walk", "miles", ["day", "hour", "week"]),
        ("run", "miles", ["day", "week", "hour"]), ("ride", "km", ["day", "hour"]), ("drink", "glasses of water", ["day"]), ("drink", "cups of coffee", ["day", "week"]), ("bake", "cakes", ["hour", "day"]), ("make", "toys", ["hour", "day"]), ("type", "words", ["minute"]),
        ("pick", "apples", ["hour", "day", "minute"]), ("plant", "trees", ["day", "week"]), ("write", "letters", ["day", "week", "month"]), ("sell", "tickets", ["hour", "day"]), ("sleep", "hours", ["night", "day"]), ("work", "hours", ["day", "week"]), ("practice", "minutes", ["day"]),
        ("solve", "problems", ["day", "hour", "minute"]), ("swim", "laps", ["day", "hour"]), ("pack", "boxes", ["hour", "day"]), ("print", "pages", ["minute", "hour"]), ("eat", "eggs", ["week", "day"]), ("paint", "walls", ["day"]), ("build", "chairs", ["day", "week"]),
        ("learn", "words", ["day", "week"]), ("get", "emails", ["day", "hour"]), ("spend", "dollars", ["day", "week"]), ("do", "push-ups", ["day"]), ("cook", "meals", ["day"]), ("wash", "cars", ["hour", "day"]), ("cycle", "kilometers", ["day", "hour"]), ("collect", "shells", ["day"])]


def rate(p):
    r = p.r
    w, o, units = r.choice(RATE)
    u = r.choice(units)
    us = plural(u)
    S = p.subject()
    p.what = o
    v = dict(a=p.size() if o != "hours" else r.randint(3, 11), b=p.count())
    x, n = v["a"], v["b"]
    if u == "month":
        v["b"] = n = r.randint(2, 12)
    per = [f"every {u}", f"each {u}", f"a {u}" if u != "hour" else "an hour", f"per {u}"]
    one = [f"{S.vs(w)} {x} {o} {q}" for q in per] + [f"in one {u} {S.vs(w)} {x} {o}", f"every {u} {S.vs(w)} {x} {o}", f"{S.n} can {w} {x} {o} {r.choice(per[2:])}", f"it takes {S.him} one {u} to {w} {x} {o}" if o != "hours" else f"{S.vs(w)} {x} {o} each {u}"]
    if w == "drive" and r.random() < 0.5:
        one = [f"a {t} goes {x} miles per hour" for t in ("car", "train", "bus", "truck")] + [f"a car drives {x} miles an hour", f"the speed is {x} miles per hour"]
        S = Subject("it", "it", "its", "it")
        u, us = "hour", "hours"
    if w in ("print", "make", "pack") and r.random() < 0.5:
        t = {"print": "a printer", "make": "a machine", "pack": "a robot"}[w]
        one = [f"{t} {third(w)} {x} {o} {q}" for q in per]
        S = Subject("it", "it", "its", "it")
    he, do = S.he, S.does
    inq = [f"how many {o} {do} {he} {w} in {n} {us}", f"how many {o} in {n} {us}", f"how many {o} is that in {n} {us}", f"how many {o} are that after {n} {us}", f"how many {o} will {he} {w} in {n} {us}", f"how many {o} can {he} {w} in {n} {us}", f"how many is that in {n} {us}",
           f"how many {o} after {n} {us}", f"how many {o} {do} {he} {w} during {n} {us}"]
    if w in ("drive", "walk", "run", "ride", "cycle"):
        inq += [f"how far {do} {he} get in {n} {us}", f"how far {do} {he} {w} in {n} {us}", f"how far is that in {n} {us}", f"how far in {n} {us}"]
    if o == "dollars":
        inq += [f"how much {do} {he} {w} in {n} {us}", f"how much is that in {n} {us}", f"how much money is that after {n} {us}", f"how much {do} {he} {w} for {n} {us}"]
    dur = [f"{S.vs(w)} for {n} {us}", f"{he} {S.v('do')} this for {n} {us}", f"{he} {S.v('do')} that for {n} {us}", f"{he} {S.v(w)} for {n} {us}"]
    qs = [f"how many {o} is that", f"how many {o} {do} {he} {w}", f"how many {o} is that in all", f"how many {o} in total"] + ([f"how much is that", f"how much {do} {he} {w}"] if o == "dollars" else []) + ([f"how far is that", f"how far {do} {he} {w}"] if o in ("miles", "km", "kilometers") else [])
    terse = [f"{x} {o} {q}, {n} {us}" for q in per] + [f"{x} {o} {q} for {n} {us}" for q in per[1:]] + [f"{n} {us}, {x} {o} {q}" for q in per[2:]]
    if r.random() < 0.7 or o == "hours":
        p.ask([one], inq, inq, terse)
    elif r.random() < 0.5:
        p.ask([one, dur], qs, SHORT, terse)
    else:
        p.ask([[f"{S.vs(w)} {x} {o} {q} for {n} {us}" for q in per] + [f"for {n} {us}, {S.vs(w)} {x} {o} {q}" for q in per[:2]] + [f"{S.vs(w)} for {n} {us} and makes {x} {o} {q}" for q in per[2:] if w == "work"]], qs, SHORT, terse)
    p.vary = [("b", [f"And in {{x}} {us}?", f"and for {{x}} {us}?", f"What about {{x}} {us}?", f"how many in {{x}} {us}?", f"and after {{x}} {us}", f"What if it is {{x}} {us}?", f"and {{x}} {us}?", f"And if {he} {S.v('do')} it for {{x}} {us}?"], p.count),
              ("a", [f"What if {he} {S.v(w)} {{x}} {r.choice(per)}?", f"and with {{x}} {o} {r.choice(per)}?", f"and if it were {{x}} {o} a {u}?", f"what about {{x}} {o} per {u}?"], p.size)]
    return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


FIXED = [("weeks", "days", 7, 40), ("days", "hours", 24, 14), ("hours", "minutes", 60, 16), ("minutes", "seconds", 60, 16), ("years", "months", 12, 20), ("dozen eggs", "eggs", 12, 20), ("dozen", "things", 12, 20), ("meters", "centimeters", 100, 9), ("dollars", "cents", 100, 9),
         ("feet", "inches", 12, 12), ("yards", "feet", 3, 60), ("years", "weeks", 52, 5), ("pairs of shoes", "shoes", 2, 40), ("pairs of socks", "socks", 2, 60), ("dozen roses", "roses", 12, 20), ("quarters", "cents", 25, 9), ("dimes", "cents", 10, 60), ("nickels", "cents", 5, 40), ("decades", "years", 10, 20), ("centuries", "years", 100, 9)]
LEGS = [("dogs", "legs", 4), ("cats", "legs", 4), ("spiders", "legs", 8), ("ants", "legs", 6), ("chickens", "legs", 2), ("cows", "legs", 4), ("horses", "legs", 4), ("people", "fingers", 10), ("hands", "fingers", 5), ("cars", "wheels", 4), ("bikes", "wheels", 2),
        ("tricycles", "wheels", 3), ("tables", "legs", 4), ("chairs", "legs", 4), ("octopuses", "arms", 8), ("triangles", "sides", 3), ("squares", "sides", 4), ("birds", "wings", 2), ("cubes", "faces", 6), ("bees", "legs", 6), ("feet", "toes", 5), ("stools", "legs", 3), ("trucks", "wheels", 6), ("stars", "points", 5)]


def fixed(p):
    """the size of the unit is known, or told"""
    r = p.r
    if r.random() < 0.6:
        big, small, k, top = r.choice(FIXED)
        n = r.randint(2, min(top, (9, 15, 60)[p.h]))
        v = dict(a=n, b=k)
        qs = [f"how many {small} are in {n} {big}", f"how many {small} are there in {n} {big}", f"how many {small} in {n} {big}", f"how many {small} do {n} {big} have", f"{n} {big} are how many {small}", f"how many {small} is {n} {big}",
              f"how many {small} make {n} {big}", f"convert {n} {big} to {small}", f"how many {small} are {n} {big}", f"what is {n} {big} in {small}", f"{n} {big} in {small}", f"what are {n} {big} in {small}"]
        ph = [f"And {{x}} {big}?", f"and in {{x}} {big}?", f"What about {{x}} {big}?", f"how many in {{x}} {big}", f"and for {{x}} {big}?"]
    else:
        big, small, k = r.choice(LEGS)
        n = r.randint(2, (9, 30, 90)[p.h])
        v = dict(a=n, b=k)
        qs = [f"how many {small} do {n} {big} have", f"how many {small} do {n} {big} have together", f"how many {small} do {n} {big} have in total", f"how many {small} are on {n} {big}", f"how many {small} have {n} {big}", f"how many {small} on {n} {big}", f"how many {small} for {n} {big}"]
        ph = [f"And {{x}} {big}?", f"and of {{x}} {big}?", f"What about {{x}} {big}?", f"how many do {{x}} have"]
    facts = []
    if r.random() < 0.45 and "dozen" not in big:
        one = {"feet": "foot", "people": "person", "centuries": "century"}.get(big, big[:-1] if "of" not in big else big.replace("pairs", "pair"))
        facts = [[f"{a(one)} has {k} {small}", f"one {one} has {k} {small}", f"there are {k} {small} in {a(one)}" if small not in ("legs", "wheels") else f"each {one} has {k} {small}", f"every {one} has {k} {small}"]]
    p.what = small
    p.ask(facts, qs, qs)
    p.vary = [("a", ph, p.count)]
    return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


ROWS = [("hall", "rows", "row", "seats"), ("garden", "rows", "row", "plants"), ("school", "classes", "class", "students"), ("parking lot", "rows", "row", "cars"), ("library", "shelves", "shelf", "books"), ("hotel", "floors", "floor", "rooms"), ("field", "rows", "row", "trees"),
        ("theater", "rows", "row", "chairs"), ("book", "chapters", "chapter", "pages"), ("building", "floors", "floor", "windows"), ("train", "cars", "car", "seats"), ("room", "tables", "table", "chairs"), ("album", "pages", "page", "photos"), ("zoo", "cages", "cage", "birds"),
        ("team", "groups", "group", "players"), ("city", "parks", "park", "trees"), ("restaurant", "tables", "table", "guests"), ("farm", "barns", "barn", "cows"), ("bus station", "buses", "bus", "passengers"), ("party", "tables", "table", "people"), ("aquarium", "tanks", "tank", "fish")]


def rows(p):
    r = p.r
    pl, rw, r1, th = r.choice(ROWS)
    v = dict(a=p.count(), b=p.size())
    n, m = v["a"], v["b"]
    p.what = th
    both = [f"{a(pl)} has {n} {rw} with {m} {th} each", f"there are {n} {rw} of {m} {th} in {a(pl)}", f"{a(pl)} has {n} {rw} and each {r1} has {m} {th}", f"{a(pl)} has {n} {rw} of {m} {th}", f"in {a(pl)} there are {n} {rw} with {m} {th} in each {r1}",
            f"the {pl} has {n} {rw}, {m} {th} in each", f"there are {n} {rw} with {m} {th} each", f"{n} {rw} have {m} {th} each", f"we set up {n} {rw} of {m} {th}", f"each of the {n} {rw} of {a(pl)} has {m} {th}", f"{n} {rw} with {m} {th} in every {r1}"]
    qs = [f"how many {th} are there", f"how many {th} is that", f"how many {th} does the {pl} have", f"how many {th} are there in total", f"how many {th} are in the {pl}", f"what is the number of {th}", f"how many {th} altogether", f"how many {th} in all"]
    terse = [f"{n} {rw}, {m} {th} each", f"{n} {rw} of {m} {th}", f"{m} {th} per {r1}, {n} {rw}", f"{n} {rw} with {m} {th}"]
    p.ask([both], qs, SHORT + (f"how many {th}",), terse)
    p.vary = [("a", [f"And with {{x}} {rw}?", f"and {{x}} {rw}?", f"What if there are {{x}} {rw}?", f"what about {{x}} {rw}"], p.count), ("b", [f"And if each {r1} has {{x}}?", f"what if there are {{x}} {th} in each {r1}?", f"and {{x}} {th} per {r1}?"], p.size)]
    return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


CUT = [("pizza", "slices", "cut into"), ("cake", "pieces", "cut into"), ("pie", "slices", "cut into"), ("apple", "pieces", "cut into"), ("melon", "slices", "cut into"), ("rope", "parts", "cut into"), ("loaf", "slices", "cut into"), ("board", "pieces", "sawn into"), ("sheet", "strips", "cut into"), ("bar", "squares", "broken into"), ("orange", "wedges", "cut into")]


def cut(p):
    r = p.r
    S = p.subject()
    o1, s, w = r.choice(CUT)
    o = "loaves" if o1 == "loaf" else plural(o1)
    v = dict(a=p.r.randint(2, (9, 12, 25)[p.h]), b=r.randint(3, (10, 16, 24)[p.h]))
    n, m = v["a"], v["b"]
    p.what = s
    both = [f"{n} {o} are {w} {m} {s} each", f"{n} {o} {w} {m} {s} each", f"{S.n} cut {n} {o} into {m} {s} each", f"{S.vs('have')} {n} {o} {w} {m} {s} each", f"each of {n} {o} is {w} {m} {s}", f"{S.vs('order')} {n} {o} and each is {w} {m} {s}", f"{n} {o} with {m} {s} each", f"{S.vs('cut')} {n} {o}, each into {m} {s}"]
    one = [f"{a(o1)} is {w} {m} {s}", f"{a(o1)} has {m} {s}", f"{a(o1)} makes {m} {s}", f"each {o1} is {w} {m} {s}", f"one {o1} gives {m} {s}"]
    qs = [f"how many {s} are there", f"how many {s} is that", f"how many {s}", f"how many {s} {S.does} {S.he} get", f"how many {s} in total", f"how many {s} are there in all", f"how many {s} altogether"]
    inq = [f"how many {s} are in {n} {o}", f"how many {s} do {n} {o} make", f"how many {s} do {n} {o} have", f"how many {s} do I get from {n} {o}", f"how many {s} from {n} {o}"]
    terse = [f"{n} {o}, {m} {s} each", f"{n} {o} with {m} {s} each", f"{n} {o} {w} {m} {s} each", f"{m} {s} per {o1}, {n} {o}"]
    if r.random() < 0.6:
        p.ask([both], qs, SHORT + (f"how many {s}",), terse)
    else:
        p.ask([one], inq, inq, terse)
    p.vary = [("a", [f"And with {{x}} {o}?", f"and {{x}} {o}?", f"What about {{x}} {o}?", f"how many {s} from {{x}} {o}?"], p.count), ("b", [f"And if each is {w} {{x}}?", f"what if we cut each into {{x}}?", f"and with {{x}} {s} each?"], p.size)]
    return v, lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


def twice(p):
    """twice (three times ...) as many"""
    r = p.r
    S = p.subject(0.2, 0.15, 0)
    t, _ = p.name()
    o, o1 = p.noun()
    k = r.choice([2, 2, 3, 3, 4, 5])
    v = dict(a=p.have() if p.h < 2 else r.randint(30, 190), b=k)
    x, w = v["a"], MANY[k]
    have = r.choice(["have", "have", "have", "collect", "find", "buy", "sell", "make", "pick"])
    f1 = [f"{S.vs(have)} {x} {o}"]
    f2 = [f"{t} {third(have)} {w} as many", f"{t} {third(have)} {w} as many {o}", f"{t} {third(have)} {w} as many as {S.n if S.he != 'I' else 'I'}" + (f"" if S.he != "I" else " do"), f"{t} {third(have)} {w} that many", f"{t} {third(have)} {w} that"]
    q = [f"how many {o} does {t} {have}", f"how many does {t} {have}", f"how many {o} are {t}'s"]
    p.ask([f1, f2], q, (f"how many", f"how many {o}", f"how many for {t}", f"how many {o} does {t} {have}"))
    p.vary = [("b", [f"And if {t} {third(have)} {{m}} as many?", f"what if it is {{m}} as many?", "and {m} as many?"], lambda: r.randint(2, 6)), ("a", [f"What if {S.n} {S.v(have)} {{x}}?", f"and if {S.n} {S.v(have)} {{x}} {o}?"], p.have)]
    return v, lambda p, v: p.op(v["a"], "*", v["b"], f"{cap(MANY[v['b']])} as many is @.")


# ---------------------------------------------------------------- one division
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


# ---------------------------------------------------------------- a product and one step more
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


SCHEMAS = [(groups, 14), (price, 10), (rate, 10), (fixed, 5), (rows, 4), (cut, 4), (twice, 4), (share, 8), (pack, 5), (unit, 4), (part, 4), (groups_more, 6), (change, 7), (two_prices, 5), (two_groups, 3), (take_groups, 4), (product_share, 3)]
