"""Wordings of a question that goes on from the answer before: so many more, fewer, times as many, or shares of it."""
from by_words import IN, OUT
from words import *

NOW = ["How many now?", "How many is that?", "How many are there now?", "", "how many in total?", "what's the total?", "how many then?", "what does that make?", "what is the new total?", "what is it now?", "how many in all?", "so how many?", "total?", "what do we have then?", "what's the new number?"]
LEFT = ["How many are left?", "How many are left then?", "how many now?", "What is left?", "How many remain?", "", "what remains?", "how many are still there?", "what's over?", "how many does that leave?", "how many are there then?", "the rest?", "how many survive?", "what is the rest?", "how many stay there?"]
EACH = ["how many each?", "What does each get?", "how many for each?", "how many per person?", "how much is one share?", "how many does one get?", "what is one part?", "how many in each?", ""]
SUM = ["how many is that?", "how many in all?", "what is the total?", "how many together?", "", "what does that make?", "how much is that altogether?", "so how many?", "what's the sum?"]
COST = ["how much is that?", "how much in all?", "what do they cost?", "what is the price?", "what are they worth?", "", "how much money is that?", "what is the total cost?", "what do I pay?", "what does he get?", "what is all of it worth?", "how much for all?"]
CROWD = "friends people kids children students cousins neighbors players girls boys guests workers sisters teams families classes dogs".split()
PLACES = "boxes bags plates tables shelves rows jars baskets rooms piles trays drawers bowls cups pots pages".split()
WAYS = ["", "", " equally", " evenly", " fairly", " in equal parts"]


def join(r, fact, questions):
    """a fact and a question, or one of them alone"""
    q = r.choice(questions)
    if not q:
        return fact + r.choice(["?", "", "."])
    k = r.random()
    if k < 0.4:
        return f"{fact}. {q[0].upper() + q[1:]}"
    if k < 0.75:
        return f"{fact}, {q[0].lower() + q[1:]}"
    return f"{r.choice(['if ', 'and if ', 'what if ', 'suppose ', 'now '])}{fact}, {q[0].lower() + q[1:]}"


def more(r, k, S, o, money):
    he, v, him = S
    d = f"${k}" if money else str(k)
    ones = r.choice(["", "", " more", " more", " extra", " new ones", " others", " further", f" more {o}" if o else " more", " additional", f" extra {o}" if o else " on top", " of the same"])
    w = r.choice(IN)[r.random() < 0.5]
    by = r.choice(["increase", "bump up", "boost", "lift", "grow", "extend", "add to"])
    it = r.choice(["that", "it", "this", "the number", "the result", "the answer"])
    return r.choice([
        lambda: join(r, f"{d}{ones} {w}" if not money else f"{d}{ones} come in", NOW), lambda: join(r, f"{he} {v(r.choice(['get', 'find', 'buy', 'win', 'receive', 'make', 'add', 'collect', 'bring', 'earn', 'pick up']))} {d}{ones}", NOW),
        lambda: join(r, f"{r.choice(['someone', 'a friend', 'mom', 'grandpa', 'the teacher', 'a neighbor', 'my sister', 'he'])} {r.choice(['gives', 'brings', 'hands', 'sends', 'lends'])} {him} {d}{ones}", NOW),
        lambda: f"{by} {it} by {d}" if by != "add to" else f"add {d} to {it}", lambda: f"{r.choice(['plus', 'and plus', 'now plus', 'then plus'])} {d}", lambda: f"what is {it} plus {d}?", lambda: f"how much is {it} and {d}?", lambda: f"what is {d} more than {it}?", lambda: f"{d}{ones}?", lambda: f"and {d}{ones}?", lambda: f"with {d}{ones}?", lambda: f"and with {d} more?",
        lambda: join(r, f"{r.choice(['add', 'put in', 'throw in', 'count in', 'include', 'take'])} {r.choice(['another ', ''])}{d}{ones}", NOW), lambda: f"what if {he} had {d} more?", lambda: f"what if there were {d}{ones or ' more'}?", lambda: join(r, f"there are {d}{ones or ' more'}", NOW), lambda: f"what would it be with {d} more?", lambda: f"{r.choice(['take', 'use'])} {it} and add {d}",
        lambda: f"what's the sum of {it} and {d}?", lambda: f"{it} and {d} together?", lambda: f"if I add {d}, what do I have?", lambda: f"after adding {d}?", lambda: f"{d} on top?"])()


def fewer(r, k, S, o, money):
    he, v, him = S
    d = f"${k}" if money else str(k)
    of = r.choice(["", "", " of them", " of them", " of these", " of those", f" {o}" if o else "", f" of the {o}" if o else " of it"])
    w = r.choice(OUT)[r.random() < 0.5]
    by = r.choice(["reduce", "decrease", "cut", "shrink", "trim", "bring down"])
    it = r.choice(["that", "it", "this", "the number", "the result", "the answer"])
    return r.choice([
        lambda: join(r, f"{d}{of} {w}" if not money else f"{d} are spent", LEFT), lambda: join(r, f"{d}{of} {w}" if not money else f"{d} are lost", LEFT), lambda: join(r, f"{he} {v(r.choice(['lose', 'sell', 'use', 'give away', 'eat', 'break', 'donate', 'throw away', 'drop', 'hand out', 'spend'] if not money else ['spend', 'lose', 'give away', 'pay']))} {d}{of if not money else ''}", LEFT),
        lambda: join(r, f"{r.choice(['someone', 'a friend', 'a thief', 'the dog', 'his brother', 'the wind', 'my cousin'])} takes {d}{of}{r.choice([' away', ''])}", LEFT), lambda: f"{by} {it} by {d}", lambda: f"{r.choice(['minus', 'and minus', 'now minus', 'less'])} {d}", lambda: f"what is {it} minus {d}?", lambda: f"subtract {d} from {it}", lambda: f"take {d} from {it}", lambda: f"take away {d}", lambda: f"what is {d} less than {it}?",
        lambda: join(r, f"{r.choice(['remove', 'take out', 'take away', 'pull out', 'throw out', 'leave out', 'cross out', 'drop', 'subtract'])} {d}{of}", LEFT), lambda: f"what if {he} had {d} fewer?" if not money else f"what if {he} had {d} less?", lambda: f"what if {d}{of} are missing?", lambda: f"without {d}{of}?", lambda: f"and without {d}?", lambda: f"{d} {r.choice(['fewer', 'less'])}?", lambda: f"and {d} less?",
        lambda: f"what would be left without {d}?", lambda: f"what remains after {d}{of} are gone?", lambda: f"how many are left if {d} {w}?" if not money else f"how much is left after paying {d}?", lambda: f"what is left when {he} {v('use')} {d}?"])()


def times(r, k, S, o, money, things):
    he, v, him = S
    it = r.choice(["that", "it", "this", "the number", "the result", "the answer"])
    c, u = r.choice(CROWD), r.choice(["day", "week", "month", "hour", "night", "year"])
    one = r.choice([f"each costs ${k}", f"one costs ${k}", f"they cost ${k} each", f"each is worth ${k}", f"one is ${k}", f"each sells for ${k}", f"{he} {v('sell')} them for ${k} each", f"{he} {v('sell')} each for {k} dollars", f"{he} {v('get')} ${k} for each", f"the price of one is ${k}", f"I pay {k} dollars for each", f"every one brings ${k}", f"each goes for ${k}", f"they are ${k} apiece", f"one goes for {k} dollars"])
    forms = [lambda: f"{r.choice(['times', 'and times', 'now times'])} {k}", lambda: f"multiply {it} by {k}", lambda: f"what is {k} times {it}?", lambda: f"{k} times {it}?", lambda: f"{k} times as many?", lambda: f"and {k} times as {'much' if money else 'many'}?", lambda: join(r, f"{k} {c} have {r.choice(['that', 'this', 'so', 'as'])} many each", SUM),
             lambda: join(r, f"each of {k} {c} has {r.choice(['that', 'as', 'this'])} many", SUM), lambda: join(r, f"{r.choice(['a friend', 'my brother', 'the boss', 'his sister', 'another girl', 'the shop'])} has {k} times {r.choice(['as many', 'that', 'that many', 'this number'])}", ["how many is that?", "how many does she have?", "", "how many?"]), lambda: join(r, f"it is the same {r.choice(['on', 'for'])} {k} {u}s", SUM), lambda: join(r, f"{he} {v('do')} that every {u} for {k} {u}s", SUM),
             lambda: f"and in {k} {u}s like that?", lambda: f"how many would {k} {c} have together?", lambda: f"how many do {k} such {c} have?", lambda: f"and for {k} {c}?", lambda: join(r, f"take {it} {k} times", SUM), lambda: f"what do {k} of those make?", lambda: f"{k} of these, how many is that?", lambda: f"{k} {r.choice(PLACES)} like that?", lambda: join(r, f"there are {k} {r.choice(PLACES)} with {r.choice(['that', 'this', 'so'])} many", SUM)]
    if k == 2:
        forms += [lambda: r.choice(["double that", "twice as many?", "what is twice that?", "And twice as much?", "double it", "what is the double?", f"{he} {v('double')} it. How many now?"])] * 5
    if k == 3:
        forms += [lambda: r.choice(["triple that", "three times as many?", "what is three times that?", "triple it"])] * 4
    if things:
        forms += [lambda: join(r, one, COST)] * 9 + [lambda: f"how much are they at ${k} each?", lambda: f"at ${k} each, what do they cost?", lambda: f"what is the price if one costs ${k}?", lambda: f"sold at ${k} each, how much is it?"]
    return r.choice(forms)()


def shares(r, k, S, o, things):
    """the wording, and whether it asks for groups of k"""
    he, v, him = S
    it = r.choice(["that", "it", "this", "them" if things else "that", "the result", "all of it"])
    c, p = r.choice(CROWD), r.choice(PLACES)
    if things and r.random() < 0.16:
        return r.choice([f"how many {p} of {k} is that?", f"how many {p} of {k} can {he if he not in ('she', 'he') else 'we'} fill?", f"in {p} of {k}, how many {p} is that?", f"pack {it} in {p} of {k}. How many {p}?", f"{k} go in one of the {p}. How many {p} is that?", f"put {k} in each of the {p}, how many {p}?"]), True
    forms = [lambda: join(r, f"{k} {c} {r.choice(['share', 'split', 'divide'])} {it}{r.choice(WAYS)}", EACH), lambda: join(r, f"{he} {v(r.choice(['share', 'split', 'divide']))} {it} {r.choice(['among', 'between'])} {k} {c}{r.choice(WAYS)}", EACH), lambda: f"{r.choice(['divide', 'split', 'share'])} {it} {r.choice(['by', 'among', 'between']) if r.random() < 0.7 else 'by'} {k}", lambda: f"divided by {k}?", lambda: join(r, f"{r.choice(['put', 'divide', 'split', 'sort', 'place', 'lay', 'pack'])} {it} {r.choice(['on', 'into', 'in'])} {k} {r.choice(['equal ', ''])}{p}", ["how many in each?", "how many are in one?", "how many in each of them?", "", "how many go in one?"]),
             lambda: f"what does each of {k} {c} get?", lambda: f"how much is that for each of {k} {c}?", lambda: f"and for each of {k}?", lambda: join(r, f"{r.choice(['give', 'hand', 'deal'])} {it} out to {k} {c}{r.choice(WAYS)}", EACH), lambda: f"{r.choice(['split', 'cut', 'break', 'divide'])} {it} into {k} equal {r.choice(['parts', 'pieces', 'groups', 'piles'])}", lambda: f"what is one of {k} equal parts?", lambda: f"how big is a part if we make {k}?",
             lambda: f"shared by {k}, how many each?", lambda: f"split {k} ways?", lambda: f"in {k} equal groups, how many in one?", lambda: f"if {k} {c} get the same, how many does each get?", lambda: f"over {k} {p}, how many in each?"]
    if k == 2:
        forms += [lambda: r.choice(["and half of that?", "what is half of that?", "half of it?", "And half of them?", "take half", "how much is one half?", "only half of that?"])] * 5
    return r.choice(forms)(), False
