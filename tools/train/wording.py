"""Short questions as people type them: one or two sentences, one to four operations.

The schemas (by_*.py) draw their numbers, offer several wordings of every fact and of the question, and say how the answer
is computed. `compose` joins the wordings in the orders that people use; `style` types them (lower case, no question mark, numbers
as words ...). A schema also names the numbers that a later question may change ("And with 9 boxes?", see turns.py).
"""
import random, re
import data
from data import Bad, P
from words import *


class Subject:
    """Who the question is about: "Ann", "I", "my brother", "a farmer", "we" ..."""

    def __init__(s, text, he, his, him, plural=False):
        s.n, s.he, s.his, s.him, s.pl = text, he, his, him, plural
        s.past = False
        s.does = "do" if plural else "does"
        s.isv = "am" if he == "I" else "are" if plural else "is"

    def v(s, verb):
        return past(verb) if s.past else verb if s.pl else third(verb)

    def vs(s, verb):
        """subject and verb"""
        return f"{s.n} {s.v(verb)}"


PERSONS = [("my brother", "he"), ("my sister", "she"), ("my mom", "she"), ("my dad", "he"), ("my friend", "he"), ("my friend", "she"), ("a farmer", "he"), ("a teacher", "she"), ("the teacher", "she"),
           ("a baker", "he"), ("a girl", "she"), ("a boy", "he"), ("my neighbor", "she"), ("grandma", "she"), ("grandpa", "he"), ("a man", "he"), ("a woman", "she"), ("the chef", "he"), ("my son", "he"), ("my daughter", "she"),
           ("a child", "he"), ("my uncle", "he"), ("my aunt", "she"), ("a student", "she"), ("the boss", "he"), ("our coach", "he"), ("the cook", "she"), ("a gardener", "he")]
GROUPS = [("we", "we", "our", "us"), ("they", "they", "their", "them"), ("the kids", "they", "their", "them"), ("my parents", "they", "their", "them"), ("you", "you", "your", "you"), ("the children", "they", "their", "them"),
          ("the girls", "they", "their", "them"), ("the boys", "they", "their", "them"), ("my friends", "they", "their", "them")]
HIM = {"he": ("he", "his", "him"), "she": ("she", "her", "her")}


class Q(P):
    """One short question under construction. v holds the numbers that a later question may change."""

    def __init__(s, r, h):
        super().__init__(r, h)
        s.text, s.vary, s.what, s.who, s.coin = "", [], None, None, None

    def name(s):
        r = s.r
        while True:
            k = r.random()
            m = r.random() < 0.5
            n = r.choice(NAMES_M if m else NAMES_F) if k < 0.93 else "".join(r.choice(SYLLABLES) for _ in range(r.choice([2, 2, 3]))).capitalize()
            if n not in s.names:
                s.names.append(n)
                return n, HIM["he" if m else "she"]

    def subject(s, first=0.22, person=0.2, group=0.1):
        r = s.r
        k = r.random()
        if k < first:
            x = Subject("I", "I", "my", "me", True)
        elif k < first + person:
            n, he = r.choice(PERSONS)
            x = Subject(n, *HIM[he])
        elif k < first + person + group:
            x = Subject(*r.choice(GROUPS), True)
        else:
            n, he = s.name()
            x = Subject(n, *he)
        s.who = x
        if r.random() < 0.4:
            x.past = True
            if r.random() < 0.6:
                x.does = "did"
        return x

    def noun(s, *kinds):
        """(plural, singular); now and then a word nobody knows"""
        r = s.r
        if r.random() < 0.04:
            w = "".join(r.choice(SYLLABLES) for _ in range(r.choice([2, 2, 3])))
        else:
            w = r.choice(r.choice(kinds or (FOOD, THING, THING)))
        if r.random() < 0.05:
            w = r.choice(["red", "big", "small", "old", "new", "green", "white", "blue", "fresh", "sweet"]) + " " + w
        w2 = plural(w)
        s.what = w2
        return w2, w

    # numbers by hardness 0, 1, 2
    def have(s):
        return s.r.randint(*((3, 20), (10, 99), (60, 500))[s.h])

    def more(s):
        return s.r.randint(*((2, 15), (5, 60), (20, 300))[s.h])

    def count(s):
        return s.r.randint(*((2, 9), (2, 12), (3, 30))[s.h])

    def size(s):
        return s.r.randint(*((2, 12), (3, 30), (5, 90))[s.h])

    def price(s):
        return s.r.randint(*((1, 12), (2, 30), (5, 90))[s.h]) or 1

    def divs(s):
        """(total, parts) that divide"""
        d = s.r.randint(*((2, 8), (2, 10), (3, 12))[s.h])
        return d * s.r.randint(*((2, 10), (3, 15), (5, 60))[s.h]), d

    def times(s, a, b, text):
        """a*b in one line, or by tens and ones where both are large"""
        if min(a, b) <= 12 and max(a, b) <= 12 or min(a, b) <= 9 or a % 10 == 0 or b % 10 == 0:
            return s.op(a, "*", b, text)
        if a * b > 999:
            raise Bad
        if b > a:
            a, b = b, a
        x = s.op(a, "*", b // 10 * 10, "@.")
        y = s.op(a, "*", b % 10, "@.")
        return s.op(x, "+", y, text)

    def ask(s, facts, qs, shorts=("how many",), terse=()):
        s.text = compose(s.r, facts, qs, shorts, terse)
        if s.coin:
            s.text = s.text.replace("dollars", s.coin)

    def money(s):
        """how prices are written in this question"""
        k = s.r.random()
        if k < 0.55:
            return lambda c: f"${c}"
        if k > 0.92:
            s.coin = s.r.choice(["euros", "bucks", "pounds", "coins"])
        return lambda c: f"{c} dollars" if c != 1 else "1 dollar"


def cap(t):
    return t[:1].upper() + t[1:]


IMPER = ["find out {}", "work out {}", "tell me {}", "calculate {}", "can you tell me {}", "I want to know {}", "figure out {}", "do you know {}"]


def compose(r, facts, qs, shorts, terse):
    """one question from the wordings of its facts, of its question, of a short question, and of the terse forms of all facts"""
    F = [r.choice(f) for f in facts]
    q = r.choice(qs)
    k = r.random()
    if terse and k < 0.13:
        f = r.choice(terse)
        return f + r.choice([", ", ". ", ": ", "; ", ", ", " - "]) + r.choice([r.choice(shorts), q, r.choice(shorts)]) + r.choice(["?", "", "?"])
    if not F:
        return cap(q) + "?"
    if k < 0.25:
        q = r.choice(shorts)
    if k < 0.50:
        return " ".join(cap(f) + "." for f in F) + " " + cap(q) + "?"
    if k < 0.62:
        return cap(" and ".join(F)) + ". " + cap(q) + "?"
    if k < 0.74:
        return cap(r.choice([", ", ", ", " and ", ", and "]).join(F)) + ", " + r.choice(["", "", "so ", "and "]) + q + "?"
    if k < 0.84:
        return r.choice(["If ", "If ", "When ", "Suppose "]) + r.choice([" and ", ", ", " and if "] if len(F) == 2 else [" and ", ", "]).join(F) + ", " + q + "?"
    if k < 0.93 and q.startswith(("how", "what")):
        return cap(q) + r.choice([" if ", " if ", " when "]) + r.choice([" and ", " and ", ", "]).join(F) + "?"
    if k < 0.96:
        return " ".join(cap(f) + "." for f in F) + " " + cap(r.choice(["so ", "now ", "then ", "well, ", "question: "]) + q) + "?"
    if len(q) < 60 and q.startswith("how many") and " does " not in q and " do " not in q and " are " not in q and " did " not in q and " will " not in q:
        return " ".join(cap(f) + "." for f in F) + " " + cap(r.choice(IMPER).format(q)) + "."
    return " ".join(cap(f) + "." for f in F) + " " + r.choice(["What is the answer?", "Tell me the result.", "What do I get?", cap(q) + "?", cap(q) + "?", "Can you solve this?"])


def number_word(n):
    if n <= 20:
        return UNITS[n]
    return TENS[n // 10] + ("-" + UNITS[n % 10] if n % 10 else "")


def spell(r, t, every=0.6, top=20):
    """some numbers up to `top` as words; "$9" and numbers in sums stay"""
    out, i = [], 0
    while i < len(t):
        j = i
        while j < len(t) and t[j].isdigit():
            j += 1
        if j > i:
            n = int(t[i:j])
            free = (i == 0 or t[i - 1] in " (\n") and (j == len(t) or t[j] in " .,?!;:")
            if free and 1 < n <= top and r.random() < every:
                w = number_word(n)
                w = "a dozen" if n == 12 and j < len(t) and t[j] == " " and r.random() < 0.3 else w
                out.append(cap(w) if i == 0 or t[max(0, i - 2):i] in (". ", "? ") else w)
            else:
                out.append(t[i:j])
            i = j
        else:
            out.append(t[i])
            i += 1
    return "".join(out)


def typo(r, t):
    w = [i for i in range(1, len(t) - 1) if t[i - 1].isalpha() and t[i].isalpha() and t[i + 1].isalpha()]
    if not w:
        return t
    i = r.choice(w)
    return r.choice([t[:i] + t[i + 1:], t[:i] + t[i + 1] + t[i] + t[i + 2:], t[:i] + t[i] + t[i:]])


KEEP = set("""a an the of in on at to for from with by and or but if when then so is are was were be been has have had having do does did how many much what number total all altogether together each every per apiece piece one more less fewer than left
    remain remains remaining over still now half third quarter twice three four five six times double triple same equal equally evenly fairly share shares shared split splits divide divides divided among between give gives gave away lose loses lost get gets got sell sells sold buy buys bought
    cost costs price pay pays paid dollar dollars euros bucks pounds coins older younger old years year age ago later change rest other others need needs needed missing goal first before after i you we they he she it my his her their our your its this that these those them me him us there here
    some any no not only just also again another new extra single as many sum difference part parts group groups back spend spends spent bill charge owe use uses used eat eats ate take takes took come came leave leave join week weeks day days hour hours minute minutes month months dozen
    area perimeter long wide sides side square miles km meters cm feet go gone out up down off has will would can could should must who which it's what's they're i'm find out work tell know calculate please thanks solve was added plus minus into each one's share""".split())


def reword(r, text, steps):
    """some content words as other words, the same in question and steps: what counts are the small words"""
    pool = {}

    def swap(m):
        w = m[0]
        k = w.lower()
        if k in KEEP or len(k) < 3:
            return w
        if k not in pool:
            pool[k] = None if r.random() > 0.3 else "".join(r.choice(SYLLABLES) for _ in range(r.choice([2, 2, 3]))) if r.random() < 0.4 else r.choice(r.choice([FOOD, THING, THING, ANIMAL, WILD]))
        n = pool[k]
        if n is None:
            return w
        n = plural(n) if k.endswith("s") and not n.endswith("s") else n
        return cap(n) if w[0].isupper() else n
    return re.sub(r"[A-Za-z]+", swap, text), [re.sub(r"[A-Za-z]+", lambda m: swap(m) if m[0].lower() in pool else m[0], s) for s in steps]


WILD = ("stack toss fold polish chase whisper climb float stretch order measure paint hang roll slide glue knock carve peel mix pour rinse fetch trade print load stir stamp rent gather spot notice follow trim grill sweep mount freeze spin shout visit repair borrow deliver "
        "harvest juggle wrap deck slot lane grid batch cluster panel sheet pad strip patch beam pipe tube coil hinge latch lever pump valve spring gear cable plug socket fuse tray rail post fence gate bench ledge ramp dock pier harbor canyon meadow valley cabin tunnel tower attic cellar porch").split()


HELLO = ["Hi, ", "Hello! ", "Please help: ", "Quick question: ", "Can you help me? ", "Question: ", "hey, ", "Please solve: ", "Help me with this: ", "Here is one: ", "Try this: ", "Solve: ", "math question: "]
BYE = [" Thanks!", " thanks", " Please.", " please", " Thank you.", " pls", " Explain.", " Show your work."]


def style(r, t):
    """how it is typed"""
    k = r.random()
    if r.random() < 0.16:
        t = spell(r, t, top=r.choice([12, 20, 20, 99]))
    if k < 0.05:
        t = r.choice(HELLO) + t
    elif k < 0.08:
        t = t + r.choice(BYE)
    k = r.random()
    if k < 0.2:
        t = t.lower()
    if r.random() < 0.22:
        t = t.rstrip("?.")
    k = r.random()
    if k < 0.03:
        t = t.replace(". ", " ").replace(", ", " ").replace("?", "")
    elif k < 0.07:
        t = t.replace("hat is", "hat's", 1) if "hat is" in t else t
    elif k < 0.09:
        t = t.replace(" ?", "?").replace("?", " ?")
    elif k < 0.12:
        t = typo(r, t)
    elif k < 0.13:
        t = t.replace(". ", ".\n")
    return t


SHORT = ("how many", "how many in all", "how many in total", "how many altogether", "total", "how many is that", "what is the total")
SHORT_LEFT = ("how many left", "how many are left", "what's left", "how many now", "how many remain", "how many does that leave")
SHORT_COST = ("how much", "how much in total", "total cost", "what is the total", "how much altogether", "how much is that")
