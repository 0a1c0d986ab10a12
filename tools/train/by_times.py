"""Short questions of one multiplication."""
from wording import *


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


SCHEMAS = [(groups, 60), (price, 10), (rate, 10), (fixed, 5), (rows, 4), (cut, 4), (twice, 4)]
