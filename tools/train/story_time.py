"""Long stories about time: rates, ages, and the days of a week."""
from problem import Bad
from story_words import DAYS, OBJ

RATES = [("A machine makes", "toys", "hour", "hours", "It runs"), ("A baker bakes", "cakes", "hour", "hours", "The baker works"),
         ("A printer prints", "pages", "minute", "minutes", "It prints for"), ("A farmer picks", "apples", "hour", "hours", "The farmer works"),
         ("A pump moves", "liters", "minute", "minutes", "It runs"), ("A factory builds", "bikes", "day", "days", "It is open"),
         ("A worker packs", "boxes", "hour", "hours", "The worker packs for"), ("A cow gives", "liters", "day", "days", "It is milked for")]


def rate(p, level):
    r = p.r
    kind = r.choice(["make", "read", "earn", "drive", "save"])
    p.skel.append(kind)
    a, b = p.mul()  # a units of time, b per unit
    if kind == "make":
        s, o, u, us, run = r.choice(RATES)
        p.say(f"{s} {b} {o} per {u}.", f"{s} {b} {o} every {u}.", f"{s} {b} {o} each {u}.")
        what, unit = o, us
        runs = run
        who = None
    elif kind == "read":
        n, (he, his, him) = p.person()
        p.say(f"{n} reads {b} pages every day.", f"{n} reads {b} pages per day.")
        what, unit, runs = "pages", "days", f"{he.capitalize()} reads for"
    elif kind == "earn":
        n, (he, his, him) = p.person()
        p.say(f"{n} earns {b} dollars per hour.", f"{n} earns ${b} an hour.", f"{n} gets {b} dollars for every hour of work.")
        what, unit, runs = "dollars", "hours", f"{he.capitalize()} works"
    elif kind == "save":
        n, (he, his, him) = p.person()
        p.say(f"{n} saves {b} dollars every week.", f"{n} saves ${b} each week.")
        what, unit, runs = "dollars", "weeks", f"{he.capitalize()} saves for"
    else:
        n, (he, his, him) = p.person()
        p.say(f"{n} drives {b} miles per hour.", f"{n} drives {b} miles every hour.")
        what, unit, runs = "miles", "hours", f"{he.capitalize()} drives for"
    left = level
    if left >= 3 and r.random() < 0.5:
        t2 = r.randint(2, 6)
        d1, d2 = r.sample(DAYS, 2)
        p.say(f"{runs} {a} {unit} and then {t2} more {unit}.", f"{runs} {a} {unit} at first and later for {t2} more {unit}.")
        t = p.op(a, "+", t2, f"That is @ {unit}.")
        left -= 1
        p.skel.append("2")
    else:
        p.say(f"{runs} {a} {unit}.", f"{runs} {a} {unit} in all.")
        t = a
    x = p.op(t, "*", b, f"In {t} {unit} that is @ {what}.")
    left -= 1
    while left > 0:
        e = r.choice(["plus", "minus", "div", "goal", "pack"] if left >= 2 else ["plus", "minus", "div", "goal"])
        p.skel.append(e)
        if e == "plus":
            k = p.addend()
            p.say(f"Another {k} {what} are added.", f"There were already {k} {what} before that.", f"Then {k} more {what} come from somewhere else.")
            x = p.op(x, "+", k, f"With {k} more it is @.")
        elif e == "minus":
            k = p.less(x)
            p.say(f"After that {k} {what} are gone.", f"But {k} {what} do not count.", f"Then {k} {what} are taken away.")
            x = p.op(x, "-", k, f"Without {k} it is @.")
        elif e == "pack":
            aa, bb = p.mul()
            p.say(f"There are also {aa} groups of {bb} {what}.", f"Then {aa} more groups of {bb} {what} arrive.")
            c = p.op(aa, "*", bb, f"The groups have @.")
            x = p.op(x, "+", c, f"With them it is @.")
            left -= 1
        elif e == "div":
            d = p.div(x)
            p.say(f"All of it is divided into {d} equal parts.", f"The {what} are split into {d} equal groups.")
            x = p.op(x, "/", d, f"One part is @.")
            left -= 1
            if left > 0:
                raise Bad
            p.say(f"How many {what} are in one part?", f"How many {what} does one group have?")
            return x
        else:
            g = x + p.addend()
            left -= 1
            if left > 0:
                raise Bad
            p.say(f"The goal is {g} {what}. How many {what} are missing?", f"How many more {what} are needed to reach {g}?")
            return p.op(g, "-", x, f"To reach {g} it takes @ more.")
        left -= 1
    p.say(f"How many {what} is that in total?", f"How many {what} are there at the end?", f"What is the final number of {what}?")
    return x


def ages(p, level):
    r = p.r
    a, (he, his, him) = p.person()
    x = r.randint(4, (12, 20, 40)[p.h])
    p.say(f"{a} is {x} years old.", f"{a} is {x}.")
    cur, cn = x, a
    vals = [(a, x)]
    left = level
    while left > 0:
        e = r.choice(["older", "younger", "times", "end"])
        if e == "end" and len(vals) > 1:
            break
        if e == "end" or len(vals) > 4:
            continue
        b, _ = p.person()
        if e == "older":
            k = r.randint(2, 30)
            p.say(f"{b} is {k} years older than {cn}.")
            cur = p.op(cur, "+", k, f"{b} is @.")
        elif e == "younger":
            if cur < 5:
                continue
            k = r.randint(2, min(cur - 1, 30))
            p.say(f"{b} is {k} years younger than {cn}.")
            cur = p.op(cur, "-", k, f"{b} is @.")
        else:
            k = r.randint(2, 4)
            if cur * k > 110:
                continue
            p.say(f"{b} is {({2: 'twice', 3: 'three times', 4: 'four times'})[k]} as old as {cn}.")
            cur = p.op(cur, "*", k, f"{b} is @.")
        p.skel.append(e)
        cn = b
        vals.append((b, cur))
        left -= 1
    if left == 0:
        p.skel.append("q")
        p.say(f"How old is {cn}?", f"What is the age of {cn}?")
        return cur
    if left == 1:
        if r.random() < 0.5:
            k = r.randint(2, 30)
            p.skel.append("in")
            p.say(f"How old will {cn} be in {k} years?")
            return p.op(cur, "+", k, f"In {k} years {cn} is @.")
        p.skel.append("dif")
        (n1, v1), (n2, v2) = vals[0], vals[-1]
        if v1 == v2:
            raise Bad
        p.say(f"How many years are between {n1} and {n2}?")
        return p.op(max(v1, v2), "-", min(v1, v2), f"The difference is @.")
    t = vals[0][1]
    if left != len(vals) - 1:
        raise Bad
    p.skel.append("sum")
    p.say("What is the sum of their ages?", "How old are they together?")
    for i, (b, y) in enumerate(vals[1:]):
        t = p.op(t, "+", y, f"{'Together' if i == len(vals) - 2 else 'First'} @.")
    return t


def week(p, level):
    r = p.r
    n, (he, his, him) = p.person()
    o, o1 = r.choice(OBJ)
    p.what = o
    i = r.randint(0, 3)
    v0, vb = r.choice([("sells", "sell"), ("makes", "make"), ("picks", "pick"), ("counts", "count"), ("packs", "pack")])
    x = p.amt()
    p.say(f"On {DAYS[i]} {n} {v0} {x} {o}.", f"{n} {v0} {x} {o} on {DAYS[i]}.")
    vals = [x]
    k = max(1, level // 2)
    for j in range(k):
        d = DAYS[i + j + 1]
        e = r.choice(["more", "less", "twice", "num"])
        p.skel.append(e)
        y = vals[-1]
        if e == "more":
            t = p.addend()
            p.say(f"On {d} {he} {v0} {t} more than on {DAYS[i + j]}.")
            y = p.op(y, "+", t, f"On {d} it is @.")
        elif e == "less":
            t = p.less(y)
            p.say(f"On {d} {he} {v0} {t} fewer than on {DAYS[i + j]}.")
            y = p.op(y, "-", t, f"On {d} it is @.")
        elif e == "twice":
            p.say(f"On {d} {he} {v0} twice as many as on {DAYS[i + j]}.")
            y = p.op(y, "*", 2, f"On {d} it is @.")
        else:
            y = p.amt()
            p.say(f"On {d} {he} {v0} {y} {o}.")
        vals.append(y)
    p.skel.append("t")
    t = vals[0]
    for j, y in enumerate(vals[1:]):
        t = p.op(t, "+", y, f"{'Together' if j == len(vals) - 2 else 'First'} @.")
    if len(p.eqs) < level and r.random() < 0.7:
        z = r.choice(["left", "price", "per"])
        p.skel.append(z)
        if z == "left":
            g = t + p.addend()
            p.say(f"At first there were {g} {o}. How many are left after these days?", f"{n} has {g} {o} to {vb}. How many remain?")
            return p.op(g, "-", t, f"From {g} there are @ left.")
        if z == "price":
            c = r.randint(2, (5, 9, 9)[p.h])
            p.say(f"{n} gets {c} dollars for each. How many dollars does {he} get in all?", f"Each {o1} brings ${c}. How many dollars is that in all?")
            return p.op(t, "*", c, f"That brings @ dollars.")
        d = p.div(t)
        p.say(f"All {o} go into {d} equal boxes. How many {o} are in one box?")
        return p.op(t, "/", d, f"One box has @.")
    p.say(f"How many {o} does {he} {vb} in total?", f"How many {o} is that altogether?")
    return t
