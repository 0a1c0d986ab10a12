"""How things come and go: wordings of gaining and of losing a number of them, and of asking for the rest."""
from words import *

LOSE = ("give away,sell,lose,use,throw away,use up,donate,hand out,share,mail,return,give back,trade away,burn,hide,forget,leave behind,swap,recycle,drop,throw out,sell off,pass on,remove,take out,cross out,put aside,send off,deliver,hand over,spend,part with,bury,cut up,waste,"
        "get rid of,let go of,misplace,tip over,smash,toss,set aside,feed to the dog,gift,give to charity,sell at the market,leave at school,leave on the bus").split(",")
LOSE_FOOD = "eat,cook,finish,eat up,serve,fry,swallow,munch,chew,burn,gobble up,taste,feed to the birds,share with friends,have for lunch,eat for breakfast".split(",")
LOSE_THING = "break,drop,damage,crack,tear,ruin,scratch,rip,step on,sit on,wear out".split(",")
GONE = [("are gone", "were gone"), ("disappear", "disappeared"), ("get lost", "got lost"), ("are stolen", "were stolen"), ("are sold", "were sold"), ("are taken away", "were taken away"), ("are missing", "were missing"), ("are used", "were used"), ("fall off the table", "fell off the table"), ("vanish", "vanished"), ("are taken", "were taken"),
        ("are given away", "were given away"), ("roll away", "rolled away"), ("are thrown out", "were thrown out"), ("are removed", "were removed"), ("fall down", "fell down"), ("are no good", "were no good"), ("blow away", "blew away")]
GONE_FOOD = [("are eaten", "were eaten"), ("go bad", "went bad"), ("are rotten", "were rotten"), ("are burnt", "were burnt"), ("get eaten", "got eaten"), ("rot", "rotted"), ("are spoiled", "were spoiled")]
GONE_THING = [("break", "broke"), ("are broken", "were broken"), ("get broken", "got broken"), ("crack", "cracked"), ("are damaged", "were damaged"), ("get wet", "got wet"), ("stop working", "stopped working")]
GAIN = ("get,buy,find,receive,pick up,win,collect,earn,make,gather,add,borrow,bring home,order,pick,discover,dig up,grab,acquire,take home,catch,get as a present,fetch,trade for,draw,print,knit,produce,buy at the market,find in the attic,win at the fair").split(",")
GIVERS = "my friend,a friend,his friend,her friend,grandma,the teacher,mom,dad,a neighbor,my aunt,the neighbor,a stranger,santa,the boss,a classmate,an uncle".split(",")
LAST = ("to", "for", "at", "on", "with", "as", "in")  # words that begin what stands after the number: "sell 5 at the market"


def lose(p, S, o, o1, k):
    r = p.r
    he = S.he
    t, _ = p.name()
    gone = GONE + (GONE_FOOD * 2 if o1 in FOOD else GONE_THING * 2)
    verbs = LOSE + (LOSE_FOOD * 2 if o1 in FOOD else LOSE_THING * 2)
    tail = lambda: r.choice(["", "", f" {o}", " of them", f" of the {o}", f" of {S.his} {o}"])
    g = lambda pair: pair[S.past]
    take = "took" if S.past else "takes"
    out = []
    for w in r.sample(verbs, 8):
        a_, _, b_ = w.partition(" ")
        out.append(f"{he} {S.v(a_)} {k}{tail()} {b_}" if b_ and b_.split()[0] in LAST else f"{he} {S.v(w)} {k}{tail()}")
    out += [f"{k} {g(r.choice(gone))}", f"{k} of them {g(r.choice(gone))}", f"{k} {o} {g(r.choice(gone))}", f"then {k} {g(r.choice(gone))}", f"{k} of the {o} {g(r.choice(gone))}"]
    giver = r.choice(GIVERS)
    return out + [f"{he} {S.v('give')} {k} to {t}", f"{t} {take} {k}", f"{t} {take} {k} of them", f"{he} {S.v('give')} {t} {k}", f"{he} {S.v('give')} {t} {k} {o}", f"{he} {S.v('give')} {k} to {giver}", f"{he} {S.v('sell')} {k} to {t}", f"{he} {S.v('lend')} {t} {k}", f"{he} {S.v('hand')} {k} to {giver}",
                  f"{giver} {take} {k} away", f"{he} {S.v('pass')} {k} to {t}", f"{he} {S.v('send')} {k} to {giver}", f"then {he} {S.v('lose')} {k}", f"{he} {S.v('give')} {giver} {k}"]


def gain(p, S, o, o1, k):
    r = p.r
    he, him = S.he, S.him
    t, _ = p.name()
    give, bring, add = ("gave", "brought", "added") if S.past else ("gives", "brings", "adds")
    verbs = GAIN + (["bake", "cook", "grow"] * 2 if o1 in FOOD else ["build", "paint", "craft"])
    tail = lambda: r.choice([" more", f" more {o}", f" {o} more", " new ones", f" other {o}", " more of them", " more later"])
    out = []
    for w in r.sample(verbs, 8):
        a_, _, b_ = w.partition(" ")
        out.append(f"{he} {S.v(a_)} {k}{tail()} {b_}" if b_ and b_.split()[0] in LAST else f"{he} {S.v(w)} {k}{tail()}")
    giver = r.choice(GIVERS)
    return out + [f"{t} {give} {him} {k} more", f"{t} {give} {him} {k} {o}", f"{t} {give} {him} {k}", f"{t} {bring} {k} more", f"{he} {S.v('get')} {k} from {t}", f"{he} {S.v('get')} {k} more from {t}", f"{giver} {give} {him} {k} more", f"{giver} {give} {him} {k}", f"{he} {S.v('get')} {k} more from {giver}", f"{he} {S.v('get')} another {k}",
                  f"{he} {S.v('buy')} another {k} {o}", f"{t} {add} {k}", f"{k} more " + ("came" if S.past else "come"), f"{k} more " + ("were added" if S.past else "are added"), f"{he} {S.v('add')} {k}", f"then {he} {S.v('buy')} {k} more", f"{k} {o} were added" if S.past else f"{k} {o} are added", f"{he} {S.v('find')} {k}"]


def left_words(S, o):
    """questions for what is left"""
    he, do = S.he, S.does
    return [f"how many {o} are left", f"how many {o} {do} {he} have left", "how many are left", "how many remain", f"how many {o} remain", f"how many {o} {do} {he} still have", f"how many {o} {do} {he} have now", "how many are there now", f"how many {do} {he} have left", "what is left", f"how many {o} are still there",
            f"how many {o} {do} {he} keep", f"how many {o} are left over", f"how many {o} stay with {S.him}", f"how many {o} were left" if S.past else f"how many {o} stay", f"how many {do} {he} keep", f"how many {o} are there still", f"what number of {o} is left", f"how many {o} is {he} left with" if not S.pl and not S.past else "how many were left"]
