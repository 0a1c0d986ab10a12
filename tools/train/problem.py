"""One problem under construction: its numbers, its steps, and the text of its question."""
from story_words import FEMALE, MALE


class Bad(Exception):
    pass


class P:
    """One problem under construction."""

    def __init__(s, r, h):
        s.r, s.h = r, h
        s.q, s.steps, s.eqs, s.nums, s.skel = [], [], [], [], []
        s.names, s.people, s.what = [], [], None

    def person(s):
        while True:
            m = s.r.random() < 0.5
            n = s.r.choice(MALE if m else FEMALE)
            if n not in s.names:
                break
        s.names.append(n)
        s.people.append((n, ("he", "his", "him") if m else ("she", "her", "her")))
        return s.people[-1]

    # number ranges by hardness 0,1,2
    def amt(s):
        return s.r.randint(*((5, 30), (15, 99), (60, 400))[s.h])

    def addend(s):
        return s.r.randint(*((2, 20), (8, 80), (25, 300))[s.h])

    def less(s, x):
        hi = min(x - 1, (20, 80, 300)[s.h])
        lo = min((2, 5, 15)[s.h], hi)
        if hi < 2:
            raise Bad
        return s.r.randint(lo, hi)

    def mul(s):  # (count, size)
        r = s.r
        if s.h == 0:
            return r.randint(2, 6), r.randint(2, 9)
        if s.h == 1:
            return r.randint(2, 9), r.randint(3, 15)
        return r.randint(3, 9), r.randint(7, 40)

    def div(s, x, lo=2, hi=9):
        d = [k for k in range(lo, hi + 1) if x % k == 0 and x // k > 1]
        if not d:
            raise Bad
        return s.r.choice(d)

    def op(s, a, o, b, text):
        c = a + b if o == "+" else a - b if o == "-" else a * b if o == "*" else a // b
        if o == "/" and a % b:
            raise Bad
        if c < 1 or c > 999:
            raise Bad
        s.eqs.append((a, o, b, c))
        s.steps.append(text.replace("@", f"{a}{o}{b}={c}"))
        return c

    def say(s, *forms):
        s.q.append(s.r.choice(forms))
