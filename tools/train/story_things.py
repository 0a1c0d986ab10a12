"""Long stories about things: what people have, compare, buy and share, and what stands in rows."""
from problem import Bad
from story_words import BOX, OBJ, SHOP


def inventory(p, level):
    r = p.r
    n, (he, his, him) = p.person()
    He = he.capitalize()
    o, o1 = r.choice(OBJ)
    p.what = o
    bx, bx1 = r.choice(BOX)
    x = p.amt()
    p.say(f"{n} has {x} {o}.", f"{n} starts with {x} {o}.", f"There are {x} {o} in {n}'s room.", f"{n} owns {x} {o}.", f"{n} collected {x} {o}.")
    end = "now"
    rest = level
    if r.random() < 0.4 and rest >= 1:
        end = r.choice(["share", "sell", "goal", "half", "each"])
        rest -= 1
    last = None
    while rest > 0:
        k2 = rest >= 2
        e = r.choice(["gain", "lose", "gain", "lose", "gp", "lp", "dbl", "half"] if k2 else ["gain", "lose", "gain", "lose", "dbl", "half"])
        if e == last and e in ("dbl", "half"):
            continue
        last = e
        w = r.choice(["", "", "Then ", "Later ", "Next, "])
        hw = He if w == "" else he
        if e == "gain":
            k = p.addend()
            m = p.person()[0] if r.random() < 0.4 else None
            if m:
                p.say(f"{w}{hw} gets {k} more {o} from {m}.", f"{w}{m} gives {him} {k} more {o}.", f"{w}{m} brings {him} {k} {o}.")
            else:
                p.say(f"{w}{hw} buys {k} more {o}.", f"{w}{hw} finds {k} more {o}.", f"{w}{hw} gets {k} more.", f"{w}{hw} picks up {k} {o}.", f"{w}{hw} adds {k} {o}.")
            x = p.op(x, "+", k, f"{He} gets {k} more: @.")
            rest -= 1
        elif e == "lose":
            k = p.less(x)
            m = p.person()[0] if r.random() < 0.4 else None
            if m:
                p.say(f"{w}{hw} gives {k} {o} to {m}.", f"{w}{m} takes {k} of the {o}.", f"{w}{hw} sells {k} {o} to {m}.")
            else:
                p.say(f"{w}{hw} loses {k} {o}.", f"{w}{hw} sells {k} of them.", f"{w}{hw} uses {k} {o}.", f"{w}{hw} gives away {k} {o}.", f"{w}{hw} throws away {k} {o}.")
            x = p.op(x, "-", k, f"{He} has {k} fewer: @.")
            rest -= 1
        elif e == "gp":
            a, b = p.mul()
            p.say(f"{w}{hw} buys {a} {bx} with {b} {o} each.", f"{w}{hw} gets {a} {bx} of {b} {o}.", f"{w}{hw} finds {a} {bx} and each {bx1} holds {b} {o}.")
            c = p.op(a, "*", b, f"{a} {bx} of {b} make @.")
            x = p.op(x, "+", c, f"Now {he} has @.")
            rest -= 2
        elif e == "lp":
            a, b = p.mul()
            if a * b >= x:
                raise Bad
            p.say(f"{w}{hw} gives {b} {o} to each of {a} friends.", f"{w}{a} friends take {b} {o} each.", f"{w}{hw} sells {a} {bx} of {b} {o}.")
            c = p.op(a, "*", b, f"That is @ {o} less.")
            x = p.op(x, "-", c, f"Now {he} has @.")
            rest -= 2
        elif e == "dbl":
            k = r.choice([2, 2, 3])
            w2 = {2: "doubles", 3: "triples"}[k]
            p.say(f"{w}{hw} {w2} the number of {o}.", f"{w}the number of {o} {w2}." if w else f"The number of {o} {w2}.")
            x = p.op(x, "*", k, f"The number {w2}: @.")
            rest -= 1
        else:
            if x % 2:
                raise Bad
            p.say(f"{w}{hw} gives away half of the {o}.", f"{w}{hw} sells half of them.", f"{w}{hw} loses half of {his} {o}.")
            x = p.op(x, "/", 2, f"Half are left: @.")
            rest -= 1
        p.skel.append(e)
    p.skel.append(end)
    if end == "now":
        p.say(f"How many {o} does {n} have now?", f"How many {o} does {he} have in the end?", f"How many {o} are there now?", f"What is the number of {o} {n} has now?")
    elif end == "share":
        d = p.div(x)
        p.say(f"{He} puts all {o} into {d} equal {bx}. How many {o} are in each {bx1}?", f"{He} shares them equally among {d} friends. How many {o} does each friend get?")
        x = p.op(x, "/", d, f"Each one gets @.")
    elif end == "sell":
        c = r.randint(*((2, 5), (2, 9), (3, 12))[p.h])
        p.say(f"{He} sells all of them for {c} dollars each. How many dollars does {he} get?", f"Each {o1} is worth ${c}. How many dollars are all the {o} worth?")
        x = p.op(x, "*", c, f"All {o} are worth @ dollars.")
    elif end == "goal":
        t = x + p.addend()
        p.say(f"{n} wants to have {t} {o}. How many more does {he} need?", f"How many more {o} does {n} need to reach {t}?")
        x = p.op(t, "-", x, f"{He} needs @ more.")
    elif end == "half":
        if x % 2:
            raise Bad
        p.say(f"{He} paints half of the {o} red. How many {o} are red?", f"Half of the {o} are old. How many {o} are old?")
        x = p.op(x, "/", 2, f"Half of them is @.")
    else:
        d = p.div(x)
        p.say(f"A {bx1} holds {d} {o}. How many {bx} does {he} need?", f"How many {bx} of {d} {o} can {he} fill?")
        x = p.op(x, "/", d, f"{He} needs @ {bx}.")
    return x


def compare(p, level):
    r = p.r
    o, o1 = r.choice(OBJ)
    p.what = o
    a, (he, his, him) = p.person()
    x = p.amt()
    verb = r.choice(["has", "has", "collects", "sells", "finds", "makes"])
    p.say(f"{a} {verb} {x} {o}.")
    vals = [(a, x)]
    total = r.random() < 0.6
    # people beyond the first: k chain steps, then total needs k further additions
    k = max(1, (level + 1) // 2) if total else level
    if total and 2 * k != level:
        extra = level - 2 * k
    else:
        extra = 0
    if k > 4:
        raise Bad
    if total and extra not in (0, -1, 1):
        raise Bad
    for i in range(k):
        b, _ = p.person()
        pn, px = vals[-1] if r.random() < 0.75 else r.choice(vals)
        e = r.choice(["more", "less", "times", "half"])
        p.skel.append(e)
        if e == "more":
            d = p.addend()
            p.say(f"{b} {verb} {d} more {o} than {pn}.", f"{b} {verb} {d} more than {pn}.")
            y = p.op(px, "+", d, f"{b} {verb} @.")
        elif e == "less":
            d = p.less(px)
            p.say(f"{b} {verb} {d} fewer {o} than {pn}.", f"{b} {verb} {d} less than {pn}.")
            y = p.op(px, "-", d, f"{b} {verb} @.")
        elif e == "times":
            d = r.randint(2, (3, 4, 5)[p.h])
            t = {2: "twice", 3: "three times", 4: "four times", 5: "five times"}[d]
            p.say(f"{b} {verb} {t} as many {o} as {pn}.")
            y = p.op(px, "*", d, f"{b} {verb} @.")
        else:
            if px % 2:
                raise Bad
            p.say(f"{b} {verb} half as many {o} as {pn}.")
            y = p.op(px, "/", 2, f"{b} {verb} @.")
        vals.append((b, y))
    if not total:
        if r.random() < 0.5 or len(p.eqs) >= level and level > 4:
            p.say(f"How many {o} does {vals[-1][0]} have?" if verb == "has" else f"How many {o} are {vals[-1][0]}'s?")
            p.skel.append("last")
            return vals[-1][1]
        p.say(f"How many {o} do {vals[-1][0]} and {a} have together?")
        p.skel.append("two")
        return p.op(a and x, "+", vals[-1][1], f"Together that is @.")
    p.skel.append("total")
    p.say(f"How many {o} do they have altogether?", f"How many {o} do they have in total?", f"What is the total number of {o}?")
    t = vals[0][1]
    for i, (b, y) in enumerate(vals[1:]):
        t = p.op(t, "+", y, f"{'Together' if i == len(vals) - 2 else 'First'} @.")
    return t


def shopping(p, level):
    r = p.r
    n, (he, his, him) = p.person()
    He = he.capitalize()
    its = r.sample(SHOP, 3)
    # items: each product costs one step, sums one step each; change one step
    k = r.choice([1, 2, 2, 3])
    change = r.random() < 0.6
    cost, parts = None, []
    for i in range(k):
        o, o1 = its[i]
        single = r.random() < 0.25
        if single:
            c = p.addend()
            parts.append(f"a {o1} for ${c}")
            v = c
        else:
            a, b = p.mul()
            parts.append(r.choice([f"{a} {o} for ${b} each", f"{a} {o} at {b} dollars each", f"{a} {o} that cost ${b} each"]))
            v = p.op(a, "*", b, f"The {o} cost @.")
        p.skel.append("s" if single else "m")
        parts[-1] = (parts[-1], v)
    txt = ", ".join(t for t, _ in parts[:-1])
    txt = (txt + " and " if txt else "") + parts[-1][0]
    p.say(f"{n} buys {txt}.", f"At the store {n} buys {txt}.")
    cost = parts[0][1]
    for t, v in parts[1:]:
        cost = p.op(cost, "+", v, f"So far {he} pays @.")
    if r.random() < 0.3 and cost > 12:
        d = p.less(cost)
        p.say(f"{He} has a coupon for ${d} off.", f"The shop takes {d} dollars off.")
        cost = p.op(cost, "-", d, f"With the discount it is @.")
        p.skel.append("c")
    if change:
        if r.random() < 0.5:
            w = cost + p.addend()
            w = ((w + 9) // 10) * 10 if r.random() < 0.5 else w
            if w <= cost:
                raise Bad
            p.say(f"{He} pays with ${w}. How much change does {he} get?", f"{He} had {w} dollars. How many dollars are left?", f"{He} gives the clerk {w} dollars. How many dollars does {he} get back?")
            cost = p.op(w, "-", cost, f"{He} has @ left.")
            p.skel.append("chg")
        else:
            d = p.div(cost)
            p.say(f"{He} splits the cost equally with friends, {d} people in all. How many dollars does each pay?", f"{d} friends share the cost equally. How much does each friend pay?")
            cost = p.op(cost, "/", d, f"Each one pays @.")
            p.skel.append("spl")
    else:
        p.say(f"How much does {he} pay in total?", "How many dollars is that in all?", f"How many dollars does {n} spend?")
    return cost


def sharing(p, level):
    r = p.r
    o, o1 = r.choice(OBJ)
    p.what = o
    bx, bx1 = r.choice(BOX)
    d = r.randint(2, 9)
    y = r.randint(*((2, 9), (4, 20), (12, 60))[p.h])
    x = d * y
    left = level
    who = r.choice(["children", "students", "friends", "players", "teams", "families"])
    if left >= 3 and r.random() < 0.5:
        a = r.randint(2, x - 1) if x > 3 else 2
        b = x - a
        p.say(f"There are {a} red {o} and {b} blue {o}.", f"One {bx1} has {a} {o} and another {bx1} has {b} {o}.", f"There are {a} big {o} and {b} small {o}.")
        x = p.op(a, "+", b, f"There are @ {o}.")
        left -= 1
        p.skel.append("ab")
    elif left >= 3 and r.random() < 0.5:
        k = p.addend()
        p.say(f"There are {x + k} {o}, but {k} of them are bad and thrown away.", f"A box had {x + k} {o} and {k} were removed.")
        x = p.op(x + k, "-", k, f"That leaves @ {o}.")
        left -= 1
        p.skel.append("rm")
    else:
        p.say(f"There are {x} {o}.", f"A teacher has {x} {o}.", f"A shop has {x} {o}.", f"A box holds {x} {o}.")
    p.say(f"They are shared equally among {d} {who}.", f"{d} {who} share them equally.", f"The {o} are split evenly among {d} {who}.")
    x = p.op(x, "/", d, f"Each gets @.")
    left -= 1
    while left > 0:
        e = r.choice(["had", "eat", "price", "dbl"])
        p.skel.append(e)
        if e == "had":
            k = p.addend()
            p.say(f"Each of them already had {k} {o}.", f"Then each one finds {k} more {o}.")
            x = p.op(x, "+", k, f"With {k} more each has @.")
        elif e == "eat":
            k = p.less(x)
            p.say(f"Then each one uses {k} {o}.", f"Each of them gives {k} {o} away.", f"Each one loses {k}.")
            x = p.op(x, "-", k, f"Without {k} each has @.")
        elif e == "dbl":
            k = r.choice([2, 3])
            p.say(f"Then each one gets {'twice' if k == 2 else 'three times'} as many as before.")
            x = p.op(x, "*", k, f"{'Twice' if k == 2 else 'Three times'} as many is @.")
        else:
            c = r.randint(2, 9)
            p.say(f"One {o1} costs ${c}. How many dollars are the {o} of one of the {who} worth?", f"Each {o1} is sold for {c} dollars. How many dollars does each of the {who} get?")
            left -= 1
            if left > 0:
                raise Bad
            return p.op(x, "*", c, f"They are worth @ dollars.")
        left -= 1
    p.say(f"How many {o} does each of the {who} have now?", f"How many {o} does each one have?")
    return x


def rows(p, level):
    r = p.r
    kinds = [("hall", "rows", "seats"), ("garden", "rows", "plants"), ("school", "classes", "students"), ("parking lot", "rows", "cars"),
             ("library", "shelves", "books"), ("hotel", "floors", "rooms"), ("orchard", "rows", "trees"), ("train", "wagons", "seats"), ("farm", "fields", "sheep")]
    pl, rw, th = r.choice(kinds)
    a, b = p.mul()
    p.say(f"A {pl} has {a} {rw} with {b} {th} each.", f"In a {pl} there are {a} {rw} and each has {b} {th}.")
    x = p.op(a, "*", b, f"{a} {rw} of {b} make @ {th}.")
    left = level - 1
    while left > 0:
        e = r.choice(["minus", "plus", "mulp", "div", "second"] if left >= 2 else ["minus", "plus", "div"])
        p.skel.append(e)
        if e == "minus":
            k = p.less(x)
            p.say(f"{k} of the {th} are removed.", f"{k} {th} are missing today.", f"Then {k} {th} are taken away.")
            x = p.op(x, "-", k, f"Without {k} it is @.")
        elif e == "plus":
            k = p.addend()
            p.say(f"Outside there are {k} more {th}.", f"Then {k} {th} are added.")
            x = p.op(x, "+", k, f"With {k} more it is @.")
        elif e in ("mulp", "second"):
            c, d = p.mul()
            p.say(f"A second {pl} has {c} {rw} with {d} {th} each.", f"Next to it is a {pl} with {c} {rw} of {d} {th}.")
            y = p.op(c, "*", d, f"The second one has @ {th}.")
            x = p.op(x, "+", y, f"Both have @.")
            left -= 1
        else:
            left -= 1
            if left > 0:
                raise Bad
            d = p.div(x)
            p.say(f"All {th} are put into {d} equal groups. How many {th} are in one group?", f"The {th} are divided by {d} for a count. What is the result?")
            return p.op(x, "/", d, f"One group has @.")
        left -= 1
    p.say(f"How many {th} are there in total?", f"How many {th} are there now?", f"What is the number of {th} at the end?")
    return x
