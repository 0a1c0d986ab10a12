"""A short question of any kind:  everyday.py [SEED] shows some."""
import sys
import by_compare, by_division, by_measures, by_missing, by_more, by_products, by_stories, by_sums, by_times, by_words, told
from data import bucket
from wording import *

# their order decides which question a seed draws
KINDS = [kind for m in (by_times, by_division, by_products, by_sums, by_compare, by_missing, by_measures, by_words, by_more, by_stories, told) for kind in m.SCHEMAS]
_F, _W = [f for f, _ in KINDS], [w for _, w in KINDS]


def asked(r, h=None, test=False, kind=None):
    """a short question, typed in some way; from the held-out bucket if test, else outside it"""
    while True:
        f = kind or r.choices(_F, _W)[0]
        p = Q(r, r.choice([0, 0, 0, 1, 1, 2]) if h is None else h)
        try:
            v, fn = f(p)
            x = fn(p, v)
        except Bad:
            continue
        if (bucket(p, "e_" + f.__name__) == 7) != test:
            continue
        text, steps = p.text, p.steps
        if r.random() < 0.3:
            text, steps = reword(r, text, steps)
            p.vary = []
        return dict(question=style(r, text), answer=x, steps=steps, eqs=p.eqs, level=len(p.eqs), hard=p.h, kind="e_" + f.__name__, again=p.vary, vals=v, fn=fn, what=p.what, who=p.who, skel=p.skel)


def sums(r, test=False):
    """a sum in words or signs, as data.drill and beyond it: long products, brackets, halves and doubles"""
    while True:
        p = Q(r, r.choice([0, 0, 1, 1, 2]))
        k = r.random()
        x, y, c = p.have(), p.more(), p.count()
        try:
            if k < 0.2:
                q = r.choice([f"{x} and {y}", f"what is the sum of {x} and {y}", f"add {x} and {y}", f"add {y} to {x}", f"{x} plus {y}", f"what do I get if I add {y} to {x}", f"what is {x} and {y} together", f"sum of {x} and {y}", f"{x} more than {y}", f"what is {y} more than {x}", f"increase {x} by {y}", f"what's {x} plus {y}", f"what's {x}+{y}", f"what do {x} and {y} make", f"can you add {x} and {y}", f"{x} plus {y} is what", f"how much is {x} and {y}", f"what is {x} added to {y}", f"please add {x} and {y}", f"what does {x} plus {y} make", f"tell me {x} plus {y}", f"put {x} and {y} together", f"what number is {x} plus {y}"])
                z = p.op(x, "+", y, "@.")
            elif k < 0.4:
                x += y
                q = r.choice([f"{x} minus {y}", f"subtract {y} from {x}", f"what is {x} minus {y}", f"take {y} from {x}", f"take {y} away from {x}", f"what is the difference between {x} and {y}", f"what is {y} less than {x}", f"{x} take away {y}", f"what is left if I take {y} from {x}", f"decrease {x} by {y}", f"what's {x}-{y}", f"difference of {x} and {y}", f"what's {x} - {y}", f"{y} from {x}", f"what does {x} minus {y} give", f"can you subtract {y} from {x}", f"tell me {x} minus {y}", f"{x} without {y}", f"{x}, take away {y}", f"what number is {x} minus {y}", f"if I take {y} from {x}, what is left"])
                z = p.op(x, "-", y, "@.")
            elif k < 0.68:
                x, y = (p.count(), p.size()) if r.random() < 0.6 else (r.randint(2, 60), r.randint(2, 60))
                if x * y > 999:
                    continue
                q = r.choice([f"{x} times {y}", f"what is {x} times {y}", f"{x}x{y}", f"{x} x {y}", f"what is the product of {x} and {y}", f"multiply {x} by {y}", f"multiply {x} and {y}", f"{x}*{y}", f"what's {x} times {y}", f"what is {x}*{y}", f"what is {x} x {y}", f"how much is {x} times {y}", f"{x} * {y}", f"product of {x} and {y}", f"what's {x}*{y}", f"what does {x} times {y} give", f"can you multiply {x} by {y}", f"tell me {x} times {y}", f"{x} multiplied by {y}", f"what is {x} multiplied by {y}", f"{x} groups of {y}", f"what number is {x} times {y}", f"if I multiply {x} by {y}, what do I get"])
                z = p.times(x, y, "@.")
            elif k < 0.82:
                x, y = p.divs()
                q = r.choice([f"{x} divided by {y}", f"divide {x} by {y}", f"what is {x} divided by {y}", f"{x} / {y}", f"{x}/{y}", f"how often does {y} go into {x}", f"how many times does {y} go into {x}", f"how many times does {y} fit into {x}", f"split {x} into {y} equal parts", f"what's {x} divided by {y}", f"what is {x} over {y}", f"{x} : {y}", f"what does {x} divided by {y} give", f"can you divide {x} by {y}", f"tell me {x} divided by {y}", f"share {x} by {y}", f"if I divide {x} by {y}, what do I get", f"what is one part if {x} is split in {y} parts", f"{x} in {y} equal parts"])
                z = p.op(x, "/", y, "@.")
            elif k < 0.9:
                w, d = r.choice([("half of", 2), ("a third of", 3), ("a quarter of", 4), ("double", -2), ("twice", -2), ("triple", -3), ("three times", -3), ("one half of", 2)])
                x = x * d if d > 0 else x
                q = r.choice([f"{w} {x}", f"what is {w} {x}", f"what's {w} {x}", f"how much is {w} {x}", f"calculate {w} {x}"])
                z = p.op(x, "/", d, "@.") if d > 0 else p.op(x, "*", -d, "@.")
            elif k < 0.95:
                q = r.choice([f"({x}+{y})*{c}", f"({x} + {y}) * {c}", f"{c} * ({x} + {y})", f"({x} + {y}) times {c}"])
                z = p.op(p.op(x, "+", y, "@."), "*", c, "@.")
            else:
                q = r.choice([f"{x}+{y}*{c}", f"{x} + {y} * {c}", f"what is {x} + {y} * {c}", f"{x} plus {y} times {c}"])
                z = p.op(x, "+", p.op(y, "*", c, "@."), "@.")
        except Bad:
            continue
        if (bucket(p, "sums") == 7) != test:
            continue
        if r.random() < 0.15:
            q = spell(r, q)
        if r.random() < 0.35:
            q = cap(q)
        if r.random() < 0.45:
            q += r.choice(["?", "?", "?", "=", " = ?", "=?"]) if not q[:3].lower() in ("add", "sub", "tak", "mul", "div", "spl", "inc", "dec", "cal") else "."
        return dict(question=q, answer=z, steps=p.steps, eqs=p.eqs, level=len(p.eqs), hard=p.h, kind="sums")


if __name__ == "__main__":
    r = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    for f in _F:
        for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 4):
            d = asked(r, kind=f)
            print(f"[{d['kind']}]", d["question"], " => ", " / ".join(d["steps"]), d["answer"])
