"""Everyday stories from told.txt, one a line: EXPRESSION | TEXT.   told.py [FILE [SEED]] checks them and shows some.

    a*b-c | {N} buys {b} boxes of {a} {foods}. {He} [eats|drops] {c}. [How many {foods} are left?|What is left?]

EXPRESSION is worked out step by step; its letters are numbers that the text tells, once each. `a<30, b>10 ; a+b` bounds them.
{N} {M} {K} are names, {he} {him} {his} {himself} N's pronouns, {thing} {food} {animal} {person} a noun and {things} ... its plural,
the same through a story; [x|y] takes one of its wordings."""
import ast, os, sys
from wording import *

NOUNS = {"thing": THING, "food": FOOD, "animal": ANIMAL, "person": PEOPLE}
SLOTS = [*"abcdeNMK", "he", "him", "his", "He", "His", "Him", "himself"] + [w + s for w in (*NOUNS, *map(cap, NOUNS)) for s in ("", "s")] + ["people", "People"]
SIGN = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
SAYS = {"+": "Together that is @.", "-": "That leaves @.", "*": "In all that is @.", "/": "Each part is @."}
TRIES = 80


class Story:
    """One template: its expression, its bounds by letter, its text."""

    def __init__(s, line):
        head, s.text = (x.strip() for x in line.split("|", 1))
        bounds, s.expr = head.rsplit(";", 1) if ";" in head else ("", head)
        s.tree = ast.parse(s.expr.strip(), mode="eval").body
        s.bounds = [(b.strip()[0], b.strip()[1], int(b.strip()[2:])) for b in bounds.split(",") if b.strip()]
        nodes = list(ast.walk(s.tree))
        s.letters = sorted({n.id for n in nodes if isinstance(n, ast.Name)})
        product = [n for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Mult, ast.Div))]
        s.parts = {c.id for n in product for c in ([n.left, n.right] if isinstance(n.op, ast.Mult) else [n.right]) if isinstance(c, ast.Name)}
        s.wholes = [(n.left.id, n.right) for n in product if isinstance(n.op, ast.Div) and isinstance(n.left, ast.Name)]

    def draw(s, p):
        """numbers by letter, for which every step has a whole result from 1 to 999"""
        r = p.r
        for _ in range(TRIES):
            top = r.choice(((20, 30), (60, 99), (150, 400))[p.h])
            v = {}
            for c in s.letters:
                lo, hi = 2, r.choice((9, 12, 12, 25)) if c in s.parts else top
                for b, o, x in s.bounds:
                    if b == c:
                        lo, hi = (max(lo, x + 1), max(hi, 2 * x + 20)) if o == ">" else (lo, min(hi, x - 1))
                v[c] = r.randint(min(lo, hi), hi)
            for c, by in s.wholes:
                if isinstance(by, ast.Name):
                    v[c] = v[by.id] * r.randint(2, (12, 20, 60)[p.h])
                elif isinstance(by, ast.Constant):
                    v[c] = by.value * r.randint(2, (12, 20, 60)[p.h])
            try:
                s.work(p, v)
            except Bad:
                continue
            finally:
                p.eqs, p.steps = [], []
            if all(v[b] > x if o == ">" else v[b] < x for b, o, x in s.bounds):
                return v
        raise Bad

    def work(s, p, v, node=None):
        """the value of the expression, its steps added to p"""
        n = node or s.tree
        if isinstance(n, ast.Name):
            return v[n.id]
        if isinstance(n, ast.Constant):
            return n.value
        x, o, y = s.work(p, v, n.left), SIGN[type(n.op)], s.work(p, v, n.right)
        return p.times(x, y, SAYS[o]) if o == "*" else p.op(x, o, y, SAYS[o])

    def tell(s, p, v):
        """the text with its numbers, names and nouns"""
        r, said = p.r, {c: str(x) for c, x in v.items()}
        t = re.sub(r"\[([^\[\]]*)\]", lambda m: r.choice(m[1].split("|")), s.text)
        n, (he, his, him) = p.name()
        own = "himself" if he == "he" else "herself"
        said.update(N=n, M=p.name()[0], K=p.name()[0], he=he, his=his, him=him, He=cap(he), His=cap(his), Him=cap(him), himself=own)
        for k, words in NOUNS.items():
            w = r.choice(words) if r.random() > 0.04 else "".join(r.choice(SYLLABLES) for _ in range(3))
            many = plural(w)
            said.update({k: w, k + "s": many, cap(k): cap(w), cap(k) + "s": cap(many)})
        said.update(people=said["persons"], People=said["Persons"])

        def fill(m):
            w = said[m[2]]
            return (m[1][0] + ("n " if w[0].lower() in "aeiou" else " ") if m[1] else "") + w
        t = re.sub(r"(\b[Aa]n? )?\{(\w+)\}", lambda m: fill(m) if m[2].lower() in NOUNS else (m[1] or "") + said[m[2]], t)
        return re.sub(r"  +", " ", t).replace(" .", ".").replace(" ,", ",").replace(" ?", "?").strip()


def read(path):
    return [Story(x) for x in open(path) if x.strip() and not x.startswith("#")]


STORIES = read(os.environ.get("TOLD") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "told.txt"))


def told(p):
    s = p.r.choice(STORIES)
    v = s.draw(p)
    p.text = s.tell(p, v)
    p.skel, p.what, p.who = [s.expr.strip()], None, None
    return v, lambda p, v: s.work(p, v)


SCHEMAS = [(told, 320)]


def check(path, seed=0, show=60):
    """names the faulty lines of a file and shows stories of it"""
    r, stories, frames = random.Random(seed), [], {}
    for i, line in enumerate(open(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            s = Story(line)
            for n in ast.walk(s.tree):
                assert isinstance(n, (ast.BinOp, ast.Name, ast.Constant, *SIGN, ast.Load)), f"{type(n).__name__} in the expression"
            assert s.tree.__class__ is ast.BinOp, "no operation"
            for x in re.findall(r"\{(\w*)\}", s.text):
                assert x in SLOTS, f"unknown slot {{{x}}}"
            assert s.text.count("[") == s.text.count("]") == len(re.findall(r"\[[^\[\]]*\]", s.text)), "brackets"
            for _ in range(12):
                p = Q(r, r.choice([0, 0, 1, 2]))
                try:
                    v = s.draw(p)
                except Bad:
                    continue
                t = s.tell(p, {c: f"<{c}>" for c in v})
                for c in v:
                    assert t.count(f"<{c}>") == 1, f"{{{c}}} is told {t.count(f'<{c}>')} times in: {t}"
                stories.append((i, s.tell(p, v), s.work(p, v), p.steps))
            assert any(j == i for j, *_ in stories), "no numbers fit"
            frame = re.sub(r"\W+", " ", re.sub(r"\[[^\]]*\]|\{\w+\}", "", s.text)).lower()
            assert frame not in frames, f"the frame of line {frames.get(frame)}"
            frames[frame] = i
        except Exception as e:
            print(f"line {i}: {type(e).__name__ if not isinstance(e, AssertionError) else 'fault'}: {e}")
    print(len(frames), "good templates")
    for i, t, x, steps in r.sample(stories, min(show, len(stories))):
        print(f"{i}: {t}  => {' '.join(steps)} {x}")


if __name__ == "__main__":
    check(sys.argv[1] if len(sys.argv) > 1 else "told.txt", *map(int, sys.argv[2:3]))
