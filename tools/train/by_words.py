"""Short questions of many words in few frames: n X with m Y each, what comes and goes, parts together, by how much, costs and bills.

The frames teach to read "each", "left", "more than", "in all" whatever the other words are."""
from changes import gain, left_words, lose
from wording import *

NX = ("table shelf room floor page car team class tree bush nest tank cage row shirt chapter lesson song trip game round week day hour night morning evening visit door window wall bench boat truck wagon bus train plane tent cabin house street village "
      "school office shop kitchen garden field barn pond stall booth stand line column stack set kit album folder desk locker rack ladder bridge tower lamp cake pie pizza loaf sandwich salad recipe dish pan pot cup mug vase wreath necklace bracelet coat dress "
      "bicycle cart sled ship ferry camp hotel museum club band choir crew gang party meeting match race level quiz test exam worksheet poster sign letter parcel order load shift batch dozen ride ticket coupon card deck board hive flock herd family couple "
      "guest visitor worker soldier pirate sailor monkey squirrel rabbit hen cow dog cat bird spider robot machine printer player student child kid boy girl teacher farmer baker driver nurse doctor waiter painter friend cousin neighbor brother sister").split()
HAS = "have hold get take need carry use make contain give want receive eat own show bring seat fit lay wear include require find collect drink sell produce offer feature store read pick draw win earn plant send wash".split()
PREP = "in on for to at from per with under inside around beside".split()
MORE_Y = ("wheel leg window door seat lamp bottle flower bean seed plant root branch berry line word letter note string bead stone tile brick screw point goal try kick pass card stripe button pocket sleeve zipper drawer hook towel blanket pillow spoon plate fork "
          "candle present kiss ticket stamp coin dollar cent minute hour mile step jump lap page photo song file email call message soap tea bag,can,roll,scone,bun,pancake,cracker,slice,scoop,drop,spot,ring,bell,flag,star,balloon,sticker,marble,toy car,oar,sail,nail,rope,pot,jar,log,"
          "visitor,guest,rider,passenger,player,pupil,worker,sailor,egg,chick,puppy,kitten,fish,duck,owl,fox,carrot,apple,cherry,grape,nut,plum,lemon,cookie,muffin,sandwich,chair").replace(" bag,", ",tea bag,")
MORE_Y = [w for part in MORE_Y.split(",") for w in (part.split() if part.startswith("wheel") else [part])]
DAYS2 = [("on Monday", "on Tuesday"), ("in the morning", "in the afternoon"), ("yesterday", "today"), ("last week", "this week"), ("in May", "in June"), ("before lunch", "after lunch"), ("on Saturday", "on Sunday"), ("in the first hour", "in the second hour"), ("at home", "at school"), ("last year", "this year"), ("first", "later"), ("at noon", "at night"),
         ("in the first half", "in the second half"), ("in spring", "in summer"), ("in the kitchen", "in the garden"), ("in one box", "in the other"), ("upstairs", "downstairs"), ("in the left pocket", "in the right pocket"), ("on Friday", "on Saturday"), ("this morning", "this evening")]
DO = "see,count,read,write,sell,bake,walk,run,score,catch,make,pick,buy,find,eat,drink,plant,paint,build,solve,draw,collect,print,wash,pack,meet,feed,hear,take,win,learn,play,clean,carry,send,cook,visit,watch,mail,cut".split(",")


def y(p):
    r = p.r
    k = r.random()
    if k < 0.04:
        w = "".join(r.choice(SYLLABLES) for _ in range(r.choice([2, 2, 3])))
    else:
        w = r.choice(r.choice((MORE_Y, MORE_Y, FOOD, THING)))
    p.what = plural(w)
    return p.what, w


def x(p, *but):
    while True:
        w = p.r.choice(NX) if p.r.random() > 0.04 else "".join(p.r.choice(SYLLABLES) for _ in range(2))
        if w not in but:
            return plural(w), w


def each(p):
    """n X, m Y each"""
    r = p.r
    o, o1 = y(p)
    X, X1 = x(p, o1)
    S = p.subject()
    n, m = p.count(), p.size()
    w, pr = r.choice(HAS), r.choice(PREP)
    W, W3 = (past(w), past(w)) if r.random() < 0.3 else (w, third(w))
    ev = r.choice(["each", "every"])
    do = r.choice([v for v in HAS if v not in ("seat", "fit", "lay")] + DO)
    one = [f"{ev} {X1} {W3} {m} {o}", f"{ev} {X1} {W3} {m} {o}", f"{a(X1)} {W3} {m} {o}", f"there are {m} {o} {pr} {ev} {X1}" if pr != "per" else f"there are {m} {o} per {X1}", f"{m} {o} {pr} {ev} {X1}" if pr != "per" else f"{m} {o} per {X1}", f"{X} {W} {m} {o} each", f"{X} {W} {m} {o} apiece", f"one {X1} {W3} {m} {o}", f"it is {m} {o} per {X1}",
           f"{S.vs(do)} {m} {o} {pr} {ev} {X1}" if pr != "per" else f"{S.vs(do)} {m} {o} per {X1}", f"for {ev} {X1} {S.he if S.he == 'I' else S.n} {S.v(do)} {m} {o}", f"{ev} one of the {X} {W3} {m} {o}", f"{ev} {X1} comes with {m} {o}", f"{m} {o} go {pr if pr not in ('per', 'with') else 'in'} {ev} {X1}", f"{m} {o} {r.choice(['belong to', 'go with', 'come with', 'fit on'])} {ev} {X1}",
           f"the number of {o} {pr if pr != 'per' else 'on'} {ev} {X1} is {m}"]
    two = [f"there are {n} {X}", f"there are {n} {X}", f"{S.vs(do)} {n} {X}", f"{S.vs('have')} {n} {X}", f"we have {n} {X}", f"there were {n} {X}", f"I see {n} {X}", f"{n} {X} are there", f"it has {n} {X}", f"{S.vs('need')} {n} {X}", f"we count {n} {X}", f"{n} {X} came" if r.random() < 0.5 else f"{n} {X} are full"]
    both = [f"{n} {X} {W} {m} {o} each", f"{n} {X} {W} {m} {o} apiece", f"{n} {X} with {m} {o} each", f"there are {n} {X} with {m} {o} {pr} {ev} {X1}" if pr not in ("per", "with") else f"there are {n} {X} with {m} {o} each", f"each of the {n} {X} {W3} {m} {o}", f"each of {n} {X} {W3} {m} {o}", f"there are {n} {X} and {ev} one {W3} {m} {o}",
            f"there are {n} {X}, {ev} with {m} {o}", f"{S.vs(do)} {n} {X}, {m} {o} {pr} {ev} {X1}" if pr != "per" else f"{S.vs(do)} {n} {X}, {m} {o} per {X1}", f"{S.vs(do)} {n} {X} with {m} {o} each", f"{S.vs('have')} {n} {X} and {ev} {X1} {W3} {m} {o}", f"{n} {X} and {m} {o} {pr if pr != 'per' else 'for'} {ev} {X1}", f"{S.vs(do)} {m} {o} {pr if pr != 'per' else 'for'} each of {n} {X}",
            f"{S.vs(do)} {n} {X} and {S.v(do)} {m} {o} {pr if pr != 'per' else 'for'} {ev} {X1}", f"{n} {X} {W} {m} {o} to {ev} one" if w in ("give", "bring", "have") else f"{n} {X} {W} {m} {o} each"]
    d = "did" if W == W3 else "do"
    qs = [f"how many {o} are there", f"how many {o} is that", f"how many {o} are there in all", f"how many {o} {d} the {X} {w}", f"how many {o} {d} they {w} altogether", f"how many {o} {d} they {w}", f"how many {o} in total", f"how many {o} are needed", f"how many {o} {S.does} {S.he} {do}", f"number of {o}", f"what is the number of {o}", f"how many {o} altogether", f"how many {o} does it take",
          f"how many {o} were there", f"how many {o} will there be", f"what number of {o} is that", f"how many {o} can there be", f"how many {o} {S.does} {S.he} {do} in all", f"how many {o} would that be", f"how many {o} are we talking about"]
    inq = [f"how many {o} {d} {n} {X} {w}", f"how many {o} are there {pr if pr not in ('per', 'with') else 'in'} {n} {X}", f"how many {o} for {n} {X}", f"how many {o} are needed for {n} {X}", f"{n} {X} {W} how many {o}", f"how many {o} can {n} {X} {w}", f"how many {o} with {n} {X}", f"what number of {o} do {n} {X} {w}", f"how many {o} will {n} {X} {w}", f"how many {o} {pr if pr != 'per' else 'on'} {n} {X}", f"how many {o} is that for {n} {X}",
           f"if there are {n} {X}, how many {o} are there", f"with {n} {X}, how many {o} is that", f"how many {o} come with {n} {X}", f"how many {o} {S.does} {S.he} {do} {pr if pr != 'per' else 'for'} {n} {X}"]
    terse = [f"{n} {X}, {m} {o} each", f"{n} {X}, {m} {o} {pr} {ev} {X1}" if pr != "per" else f"{n} {X}, {m} {o} per {X1}", f"{m} {o} per {X1}, {n} {X}", f"{n} {X} with {m} {o}", f"{n} {X} {W} {m} {o} each", f"{n} {X}, {m} {o} {pr if pr != 'per' else 'in'} a {X1}", f"{n} {X} at {m} {o} each"]
    k = r.random()
    if k < 0.3:
        f = [one, two]
        if r.random() < 0.4:
            f.reverse()
        p.ask(f, qs, SHORT + (f"how many {o}",), terse)
    elif k < 0.58:
        p.ask([one], inq, inq, terse)
    else:
        p.ask([both], qs, SHORT + (f"how many {o}",), terse)
    p.vary = [("a", [f"And with {{x}} {X}?", f"and {{x}} {X}?", f"What if there are {{x}} {X}?", f"what about {{x}} {X}", f"how many for {{x}} {X}?", f"and if there were {{x}} {X}", f"the same for {{x}} {X}", f"and now {{x}} {X}", f"what would it be for {{x}} {X}?", f"Try it with {{x}} {X}."], p.count),
              ("b", [f"And if each {X1} {third(w)} {{x}}?", f"what if there are {{x}} {o} {pr} each {X1}?" if pr != "per" else f"what if there are {{x}} {o} per {X1}?", f"and {{x}} {o} per {X1}?"], p.size)]
    return dict(a=n, b=m), lambda p, v: p.times(v["a"], v["b"], "In all that is @.")


IN = [("come", "came"), ("arrive", "arrived"), ("join", "joined"), ("show up", "showed up"), ("turn up", "turned up"), ("are added", "were added"), ("are born", "were born"), ("come in", "came in"), ("move in", "moved in"), ("jump in", "jumped in"), ("step in", "stepped in"), ("get in", "got in"), ("come back", "came back"), ("are found", "were found"), ("appear", "appeared"), ("follow", "followed"), ("enter", "entered"), ("come along", "came along"), ("are delivered", "were delivered"),
      ("sit down with them", "sat down with them"), ("fly in", "flew in"), ("swim by", "swam by"), ("hatch", "hatched"), ("are brought", "were brought"), ("hop on", "hopped on"), ("get on", "got on"), ("walk in", "walked in"), ("drive in", "drove in"), ("are put there", "were put there"), ("sign up", "signed up")]
OUT = [("leave", "left"), ("go home", "went home"), ("go away", "went away"), ("run away", "ran away"), ("walk out", "walked out"), ("are gone", "were gone"), ("are taken", "were taken"), ("fly away", "flew away"), ("fall off", "fell off"), ("fall down", "fell down"), ("disappear", "disappeared"), ("get off", "got off"), ("get out", "got out"), ("jump out", "jumped out"), ("swim away", "swam away"), ("are sold", "were sold"), ("break", "broke"), ("melt", "melted"), ("burst", "burst"), ("go out", "went out"),
       ("stop", "stopped"), ("give up", "gave up"), ("die", "died"), ("fall asleep", "fell asleep"), ("are removed", "were removed"), ("are eaten", "were eaten"), ("are used", "were used"), ("drive off", "drove off"), ("sink", "sank"), ("are lost", "were lost"), ("hop off", "hopped off"), ("walk away", "walked away"), ("move out", "moved out"), ("are sent home", "were sent home"), ("are picked", "were picked"), ("wander off", "wandered off"), ("are stolen", "were stolen"), ("are crossed out", "were crossed out"),
       ("are thrown away", "were thrown away"), ("get lost", "got lost"), ("are missing", "were missing"), ("go to bed", "went to bed"), ("quit", "quit"), ("are deleted", "were deleted"), ("are erased", "were erased"), ("are picked up", "were picked up")]
WHERE = ("on the bus,on the train,in the pool,in the park,in the hall,in line,at the stop,on the beach,at the pond,in the tree,on the roof,in the shop,in the room,at the party,in the yard,on the lake,in the barn,on the boat,on the table,in the bowl,in the jar,in the box,in the fridge,on the desk,on the shelf,in the basket,in the bag,on the field,"
         "in the club,in the chat,on the list,in the queue,in the garden,in the cage,in the tank,on the wall,in the street,at camp,in the class,in the team,at the market,in the zoo,on the plate,in the drawer,on the ice,in the forest,in the museum,in the elevator,on the stage,on the ferry,in the parking lot,on the farm,in the hotel,in the cinema").split(",")
WHO2 = "people,kids,guests,birds,ducks,fish,cars,boats,players,students,visitors,riders,passengers,dogs,cats,horses,sheep,frogs,bees,monkeys,runners,dancers,children,boys,girls,workers,swimmers,men,women,trucks,bikes,bottles,cans,jars,books,balloons,candles,lamps,apples,cookies,eggs,names,photos,messages,flowers,leaves,chairs,boxes,toys,stars,snowmen,icicles,plates,tents,friends,members,singers,shoppers,hikers,tourists,geese,swans,owls,foxes,squirrels,ants".split(",")


def flow(p):
    """what comes and goes, in any words"""
    r = p.r
    o = r.choice(WHO2)
    p.what = o
    where = r.choice(WHERE)
    t = r.random() < 0.5
    n = max(5, p.have())
    were = "were" if t else "are"
    f = [[f"there {were} {n} {o} {where}", f"{n} {o} {were} {where}", f"{where} there {were} {n} {o}", f"there {were} {n} {o}", f"{n} {o} {'sat' if t else 'sit'} {where}", f"{n} {o} {'waited' if t else 'wait'} {where}", f"we {'saw' if t else 'see'} {n} {o} {where}", f"we {'had' if t else 'have'} {n} {o} {where}", f"at first there {were} {n} {o}", f"{n} {o} {'started' if t else 'start'}"]]
    signs = r.choice(["+", "-", "-", "-", "+", "+-", "-+", "--", "++"])
    v, z = dict(a=n), n
    for i, s in enumerate(signs):
        k = p.more() if s == "+" else r.randint(1, min(z - 1, (15, 60, 300)[p.h])) if z > 2 else 1
        v["bcd"[i]] = k
        z = z + k if s == "+" else z - k
        w = r.choice(IN if s == "+" else OUT)[t]
        of = f"{k} more {o}" if s == "+" else f"{k} of the {o}"
        th = f"{k} more" if s == "+" else f"{k} of them"
        f.append([f"{k} {w}", f"then {k} {w}", f"{of} {w}", f"{th} {w}", f"{k} {o} {w}", f"then {th} {w}", f"later {th} {w}", f"{k} new ones {w}" if s == "+" else f"{k} {w} again", f"after a while {th} {w}", f"{k} others {w}" if s == "+" else f"{th} soon {w}", f"at noon {k} {w}", f"suddenly {th} {w}"])
    if z < 1:
        raise Bad
    p.skel += list(signs)
    if r.random() < 0.25 and len(signs) == 1:  # "5 birds sat in the tree when 3 more came"
        j = r.choice([" when ", " until ", " but ", " before ", ", but then ", "; ", " and soon "])
        f = [[a_ + j + b_ for a_ in f[0] for b_ in f[1] if not b_.startswith(("then", "later", "at noon", "after"))]]
    if signs[-1] == "-":
        qs = [f"how many {o} are left", "how many are left", f"how many {o} remain", "how many are still there", f"how many {o} are there now", f"how many {o} are still {where}", f"how many {o} stayed", "how many stay", f"how many {o} were left", f"how many {o} are left {where}", f"how many {o} are not gone", f"how many {o} are left now", f"how many of the {o} stayed", f"how many {o} do we have now", f"what number of {o} is left", f"how many {o} keep going" if o in ("runners", "hikers", "dancers", "singers") else f"how many {o} stay there"]
        p.ask(f, qs, SHORT_LEFT + (f"{o} left",), [f"{n} {o} {where}, {v['b']} {w}", f"{n} {o}, {v['b']} {w}"] if len(signs) == 1 else ())
    else:
        qs = [f"how many {o} are there now", f"how many {o} are {where} now", "how many are there now", f"how many {o} are there", f"how many {o} is that", f"how many {o} are {where}", f"how many {o} were there then", f"how many {o} were there in the end", f"how many {o} do we have now", f"{o} now", f"what is the number of {o} now", f"how many {o} are there altogether"]
        p.ask(f, qs, ("how many now", "how many", "how many are there now", f"{o} now"), [f"{n} {o} {where}, {v['b']} more {w}"] if len(signs) == 1 else ())

    def fn(p, v):
        z = v["a"]
        for s, k in zip(signs, "bcd"):
            z = p.op(z, s, v[k], f"With {v[k]} more it is @." if s == "+" else "That leaves @.")
        return z
    if len(signs) == 1:
        p.vary = [("b", [f"And if {{x}} {w}?", f"what if {{x}} {w}?", f"What if {{x}} {o} {w}?", f"and had {{x}} {w}?", f"suppose {{x}} {w}"], lambda: r.randint(2, max(3, min(n - 1, 60))))]
    return v, fn


def took(p):
    """a number is made or had, some of it goes (or more comes), told with any verb"""
    r = p.r
    S = p.subject()
    S.past = S.past or r.random() < 0.4
    o, o1 = y(p)
    up = r.random() < 0.4
    n = max(4, p.have())
    k = p.more() if up else r.randint(1, n - 1) if p.h == 0 else p.less(n)
    w = r.choice(DO + ["have", "have", "own", "get", "start with", "order", "bring", "borrow"])
    he, do = S.he, S.does
    f1 = [f"{S.vs(w)} {n} {o}", f"{S.vs(w)} {n} {o}", f"{S.his if S.he == 'I' else S.n + (chr(39) + 's' if not S.n.endswith('s') else chr(39))} {r.choice(BOXES)} {'had' if S.past else 'has'} {n} {o}", f"in {S.his} {r.choice(BOXES)} {S.he} {S.v('have')} {n} {o}", f"{S.n} once {S.v('have')} {n} {o}", f"{S.vs('own')} {n} {o}"]
    c = (gain if up else lose)(p, S, o, o1, k)
    if r.random() < 0.3:
        f = [[a_ + j + b_ for a_ in f1[:2] for b_ in c if not b_.startswith("then") for j in (" and ", ", ", " but ", " and then ", ". then ")]]
        f = [[t.replace(". then ", ". Then ") for t in f[0]]]
    else:
        f = [f1, c]
    if up:
        qs = [f"how many {o} {do} {he} have now", f"how many {o} {do} {he} {w.split()[0]} in all" if " " not in w else f"how many {o} is that now", f"how many {o} {do} {he} have", f"how many {o} are there now", f"how many {o} is that", f"how many {do} {he} have in the end", f"how many {o} {do} {he} {w} altogether" if " " not in w else "how many now", f"what is {S.his} total", f"how many {o} {do} {he} have in total"]
        p.ask(f, qs, ("how many now", "how many", "how many in all", f"{o} now"))
    else:
        p.ask(f, left_words(S, o), SHORT_LEFT + (f"{o} left",))
    p.skel.append("+" if up else "-")
    s = "+" if up else "-"
    p.vary = [("a", [f"What if {he} had {{x}} at first?", f"and if {he} {S.v('start')} with {{x}}?", f"and with {{x}} at the start?", f"suppose {he} had {{x}} {o}"], lambda: k + p.more())]
    return dict(a=n, b=k), lambda p, v: p.op(v["a"], s, v["b"], "With the new ones it is @." if up else "That leaves @.")


def parts(p):
    """two times, places or people together, or by how much one is more"""
    r = p.r
    S = p.subject(0.3, 0.15, 0.05)
    S.past = S.past or r.random() < 0.4
    o, o1 = y(p)
    w = r.choice(DO)
    n, m = p.have(), p.have()
    A, B = r.choice(DAYS2)
    he, do = S.he, "did" if S.past else "do" if S.pl else "does"
    k = r.random()
    t, _ = p.name()
    if k < 0.45:
        f = [[f"{S.vs(w)} {n} {o} {A} and {m} {B}", f"{A} {S.vs(w)} {n} {o} and {m} {B}", f"{S.vs(w)} {n} {o} {A} and {m} {o} {B}", f"{S.vs(w)} {n} {o} {A} and another {m} {B}", f"{S.vs(w)} {n} {o} {A}, {B} it {'was' if S.past else 'is'} {m}", f"{A} {S.vs(w)} {n} {o}, {B} {m}", f"{S.vs(w)} {n} {o} {A}. {cap(B)} {he} {S.v(w)} {m}", f"{S.vs(w)} {n} {o} {A} plus {m} {B}"]]
        diff = r.random() < 0.2 and n != m
        qs = [f"how many {o} {do} {he} {w}", f"how many {o} {do} {he} {w} in all", f"how many {o} is that", f"how many {o} {do} {he} {w} in total", f"how many {o} {do} {he} {w} altogether", f"how many {o} {do} {he} {w} on both days" if A.startswith("on ") else f"how many {o} are that together", f"what is the total", f"how many {o} in the two {'days' if A.startswith('on ') else 'times'}"]
        if diff:
            qs = [f"how many more {o} {do} {he} {w} {A if n > m else B}", "what is the difference", f"how many fewer {o} {do} {he} {w} {B if n > m else A}", f"by how many is it more {A if n > m else B}"]
    else:
        diff = r.random() < 0.5 and n != m
        T = past(w) if S.past else third(w)
        me = "me" if S.he == "I" else S.n
        f = [[f"{S.vs(w)} {n} {o} and {t} {T} {m}", f"{S.vs(w)} {n} {o}, {t} {T} {m}", f"{S.vs(w)} {n} {o}, {t} {m}", f"{S.vs(w)} {n} {o} while {t} {T} {m}", f"{S.vs(w)} {n} {o}. {t} {T} {m} {o}", f"{S.vs(w)} {n} {o} but {t} {T} {m}" if diff else f"{S.vs(w)} {n} {o} and {t} {T} {m} {o}", f"{S.vs(w)} {n} {o} and {t} {m}"]]
        they = "we" if S.he in ("I", "we") else "they"
        d2 = "did" if S.past else "do"
        if diff:
            hi, lo = (S.n, t) if n > m else (t, me)
            dd = do if n > m else ("did" if S.past else "does")
            qs = [f"how many more {o} {dd} {hi} {w} than {lo}", f"how many more {dd} {hi} {w}", "what is the difference", f"by how many {o} {dd} {hi} {w} more", f"by how many is {hi if hi != 'I' else 'my number'} ahead", f"by how much did {hi} win" if o in ("points", "goals") else f"what is the difference in {o}", f"how many {o} more {dd} {hi} {w}"]
        else:
            qs = [f"how many {o} {d2} {they} {w} together", f"how many {o} {d2} {they} {w} in all", f"how many {o} {d2} {they} {w}", f"how many {o} is that together", f"how many {o} {d2} both {w}" if they == "they" else f"how many {o} {d2} we both {w}", f"what is the sum", f"how many {o} {d2} {they} {w} in total", f"how many {o} {d2} the two {'of us ' if they == 'we' else ''}{w}"]
    p.skel.append("d" if diff else "s")
    p.ask(f, qs, ("what is the difference", "how many more") if diff else SHORT)
    if diff:
        return dict(a=n, b=m), lambda p, v: p.op(max(v["a"], v["b"]), "-", min(v["a"], v["b"]), "The difference is @.")
    if n != m:
        p.vary = [("b", [f"And if it is {{x}} instead of {m}?", f"what if it was {{x}} and not {m}?"], p.have)]
    return dict(a=n, b=m), lambda p, v: p.op(v["a"], "+", v["b"], "Together that is @.")


def than(p):
    """X more (fewer) of one thing than of another, or twice as many"""
    r = p.r
    i, i1 = y(p)
    j, j1 = y(p)
    if i == j:
        raise Bad
    where = r.choice(WHERE)
    n = p.have()
    e = r.choice("+-+-*")
    k = p.more() if e == "+" else r.randint(1, n - 1) if e == "-" else r.choice([2, 2, 3, 4])
    t = f"{k} more {j} than {i}" if e == "+" else f"{k} {r.choice(['fewer', 'less'])} {j} than {i}" if e == "-" else f"{MANY[k]} as many {j} as {i}"
    t2 = f"{k} more {j}" if e == "+" else f"{k} {r.choice(['fewer', 'less'])} {j}" if e == "-" else f"{MANY[k]} as many {j}"
    f1 = [f"there are {n} {i} {where}", f"there are {n} {i}", f"we have {n} {i}", f"I see {n} {i}", f"{where} there are {n} {i}"]
    f2 = [f"there are {t}", f"there are {t2}", f"we have {t}", f"{t}", f"the {j} are {k} more" if e == "+" else f"there are {t2} {where}"]
    tog = r.random() < 0.15
    p.skel += [e, str(tog)]
    qs = [f"how many {j} are there", f"how many {j} do we have", f"how many {j} is that", f"what is the number of {j}", f"how many {j}", f"how many {j} are {where}"] if not tog else [f"how many {i} and {j} are there together", f"how many things are there in all", f"how many {i} and {j} are there"]
    p.ask([f1, f2], qs, (f"how many {j}", f"how many {j} are there") if not tog else ("how many together", "how many in all"), [f"{n} {i} and {t}"])
    p.what = j

    def fn(p, v):
        z = p.op(v["a"], e, v["b"], f"{cap(MANY[v['b']])} as many is @." if e == "*" else f"With {v['b']} more it is @." if e == "+" else f"With {v['b']} fewer it is @.")
        return p.op(v["a"], "+", z, "Together that is @.") if tog else z
    return dict(a=n, b=k), fn


def shared(p):
    """m Y for n X, the same for each; or in groups of n"""
    r = p.r
    S = p.subject()
    o, o1 = y(p)
    X, X1 = x(p, o1)
    t, d = p.divs()
    he, do = S.he, S.does
    k = r.random()
    w = r.choice(["share", "split", "divide", "deal", "hand out", "spread", "distribute", "sort", "put", "serve", "give out", "arrange"])
    eq = r.choice([" equally", " evenly", " fairly", "", " in equal parts", ", the same for each", ", everyone gets the same" if X1 in PEOPLE else ""])
    if k < 0.55:
        pr = r.choice(["among", "between", "over", "onto", "into", "to"])
        both = [f"{S.vs(w)} {t} {o} {pr} {d} {X}{eq}", f"{t} {o} are {past(w) if w not in ('deal', 'give out') else 'shared'} {pr} {d} {X}{eq}", f"{d} {X} share {t} {o}{eq}", f"{d} {X} get {t} {o} together, each the same", f"there are {t} {o} for {d} {X}{eq}", f"{t} {o} go to {d} {X}{eq}", f"{d} {X} have {t} {o} in all, each has the same number", f"{d} {X} {r.choice(['hold', 'carry', 'contain', 'need', 'use'])} {t} {o} together, all the same"]
        if r.random() < 0.35:
            fs = [[f"{S.vs('have')} {t} {o}", f"there are {t} {o}", f"{S.vs('buy')} {t} {o}"], [f"there are {d} {X}", f"{d} {X} want them", f"{he} {S.v(w)} them {pr} {d} {X}{eq}", f"{d} {X} share them{eq}", f"they are for {d} {X}{eq}"]]
        else:
            fs = [both]
        qs = [f"how many {o} does each {X1} get", f"how many does each {X1} get", f"how many {o} per {X1}", f"how many {o} for each {X1}", f"how many {o} are in each {X1}", f"how many {o} does one {X1} have", f"how many {o} does every {X1} get", f"what does each {X1} get", f"what is the share of each {X1}", f"how many {o} for one {X1}", f"how many {o} does a {X1} get", f"how many {o} go to each {X1}", f"how many {o} go to a {X1}", f"how many {o} are there for one {X1}", f"what is one {X1}'s share",
              f"how many {o} will each {X1} have", f"how many {o} on each {X1}", f"how big is each part"]
        p.ask(fs, qs, ("how many each", "how many for each", "how many per " + X1, "how many does each get"), [f"{t} {o}, {d} {X}", f"{t} {o} for {d} {X}", f"{t} {o} over {d} {X}"])
        p.skel.append("s")
        p.vary = [("b", [f"And with {{x}} {X}?", f"what if there are {{x}} {X}?", f"and over {{x}} {X}?", f"and for {{x}} {X}?", f"the same with {{x}} {X}"], lambda: p.div(t))]
        return dict(a=t, b=d), lambda p, v: p.op(v["a"], "/", v["b"], "Each gets @.")
    v2 = r.choice(["hold", "carry", "take", "seat", "fit", "need", "use", "contain", "have", "get", "store"])
    V3 = third(v2)
    one = [f"{a(X1)} {V3} {d} {o}", f"each {X1} {V3} {d} {o}", f"every {X1} {V3} {d} {o}", f"{d} {o} go in one {X1}", f"{d} {o} make a {X1}", f"{d} {o} are needed for {a(X1)}", f"{S.vs(r.choice(['put', 'tie', 'pack', 'load', 'place', 'stick', 'sew', 'plant', 'hang', 'sort']))} {d} {o} {r.choice(['in', 'on', 'into', 'onto'])} each {X1}", f"{o} come {d} to a {X1}", f"there is room for {d} {o} on each {X1}", f"{a(X1)} is made of {d} {o}", f"they come {d} in a {X1}"]
    two = [f"there are {t} {o}", f"{S.vs('have')} {t} {o}", f"{S.vs('need')} {t} {o}", f"we have {t} {o}", f"{t} {o} are there"]
    qs = [f"how many {X} are needed", f"how many {X} is that", f"how many {X} does {S.he} need" if S.does == "does" else f"how many {X} do we need", f"how many {X} are full", f"how many {X} are there", f"how many {X}", f"how many {X} can be made", f"how many {X} can {he} make", f"how many {X} does it take", f"how many {X} will be filled", f"how many {X} do we get", f"how many {X} should {he} buy", f"number of {X}"]
    inq = [f"how many {X} for {t} {o}", f"how many {X} are needed for {t} {o}", f"how many {X} do {t} {o} make", f"how many {X} can {he} make from {t} {o}", f"how many {X} do we need to {v2} {t} {o}", f"how many {X} {v2} {t} {o}", f"how many {X} can {he} fill with {t} {o}", f"how many {X} do we get from {t} {o}", f"how many {X} does it take for {t} {o}"]
    if r.random() < 0.5:
        f = [two, one]
        if r.random() < 0.4:
            f.reverse()
        p.ask(f, qs, (f"how many {X}", f"how many {X} are needed"), [f"{t} {o}, {d} per {X1}", f"{t} {o}, {d} in each {X1}", f"{t} {o} in {X} of {d}"])
    else:
        p.ask([one], inq, inq)
    p.what = X
    p.skel.append("p")
    return dict(a=t, b=d), lambda p, v: p.op(v["a"], "/", v["b"], "That makes @.")


GOODS = PRICED + "seat,soda,scoop,tea,bun,hot dog,ride,gum,map,stamp,spoon,kite,fish,plant,hen,tulip,song,app,pin,scarf,cap,pear,wheel,bell,battery,fork,bus ticket,taxi ride,beer,parking space,swim,drink,pancake,omelet,soup,salad,dessert,hour,mile,kilo,pound,meter,night,visit,wash,class".split(",")
FEE = ["how much {do} {he} pay", "what {do} {he} pay", "what does it cost", "how much is the bill", "what's the bill", "what is the bill", "how much {do} {he} owe", "what {do} {he} owe", "how much money is that", "how much is it", "how much will {he} be charged", "how much does it come to", "what does that come to", "what is the price of all", "how much for all of them", "how much is due", "what will it cost", "how much {do} {he} spend", "what {do} {he} spend", "what's the damage", "how many dollars is that"]


def bill(p):
    """prices and pay in any words"""
    r = p.r
    S = p.subject(0.35, 0.1, 0.12)
    g = r.choice(GOODS)
    gs = plural(g)
    m = p.money()
    n, c = p.count(), p.price() + 1
    he, do = S.he, S.does
    p.what = "dollars"
    qs = [q.format(do=do, he=he) for q in FEE]
    k = r.random()
    if k < 0.5:
        one = [f"{a(g)} costs {m(c)}", f"{a(g)} is {m(c)}", f"the price is {m(c)} per {g}", f"they ask {m(c)} for {a(g)}", f"it costs {m(c)} per {g}", f"every {g} is {m(c)}", f"{m(c)} for each {g}", f"{gs} are {m(c)} apiece", f"{gs} cost {m(c)} each", f"the fee is {m(c)} for {a(g)}", f"the shop charges {m(c)} per {g}", f"one {g} goes for {m(c)}", f"{a(g)} sets you back {m(c)}", f"we sell {gs} at {m(c)} each", f"{gs} are sold at {m(c)} each", f"you pay {m(c)} for {a(g)}"]
        two = [f"{S.vs(w)} {n} {gs}" for w in ("buy", "take", "order", "want", "get", "need", "pick", "choose", "pay for", "grab", "have")] + [f"{S.n} would like {n} {gs}", f"{n} {gs} for {S.n if S.he != 'I' else 'me'}", f"{S.vs('go')} for {n} {gs}", f"{n} of us want {a(g)} each" if S.he == "we" else f"{S.vs('take')} {n} of them"]
        both = [f"{S.vs(w)} {n} {gs} {h}" for w in ("buy", "order", "take", "get") for h in (f"at {m(c)} each", f"for {m(c)} each", f"at {m(c)} apiece", f"and each one is {m(c)}", f"with a price of {m(c)} each")] + [f"{n} {gs} at {m(c)} each", f"{n} {gs} and every one is {m(c)}", f"{S.vs('buy')} {n} {gs}. They're {m(c)} each", f"{S.vs('want')} {n} {gs}. They cost {m(c)} apiece", f"{n} people buy {a(g)} for {m(c)} each"]
        inq = [f"what do {n} {gs} cost", f"how much are {n} {gs}", f"what is the price of {n} {gs}", f"what do {n} {gs} come to", f"what do {S.n if S.he != 'I' else 'I'} pay for {n} {gs}" if S.pl else f"what does {S.n} pay for {n} {gs}", f"how much for {n} {gs}", f"what would {n} {gs} cost", f"how much do {n} {gs} bring in", f"what will {n} {gs} be", f"price of {n} {gs}", f"how much money do {n} {gs} make"]
        j = r.random()
        if j < 0.4:
            f = [one, two]
            if r.random() < 0.35:
                f.reverse()
            p.ask(f, qs, SHORT_COST + ("what's the bill", "price", "what do I pay"), [f"{n} {gs}, {m(c)} each", f"{m(c)} per {g}, {n} {gs}"])
        elif j < 0.65:
            p.ask([one], inq, inq)
        else:
            p.ask([both], qs, SHORT_COST + ("what's the bill", "total price"))
        p.skel.append("*")
        p.vary = [("a", [f"And {{x}} {gs}?", f"and for {{x}} {gs}?", f"What about {{x}} {gs}?", f"what if it is {{x}} {gs}?", f"and {{x}} of them?", f"now for {{x}}", f"what do {{x}} cost?"], p.count)]
        return dict(a=n, b=c), lambda p, v: p.times(v["a"], v["b"], "The cost is @.")
    h = r.choice(GOODS)
    d = p.price() + 1
    if h == g:
        raise Bad
    if k < 0.72:
        meal = r.choice([("breakfast", "lunch"), ("lunch", "dinner"), ("the bus", "the train"), ("the rent", "the food"), ("a room", "a meal"), ("the show", "the snacks"), ("the first", "the second"), (f"the {g}", f"the {h}"), (f"the {g}", f"the {h}"), (a(g), a(h)), (f"the {g}", f"the {h}"), (a(g), a(h))])
        i, j = meal
        t = r.choice([("is", "is"), ("costs", "costs"), ("was", "was"), ("cost", "cost")])
        f = [[f"{i} {t[0]} {m(c)} and {j} {t[1]} {m(d)}", f"{i} {t[0]} {m(c)}, {j} {t[1]} {m(d)}", f"{S.vs('pay')} {m(c)} for {i} and {m(d)} for {j}", f"{S.vs('spend')} {m(c)} on {i} and {m(d)} on {j}", f"{i} {t[0]} {m(c)}. {cap(j)} {t[1]} {m(d)}", f"{i} {t[0]} {m(c)} plus {m(d)} for {j}", f"{S.vs('buy')} {i} for {m(c)} and {j} for {m(d)}"]]
        q2 = qs + ["what do both cost", f"what {do} {he} pay for both", "how much are both together", "how much is that together", f"how much {do} {he} spend in all", "what is the total", "how much in all", "what do they cost together"]
        p.skel.append("+")
        p.ask(f, q2, SHORT_COST + ("both together", "total"))
        return dict(a=c, b=d), lambda p, v: p.op(v["a"], "+", v["b"], "Together that is @.")
    big, sm = max(c, d) + 5, min(c, d)
    t = r.random()
    p.skel.append("-")
    i = r.choice([a(g), "food", "a snack", "lunch", "a book", "toys", "the fair", "candy", "clothes", "a gift", f"the {g}", "gas"])
    if t < 0.6:
        f = [[f"{S.vs('have')} {m(big)}", f"{S.vs('get')} {m(big)}", f"{S.vs('earn')} {m(big)}", f"{S.vs('take')} {m(big)} along", f"{S.vs('have')} {m(big)} in {S.his} {r.choice(['wallet', 'purse', 'pocket', 'bank', 'jar'])}", f"{S.his if S.he == 'I' else S.n + chr(39) + 's'} mom {'gave' if S.past else 'gives'} {S.him} {m(big)}"], [f"{he} {S.v('spend')} {m(sm)} on {i}", f"{he} {S.v('pay')} {m(sm)} for {i}", f"{he} {S.v('give')} {m(sm)} away", f"{i} {'cost' if S.past else 'costs'} {m(sm)}", f"{he} {S.v('lose')} {m(sm)}", f"{he} {S.v('use')} {m(sm)} for {i}", f"{m(sm)} {'went' if S.past else 'goes'} to {i}"]]
        q3 = [f"how much {do} {he} have left", "how much is left", "what is left", "how much money is left", f"how much {do} {he} still have", f"what {do} {he} have left", "how much remains", "how much money remains", "how many dollars are left", f"how much is in {S.his} pocket now", f"what remains of {S.his} money", f"how much money {do} {he} keep", "how much is left over", f"what {do} {he} have now"]
        p.ask(f, q3, ("how much is left", "what's left", "how much left", "what remains"))
    else:
        f = [[f"{i} {'cost' if S.past else 'costs'} {m(sm)}", f"{i} {'was' if S.past else 'is'} {m(sm)}", f"{S.vs('buy')} {i} for {m(sm)}", f"{S.vs('owe')} {m(sm)}"], [f"{S.n} {S.v('hand')} the cashier {m(big)}", f"{he} {S.v('pay')} with {m(big)}", f"{he} {S.v('give')} {m(big)}", f"{he} {S.v('hand')} over {m(big)}", f"{he} {S.v('put')} {m(big)} on the counter", f"{S.n} {S.v('give')} the seller {m(big)}", f"{he} {S.v('pay')} with a {big} dollar note"]]
        q3 = [f"how much change {do} {he} get", "what is the change", f"how much {do} {he} get back", "what change is due", f"how much money comes back", f"what {do} {he} get back", "how much change is right", "how much change should there be"]
        p.ask(f, q3, ("how much change", "change", f"what {do} {he} get back"))
    p.vary = [("a", ["And with ${x}?", f"What if {he} {S.v('have')} ${{x}}?", "and if it was ${x}?"], lambda: sm + r.randint(2, 60))]
    return dict(a=big, b=sm), lambda p, v: p.op(v["a"], "-", v["b"], "That leaves @.")


def short_of(p):
    """a goal, a whole, and how much is there already"""
    r = p.r
    S = p.subject()
    o, o1 = y(p)
    n = p.have()
    t = n + p.more()
    he, do = S.he, S.does
    has = "have" if S.pl else "has"
    whole = r.choice([(a(r.choice(["book", "novel", "comic"])), "pages", "read"), (a("trip"), "miles", "gone"), (a("puzzle"), "pieces", "placed"), (a("list"), "tasks", "done"), (a("race"), "laps", "run"), (a("song"), "lines", "learned"), (a("wall"), "bricks", "laid"), (a("quilt"), "squares", "sewn"), (a("course"), "lessons", "taken"), (a("test"), "questions", "answered"), (a("hike"), "miles", "walked"), (a("show"), "parts", "watched"), (a("test"), "problems", "solved"), (a("level"), "stars", "found"), (a("fence"), "posts", "painted")])
    k = r.random()
    if k < 0.35:
        i, u, did = whole
        p.what = u
        f = [[f"{i} has {t} {u}", f"there are {t} {u} in {i}", f"{i} is {t} {u} long"], [f"{S.n} {has} {did} {n}", f"{S.n} {has} {did} {n} {u}", f"{S.n} {has} {did} {n} so far", f"{S.n} {has} {did} {n} of them", f"{n} {u} are {did}", f"{n} are already {did}", f"{n} of the {u} are {did}"]]
        qs = [f"how many {u} are left", "how many are left", f"how many {u} {do} {he} have to go", f"how many {u} are still to go", f"how many more {u} are there", f"how many {u} remain", f"how many {u} must {he} still do", f"how many {u} are not {did}", f"how many {u} are missing", f"how many {u} to go", f"how many {u} are still open", f"how many {u} have not been {did}"]
        p.ask(f, qs, SHORT_LEFT + (f"how many {u} to go",))
        p.skel.append("w")
    elif k < 0.7:
        f = [[f"{S.vs('need')} {t} {o}", f"{S.vs('want')} {t} {o}", f"{S.vs('need')} {t} {o} for {r.choice(['the party', 'a cake', 'school', 'the wedding', 'a game', 'the club', 'the trip', 'dinner'])}", f"{t} {o} are needed", f"{S.his if S.he == 'I' else 'the'} goal is {t} {o}"], [f"{he} only {S.v('have')} {n}", f"{he} {S.v('have')} {n}", f"{he} already {S.v('have')} {n}", f"{n} are there", f"{he} {S.v('have')} {n} so far", f"there are only {n}", f"{S.he} {S.v('find')} just {n}"]]
        if r.random() < 0.4:
            f = [[a_ + j + b_ for a_ in f[0] for b_ in f[1] for j in (" but ", " and ", ", but ")]]
        qs = [f"how many more {do} {he} need", f"how many {o} are missing", "how many are missing", f"how many more {o} {do} {he} need", f"how many must {he} still get", f"how many should {he} buy", f"how many {o} {do} {he} still need", f"how many {o} short {S.isv if not S.past else 'was'} {he}" if S.he != "I" else "how many more do I need", f"how many {o} are still needed", f"how many are lacking", f"how many {o} should {he} get", f"how many more {o} must {he} find"]
        p.ask(f, qs, ("how many more", "how many are missing", "how many missing"))
        p.skel.append("n")
    else:
        c = r.choice([("are red", "are not red"), ("wear hats", "don't wear hats"), ("are boiled", "are raw"), ("are boys", "are girls"), ("can swim", "cannot swim"), ("are broken", "are not broken"), ("have a dog", "don't have a dog"), ("are full", "are empty"), ("are ripe", "are not ripe"), ("like tea", "don't like tea"), ("are open", "are closed"), ("are painted", "are not painted"), ("are men", "are women"), ("work", "don't work"), ("are asleep", "are awake"), ("are old", "are new"), ("ride a bike", "don't ride a bike"), ("speak french", "don't speak french"), ("are sold", "are not sold"), ("passed", "failed"), ("are paid", "are not paid"), ("are used", "are free")])
        i = r.choice(WHO2)
        p.what = i
        f = [[f"there are {t} {i}", f"of {t} {i} {n} {c[0]}", f"{n} of {t} {i} {c[0]}", f"{t} {i}, {n} of them {c[0]}", f"out of {t} {i}, {n} {c[0]}", f"of the {t} {i}, {n} {c[0]}", f"there are {t} {i} and {n} {c[0]}", f"{t} {i} and {n} of them {c[0]}", f"of the {t} {i} in my {r.choice(['class', 'town', 'street', 'house', 'team'])}, {n} {c[0]}"][1:]]
        qs = [f"how many {i} {c[1]}", f"how many {c[1]}", f"how many of them {c[1]}", f"how many of the {i} {c[1]}"]
        p.ask(f, qs, qs)
        p.skel.append("r")
    p.vary = [("a", ["And if it is {x}?", "what if there are {x} already?", "and with {x}?"], lambda: r.randint(1, t - 1))]
    return dict(t=t, a=n), lambda p, v: p.op(v["t"], "-", v["a"], "The rest is @.")


def each_more(p):
    """n X with m Y each, and some more (or fewer)"""
    r = p.r
    o, o1 = y(p)
    X, X1 = x(p, o1)
    S = p.subject()
    n, m = r.randint(2, 9), p.size()
    if n * m > 900:
        raise Bad
    w = r.choice([v for v in HAS if v not in ("seat", "fit", "lay", "contain", "include", "feature")])
    ev = r.choice(["each", "every"])
    he, do = S.he, S.does
    up = r.random() < 0.5
    k = p.more() if up else p.less(n * m)
    both = [f"{S.vs(w)} {n} {X} with {m} {o} each", f"{n} {X} have {m} {o} each", f"there are {n} {X} with {m} {o} in each {X1}", f"{ev} {X1} has {m} {o} and there are {n} {X}", f"{S.vs('have')} {n} {X} with {m} {o} in {ev} {X1}", f"{n} {X} hold {m} {o} each", f"{S.vs(w)} {n} {X} of {m} {o}", f"there are {n} {X}, {ev} with {m} {o}"]
    if up:
        where = r.choice(WHERE)
        c = [f"{k} more {o} are {where}", f"{k} more {o} lie {where}", f"{he} also {S.v(w)} {k} single {o}", f"{k} {o} are left over", f"there are {k} extra {o}", f"{he} {S.v('find')} {k} more", f"{k} other {o} are {where}", f"plus {k} {o} {where}", f"another {k} {o} are {where}", f"in addition there are {k} {o}"]
        f = [both, c] if r.random() < 0.6 else [[f"{a_} plus {k} {o} {where}" for a_ in both] + [f"{a_} and {b_}" for a_ in both for b_ in c[:6]]]
        qs = [f"how many {o} are there", f"how many {o} is that", f"how many {o} in all", f"how many {o} are there altogether", f"how many {o} {do} {he} have", f"how many {o} are there in total", f"what is the number of {o}"]
        p.ask(f, qs, SHORT)
    else:
        f = [both, lose(p, S, o, o1, k)]
        p.ask(f, left_words(S, o), SHORT_LEFT)
    p.skel.append("+" if up else "-")
    s = "+" if up else "-"
    p.vary = [("n", [f"And with {{x}} {X}?", f"what if there were {{x}} {X}?", f"and {{x}} {X}?"], lambda: r.randint(2, 9))]
    return dict(n=n, m=m, k=k), lambda p, v: p.op(p.times(v["n"], v["m"], "The " + X + " make @."), s, v["k"], "Together that is @." if up else "That leaves @.")


SCHEMAS = [(each, 30), (flow, 16), (took, 16), (parts, 16), (than, 7), (shared, 18), (bill, 20), (short_of, 14), (each_more, 9)]
