"""What the verifier should say at each token of a solution: where it goes wrong, and what should stand there."""
from gen import *


def first_wrong(d, text, lab):
    """character offset of the first wrong character of a solution (None if it is right): the digit, operand, operator or
    answer digit where it leaves the true path"""
    if all(lab):
        return None
    if d is None:
        return 0
    k = lab.index(0)
    lines = text.split("\n")
    at = sum(len(x) + 1 for x in lines[:k])
    ln = lines[k]
    left = [tuple(e) for e in d["eqs"]]
    for x in lines[:k]:
        e = EQ.search(x)
        if e:
            n = norm(int(e[1]), e[2], int(e[3]))
            left.pop(next(i for i, q in enumerate(left) if norm(*q[:3]) == n))

    def diff(have, want):
        i = 0
        while i < len(have) and i < len(want) and have[i] == want[i]:
            i += 1
        return i
    if ANS.match(ln.strip()):
        return at + diff(ln, f"Answer: {d['answer']}")
    e = EQ.search(ln)
    if not e or not left:
        return at + (e.start() if e else len(ln))
    n = norm(int(e[1]), e[2], int(e[3]))
    for q in left:
        if norm(*q[:3]) == n:
            return at + e.start(4) + diff(e[4], str(q[3]))
    return at + e.start() + diff(e[0], "{}{}{}={}".format(*left[0]))


def token_targets(tk, isend, d, so, lab):
    """per solution token: label (the prefix up to here is right), weight, and whether it ends a line"""
    strs = [tk.decode([t]) if t != tk.end else "" for t in so]
    off = first_wrong(d, "".join(strs), lab)
    bad, pos = len(so), 0
    if off is not None:
        bad = len(so) - 1
        for i, x in enumerate(strs):
            if pos + len(x) > off:
                bad = i
                break
            pos += len(x)
    y, w, e, line, bl = [], [], [], 0, None
    for i, t in enumerate(so):
        end = isend[t]
        y.append(float(i < bad))
        if end:
            y[-1] = float(lab[line])  # the same by construction
            w.append(1.0 if bl is None or line <= bl else 0.3)
        else:
            w.append((0.5 if strs[i].isdigit() else 0.15) if i < bad else 1.5 if i == bad else 0.3 if bl == line else 0.05)
        if i == bad:
            bl = line
        e.append(end)
        line += end
    return y, w, e, *local_targets(strs, isend, so)


def local_targets(strs, isend, so):
    """Training-only targets that make the comparison circuits form quickly: at every digit of a result (and the token after it)
    the digit that should be there (10: none), and whether the result is right so far for the operands written in its own line"""
    text = "".join(strs)
    at = []
    for i, x in enumerate(strs):
        at += [i] * len(x)
    dig, loc = [-1] * len(so), [-1.0] * len(so)
    for m in EQ.finditer(text):
        a, o, b, c = int(m[1]), m[2], int(m[3]), m[4]
        if o == "/" and (b == 0 or a % b) or o == "-" and a < b:
            r = "?"
        else:
            r = str(a + b if o == "+" else a - b if o == "-" else a * b if o == "*" else a // b)
        for i in range(len(c) + 1):
            j = m.start(4) + i
            t = at[j] if j < len(at) else len(so) - 1
            if r != "?":
                dig[t] = int(r[i]) if i < len(r) else 10
            loc[t] = float(c == r if i == len(c) else c[:i + 1] == r[:i + 1])
        e = next((t for t in range(t, len(so)) if isend[so[t]]), None)
        if e is not None:
            loc[e] = float(c == r)
    return dig, loc
