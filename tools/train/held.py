"""The hand-made test sets:  held.py everyday >everyday.jsonl;  held.py turns >turns.jsonl

The wordings stand here and nowhere in the training data (held.py check looks for them there); the numbers come from the held-out
bucket of the kind that is named first."""
import json, random, sys
import data

# kind, wording, steps: each "left operator right", letters are numbers, 1 2 3 the results of steps; ranges of the letters
SHORT = [
    ("e_groups", "We stacked {a} shelves and every one took {b} jam pots. How many pots did we stack?", "a*b"),
    ("e_groups", "my sticker album: {a} pages full, {b} stickers on a page. so how many stickers?", "a*b"),
    ("e_groups", "An egg tray takes {b} eggs. Dora filled {a} trays this morning. How many eggs did she put in?", "a*b"),
    ("e_groups", "how many tea bags do i have with {a} tins and {b} tea bags inside each tin", "a*b"),
    ("e_groups", "Every car on the ferris wheel seats {b}. There are {a} cars. How many people can ride at once?", "a*b"),
    ("e_groups", "There are {b} crackers in a sleeve. If I eat {a} sleeves, how many crackers did I eat?", "a*b"),
    ("e_groups", "{a} teams, {b} players on each team. Number of players?", "a*b"),
    ("e_groups", "A hotel orders {a} cartons with {b} soaps apiece. What number of soaps arrives?", "a*b"),
    ("e_price", "Movie night: {a} of us go and every seat is ${b}. What do we pay?", "a*b"),
    ("e_price", "one scoop is ${b}, I'd like {a} scoops, what's the bill", "a*b"),
    ("e_price", "The shop asks {b} dollars for a plant. Lou takes {a} plants home. What does Lou owe?", "a*b"),
    ("e_price", "If parking is ${b} per car, what do {a} cars bring in?", "a*b"),
    ("e_price", "I'm buying {a} notebooks. They're ${b} apiece. How much will I be charged?", "a*b"),
    ("e_rate", "Nadia jogs {a} miles each morning. How many miles will she have jogged after {b} mornings?", "a*b"),
    ("e_rate", "A tap drips {a} drops a minute. How many drops fall within {b} minutes?", "a*b"),
    ("e_rate", "i get paid ${a} an hour and worked {b} hours, what did i make", "a*b"),
    ("e_rate", "The factory turns out {a} chairs per shift. What does it turn out in {b} shifts?", "a*b"),
    ("e_rate", "Grandma knits {a} rows an evening; after {b} evenings, how many rows has she knitted?", "a*b"),
    ("e_fixed", "How many days will a trip of {a} weeks last?", "a*7"),
    ("e_fixed", "if a spider has 8 legs then {a} spiders have how many legs", "a*8"),
    ("e_rows", "The theatre seats {b} in a row and it has {a} rows. How many visitors can sit?", "a*b"),
    ("e_rows", "We planted {a} lines of beans, {b} beans to a line. How many beans went into the soil?", "a*b"),
    ("e_cut", "Mom slices {a} cakes, {b} slices from each cake. Number of slices?", "a*b"),
    ("e_cut", "{a} pizzas, every pizza gives {b} slices. how many slices can we eat", "a*b"),
    ("e_twice", "Gus caught {a} fish. His father caught twice as many. How many fish did the father catch?", "a*2"),
    ("e_twice", "there were {a} visitors on saturday and three times as many on sunday. how many came on sunday?", "a*3"),
    ("e_share", "{b} pirates divide {m} gold coins fairly. What is each pirate's share?", "m/b"),
    ("e_share", "I've got {m} grapes for {b} toddlers and want to be fair. How many grapes go to each toddler?", "m/b"),
    ("e_share", "Deal {m} cards to {b} players. How many cards does a player hold?", "m/b"),
    ("e_share", "{m} sweets, {b} cousins, everyone gets the same. How many is that for one cousin?", "m/b"),
    ("e_share", "A rope of {m} meters is cut into {b} equal pieces. How long is a piece?", "m/b"),
    ("e_pack", "A van carries {b} people. How many vans are needed to carry {m} people?", "m/b"),
    ("e_pack", "The florist ties {b} roses into a bunch. How many bunches can she tie from {m} roses?", "m/b"),
    ("e_pack", "i need {m} rolls, they come {b} in a bag, how many bags should i buy", "m/b"),
    ("e_unit", "We paid ${m} for {b} museum tickets. What was the price of a ticket?", "m/b"),
    ("e_unit", "A pen is ${b}. With ${m} in my pocket, how many pens could I buy?", "m/b"),
    ("e_part", "Out of {d} chairs, half were painted. How many chairs were painted?", "d/2"),
    ("e_part", "There were {d} muffins on the counter and half of them got burnt. How many got burnt?", "d/2"),
    ("e_gained", "Ravi's jar had {a} pennies, then he dropped {b} more into it. How many pennies are inside?", "a+b"),
    ("e_gained", "My hen laid {a} eggs last week and {b} this week. How many eggs did she lay?", "a+b"),
    ("e_gained", "i had {a} followers, today {b} new ones joined. followers now?", "a+b"),
    ("e_gained", "Lola baked {a} rolls. After lunch she baked {b} more rolls. How many rolls did Lola bake?", "a+b"),
    ("e_gained", "{a} kids were already in the pool when {b} others jumped in. How many kids were in the pool then?", "a+b"),
    ("e_lost", "Out of my {s} socks the dryer ate {a}. How many socks do I still own?", "s-a"),
    ("e_lost", "Peg had {s} balloons but {a} popped. How many balloons does Peg have left?", "s-a"),
    ("e_lost", "I baked {s} scones and my family finished {a} of them. How many scones are left over?", "s-a"),
    ("e_lost", "{s} candles on the cake, you blow out {a}. How many keep burning?", "s-a"),
    ("e_lost", "the shelf had {s} jars, {a} fell off. jars left on the shelf?", "s-a"),
    ("e_lost", "Hal picked {s} plums and handed {a} to his neighbour. How many plums did he keep?", "s-a"),
    ("e_scene", "The elevator had {s} riders. On floor two, {a} stepped out. How many riders stayed in?", "s-a"),
    ("e_scene", "{s} swans were swimming on the lake until {a} of them flew south. How many swans stayed?", "s-a"),
    ("e_scene", "{s} people queue outside, {a} give up and go. How many are in the queue now?", "s-a"),
    ("e_scene", "A ferry leaves with {a} cars and takes on {b} more at the next port. How many cars does it carry?", "a+b"),
    ("e_scene", "There were {s} runners at the start; {a} dropped out. How many runners finished?", "s-a"),
    ("e_chain", "Uma's piggy bank had {s} coins. She took out {a} and later put in {b}. How many coins are in the bank?", "s-a 1+b"),
    ("e_chain", "I began with {s} cards, lost {a} in the first game and won {b} in the second. How many cards do I have?", "s-a 1+b"),
    ("e_chain", "A bus starts with {a} riders, {b} more hop on, and at the last stop {c} hop off. How many riders are on the bus?", "a+b 1-c"),
    ("e_both", "We saw {a} foxes and {b} owls on our walk. How many animals did we see?", "a+b"),
    ("e_both", "the farmer counted {a} brown hens plus {b} white hens. how many hens does he own", "a+b"),
    ("e_both", "Kit wrote {a} postcards on Monday and {b} on Tuesday. How many postcards did Kit write?", "a+b"),
    ("e_both", "Row one seats {a}, row two seats {b}. How many can sit in both rows?", "a+b"),
    ("e_both", "i walked {a} steps, my wife {b}. how many steps did we walk together", "a+b"),
    ("e_compare_more", "Pia solved {a} riddles, and Jon managed {b} more than she did. How many riddles did Jon solve?", "a+b"),
    ("e_compare_more", "My tower has {s} blocks. Rex's tower has {a} fewer blocks than mine. How many blocks are in Rex's tower?", "s-a"),
    ("e_compare_more", "There are {a} spoons and {b} more forks than spoons. How many forks are there?", "a+b"),
    ("e_difference", "Vic scored {s} points, Moe scored {a}. By how many points did Vic win?", "s-a"),
    ("e_difference", "how many more red cars than blue cars did we see if we saw {s} red and {a} blue", "s-a"),
    ("e_difference", "The oak is {s} feet high, the birch only {a} feet. How many feet higher is the oak?", "s-a"),
    ("e_need", "A puzzle has {s} pieces and I've placed {a} so far. How many pieces must I still place?", "s-a"),
    ("e_need", "Abe wants the ${s} skateboard and has put ${a} aside. How many dollars short is he?", "s-a"),
    ("e_need", "we need {s} chairs for the wedding but only have {a}. how many should we rent", "s-a"),
    ("e_rest", "Of the {s} kids in my group, {a} wear glasses. How many kids don't wear glasses?", "s-a"),
    ("e_rest", "{s} eggs in the fridge, {a} of them boiled. How many are raw?", "s-a"),
    ("e_rest", "The novel is {s} pages long and I'm on page {a}. How many pages do I have to go?", "s-a"),
    ("e_before", "After giving {b} apples to the horses, Wynn has {a} apples. How many apples did Wynn bring?", "a+b"),
    ("e_before", "Meg found {a} shells and now owns {s}. How many did she own before that?", "s-a"),
    ("e_age", "Otto is {s}. Otto's little sister is {a} years younger. What age is she?", "s-a"),
    ("e_age", "my cat is {a} and my parrot is {b} years older than the cat. how old is the parrot?", "a+b"),
    ("e_age", "Uncle Vito turned {a} today. What age will he be {b} years later?", "a+b"),
    ("e_age", "I'm {s} years old now. How old was I {a} years back?", "s-a"),
    ("e_change", "A sandwich is ${a} and I hand the cashier ${s}. What change should come back?", "s-a"),
    ("e_change", "Tess got ${s} for chores and spent ${a} at the fair. What's in her purse now?", "s-a"),
    ("e_change", "Three-dollar sodas: Al buys {a} of them, 3 dollars each, out of his ${w}. How much money remains?", "a*3 w-1"),
    ("e_spend", "Lunch was ${a}, dinner was ${b}. What did I spend on food today?", "a+b"),
    ("e_spend", "the hat is {a} dollars and the gloves are {b} dollars. what do i pay for both", "a+b"),
    ("e_groups_more", "Iggy has {a} boxes with {b} toy cars in each box plus {c} cars on his desk. How many toy cars does Iggy have?", "a*b 1+c"),
    ("e_groups_more", "We bought {a} six-packs, that's 6 cans each, and drank {c} cans. How many cans are left?", "a*6 1-c"),
    ("e_groups_more", "{a} vases hold {b} tulips each, and {c} tulips lie on the table. How many tulips are there?", "a*b 1+c"),
    ("e_two_prices", "{a} teas at ${b} each and {c} buns at ${e} each, what's our bill?", "a*b c*e 1+2"),
    ("e_two_groups", "The zoo has {a} ponds with {b} ducks each and {c} cages with {e} parrots each. How many birds are there?", "a*b c*e 1+2"),
    ("e_take_groups", "From a roll of {w} stickers, {a} children peel off {b} stickers each. How many stickers stay on the roll?", "a*b w-1"),
    ("e_product_share", "{a} bags of {b} nuts each are shared fairly by 2 squirrels. How many nuts go to a squirrel?", "a*b 1/2"),
    ("e_twice_both", "Dee sold {a} cakes on Friday and twice as many on Saturday. How many cakes did Dee sell on the two days?", "a*2 a+1"),
    ("e_sum_share", "Two sisters put {a} and {x} marbles in one pile and split it into 2 equal halves. How many marbles are in a half?", "a+x 1/2"),
    ("e_shape", "A garden plot measures {a} feet by {b} feet. How many square feet is it?", "a*b"),
    ("sums", "what do you get when you multiply {a} by {b}", "a*b"),
    ("sums", "{s} take {a}, what's left?", "s-a"),
    ("sums", "can you add up {a} and {b}", "a+b"),
    ("sums", "what does {a} plus {b} come to?", "a+b"),
    ("sums", "if I split {m} in {b}, what is one part?", "m/b"),
]
OPS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b}


def draw(r, h):
    hi = ((12, 9, 15, 20), (30, 12, 60, 90))[h]
    b = r.randint(2, hi[1])
    a = r.randint(2, hi[0])
    v = dict(a=a, b=b, c=r.randint(2, 9), e=r.randint(2, 9), s=a + r.randint(2, hi[2]), m=b * r.randint(2, hi[1]), d=2 * r.randint(2, hi[3]))
    v["w"] = v["a"] * max(b, 3) + r.randint(3, 40)
    v["x"] = r.randint(2, 20)
    return v


def steps(spec, v):
    out = []
    for s in spec.split():
        o = next(c for c in s[1:] if c in OPS)
        i, j = s.split(o)
        num = lambda t: v[t] if t in v else out[int(t) - 1][3] if int(t) <= len(out) else int(t)
        x, y = num(i), num(j)
        if o == "/" and x % y or not 1 <= OPS[o](x, y) <= 999:
            raise data.Bad
        out.append((x, o, y, OPS[o](x, y)))
    return out


def skeleton(kind, text, eqs):
    """that of the kind's schema (by_*.py), so that the bucket is the same"""
    signs = [o for _, o, _, _ in eqs]
    if kind in ("e_scene", "e_chain"):
        return signs
    if kind == "e_compare_more":
        return [signs[0] + "False"]
    if kind == "e_before":
        return signs
    if kind == "e_age":
        return [{"+": "in", "-": "ago"}[signs[0]]] if "back" in text or "later" in text else [{"+": "older", "-": "younger"}[signs[0]], "False"]
    return {"e_spend": ["TrueTrue"], "e_sum_share": ["True"], "e_shape": ["area"]}.get(kind, [])


def everyday(seed=7):
    r = random.Random(seed)
    for n in range(2 * len(SHORT)):
        kind, text, spec = SHORT[n % len(SHORT)]
        for t in range(4000):
            v = draw(r, n // len(SHORT))
            if kind in ("e_gained", "e_both") and v["a"] == v["b"]:
                continue
            try:
                eqs = steps(spec, v)
            except data.Bad:
                continue
            p = data.P(r, 0)
            p.eqs, p.skel = eqs, skeleton(kind, text, eqs)
            if data.bucket(p, kind) == 7 or t > 3900:  # a question with one small number may have none in the bucket
                break
        yield dict(question=text.format(**v), answer=eqs[-1][3], eqs=eqs, kind=kind)


# the same question with another number: how the question begins, which number, wording
VARY = [
    ("We stacked", "a", "Do it again for {x} shelves."), ("An egg tray", "a", "Say she had filled {x} trays, how many eggs then?"), ("how many tea bags", "a", "make it {x} tins now"),
    ("Every car on", "a", "Another wheel has {x} cars. How many people there?"), ("There are {b} crackers", "a", "Suppose I ate {x} sleeves?"), ("{a} teams", "a", "Same for {x} teams, please."),
    ("Movie night", "a", "Now {x} of us want to go. What do we pay then?"), ("one scoop", "a", "make that {x} scoops"), ("The shop asks", "a", "Had Lou taken {x} plants, what would it be?"), ("If parking", "a", "How about {x} cars?"),
    ("I'm buying", "a", "I changed my mind: {x} notebooks."), ("Nadia jogs", "b", "How many after {x} mornings?"), ("A tap drips", "b", "And within {x} minutes?"), ("i get paid", "b", "had i worked {x} hours?"),
    ("The factory turns", "b", "Let's say {x} shifts."), ("How many days will", "a", "And a trip of {x} weeks?"), ("if a spider", "a", "how about {x} spiders"), ("We planted", "a", "If we had planted {x} lines?"),
    ("Mom slices", "a", "Suppose she slices {x} cakes instead."), ("I baked {s}", "a", "And had they finished {x} of them?"), ("{s} people queue", "a", "What if {x} had given up?"), ("Otto is", "a", "How old would a sister {x} years younger be?"),
    ("A sandwich is", "s", "And if I hand over ${x}?"), ("A puzzle has", "a", "Suppose I've placed {x} pieces."), ("my cat is", "b", "and a parrot {x} years older?"),
]
# what is done with the answer before
RECKON = {
    "+": ["Somebody brings {k} extra. How many then?", "{k} further ones turn up. What's the count?", "put {k} on top of that, what do you get", "and together with {k} others?", "Raise that by {k}."],
    "-": ["Take {k} of those out. How many stay?", "{k} of these vanish overnight. How many stay?", "what stays if {k} go away?", "Lower that by {k}.", "and once {k} are used up?"],
    "*": ["A neighbour has {k} times that number. How many is it?", "At ${k} a piece, what are all of them worth?", "The same every day for {k} days: how many is that?", "if one sells for ${k}, what do all of them bring?", "And {k} times over?"],
    "/": ["Could {k} cousins split that evenly? How many apiece?", "spread that over {k} plates, how many on a plate?", "Cut that into {k} equal shares. How big is a share?", "{k} of us divide it fairly, what's my share?"],
}
THANKS = ["Perfect, thank you so much!", "that helps, thanks", "Lovely.", "ok great, cheers", "you are clever"]


def turns(seed=11, n=100):
    r = random.Random(seed)
    for _ in range(n):
        out, last = [], None
        want = r.choice([2, 2, 3, 3, 4, 4, 5, 6])
        while len(out) < want:
            k = r.random()
            d = None
            if last and k < 0.45:
                d = change(r, last) if last[0] and r.random() < 0.5 else reckon(r, last)
                if d:
                    out.append(dict(question=d[0], answer=d[1][-1][3], kind="follow-up"))
                    last = (d[2], d[1][-1][3], d[3])
                    continue
            if last and k > 0.92:
                out.append(dict(question=r.choice(THANKS), answer=None, kind="talk"))
                continue
            if k > 0.8:
                s = data.story(r, r.choice([2, 3]), r.choice([0, 1]), test=True)
                out.append(dict(question=s["question"], answer=s["answer"], kind="new" if last else "first"))
                last = (None, s["answer"], None)
                continue
            kind, text, spec = r.choice(SHORT)
            while True:
                v = draw(r, r.choice([0, 0, 1]))
                try:
                    eqs = steps(spec, v)
                    break
                except data.Bad:
                    pass
            out.append(dict(question=text.format(**v), answer=eqs[-1][3], kind="new" if last else "first"))
            last = (text, eqs[-1][3], (v, spec))
        yield dict(turns=out)


def change(r, last):
    """(question, equations, text, numbers) of the question before with another number, or None"""
    text, _, (v, spec) = last
    forms = [(k, w) for t, k, w in VARY if text.startswith(t)]
    if not forms:
        return None
    key, w = r.choice(forms)
    for _ in range(50):
        x = r.randint(2, 12) if key != "s" else r.choice([20, 50, 100])
        v2 = {**v, key: x}
        try:
            eqs = steps(spec, v2)
        except data.Bad:
            continue
        if x != v[key]:
            return w.format(x=x), eqs, text, (v2, spec)
    return None


def reckon(r, last):
    x = last[1]
    for _ in range(50):
        o = r.choice("+-*/")
        k = r.randint(2, 20 if o in "+-" else 6)
        if o == "/" and (x % k or x == k) or o == "-" and k >= x or o == "*" and x * k > 999 or o == "+" and x + k > 999:
            continue
        return r.choice(RECKON[o]).format(k=k), [(x, o, k, OPS[o](x, k))], None, None
    return None


def check(n=200000):
    """no wording of the test sets occurs in n training conversations, numbers aside"""
    import re
    import turns as t
    plain = lambda s: re.sub(r"[^a-z#]+", " ", re.sub(r"\d+", "#", s.lower())).strip()
    r, seen = random.Random(5), set()
    for _ in range(n):
        for role, text in t.conversation(r)[0]:
            if role == "user":
                seen.add(plain(text))
    ours = {plain(d["question"]) for d in everyday()} | {plain(u["question"]) for d in turns() for u in d["turns"] if u["kind"] != "talk" and u["question"].count(".") < 3}
    print(len(ours), "wordings, in training:", sorted(ours & seen))


if __name__ == "__main__" and sys.argv[1] == "check":
    check(*map(int, sys.argv[2:3]))
elif __name__ == "__main__":
    for d in everyday() if sys.argv[1] == "everyday" else turns():
        print(json.dumps(d))
