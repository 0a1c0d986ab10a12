"""Words of the everyday questions: people, things, and how they are written."""

NAMES_M = ("Tom Ben Sam Max Leo Jack Adam Paul Omar Luke Noah Liam Ryan Eric Ivan Hugo Carl Finn Owen Alan Dan Kevin "
           "Peter David James Henry Oscar Felix Victor Simon Marco Ali Raj Chen Diego Kofi Yuki Lars Theo Nick Bob John "
           "Mike Alex Tim Jim Joe Fred Greg Aaron Mark Steve Brian Frank George Harry Ian Keith Matt Neil Pete Phil Rob Roy Ted "
           "Tony Will Zach Andy Arthur Bill Charlie Chris Colin Dennis Eddie Gary Jeff Jerry Larry Louis Martin Patrick Ralph Scott "
           "Stan Toby Wes Ahmed Boris Enzo Jorge Kenji Mateo Nils Pablo Sven Tariq Wei Yusuf").split()
NAMES_F = ("Mia Anna Lily Emma Sara Lucy Nina Zoe Eva Amy Ruth Jane Kate Rosa Ella Ivy Ada Lena Olga Tara Maya Nora Iris "
           "Julia Laura Alice Clara Hanna Sofia Maria Grace Chloe Diana Elena Fatima Aisha Mei Priya Ines Greta Mary "
           "Linda Susan Kim Jill Beth Rachel Carol Wendy Tina Ann Barbara Betty Cathy Daisy Donna Ellen Erin Fiona Gina Heidi "
           "Helen Holly Jenny Jessica Joan Karen Katie Lisa Megan Molly Nancy Natalie Olivia Paula Penny Rita Rose Sally Sandra Sue "
           "Tracy Vera Amira Bianca Carmen Dalia Freya Ingrid Jana Keiko Leila Noor Petra Sonja Yara Zara").split()
SYLLABLES = "ba be bo da de do fa fi ga go ja jo ka ke ki ko la le li lo ma me mi mo na ne ni no pa pe po ra re ri ro sa se so ta te ti to va vi wa yo za zo".split()

FOOD = ("apple pear orange lemon plum peach banana mango melon grape cherry strawberry cookie candy muffin cupcake egg nut tomato carrot potato onion "
        "sandwich pizza donut pancake bagel pretzel cracker waffle taco burger sausage biscuit brownie chocolate sweet lollipop cake pie "
        "tart roll bun olive radish cucumber pepper").split()
THING = ("marble sticker stamp coin card bead shell button pencil pen crayon book toy balloon block rock flower rose bottle cup plate ticket photo "
         "postcard ribbon candle seed brick nail magnet badge key letter ball doll puzzle comic marker eraser ruler notebook folder spoon fork "
         "knife bowl glass mug towel pillow blanket shirt sock hat glove scarf battery bulb screw bolt tool hammer rope stick leaf stone feather "
         "ring bracelet medal poster magazine newspaper envelope bag box basket chair lamp clock mirror picture disc game robot kite drum whistle "
         "lego brush plant tree bush tulip bucket pot tile board wheel tire bike wagon").split()
ANIMAL = "dog cat bird duck chicken cow sheep goat pig horse rabbit fish frog bee ant butterfly pigeon sparrow hen goose turtle hamster mouse lamb spider snail".split()
PEOPLE = "student child kid boy girl player guest visitor passenger worker teacher friend person customer fan".split()
IRREGULAR = {"child": "children", "person": "people", "sheep": "sheep", "fish": "fish", "goose": "geese", "mouse": "mice", "knife": "knives", "leaf": "leaves",
             "potato": "potatoes", "tomato": "tomatoes", "mango": "mangoes", "shelf": "shelves", "loaf": "loaves"}
BOXES = "box bag pack basket jar tray crate carton packet case bucket bowl drawer shelf pocket sack tin bundle container chest pile".split()
PRICED = ("ticket pen book notebook shirt hat toy cake lamp bag ball game plant mug pizza belt chair ruler brush sandwich coffee burger cookie "
          "ice cream,apple,melon,candle,poster,movie,shoe,jacket,magazine,bottle of water,cup of tea,pair of socks,loaf of bread,bunch of flowers,kilo of rice,bus ride,lesson,haircut,"
          "donut,toy car,comic,stamp,lemonade,juice,sticker,bracelet,puzzle,plate,glass,light bulb,tomato plant").replace(" ice cream", ",ice cream")
PRICED = [w for part in PRICED.split(",") for w in (part.split() if part.startswith("ticket") else [part])]
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
         "nineteen twenty").split()
MANY = {2: "twice", 3: "three times", 4: "four times", 5: "five times", 6: "six times"}


def plural(w):
    """the plural of a noun; of "cup of tea" that of its first word"""
    if " of " in w:
        a, b = w.split(" of ")
        return plural(a) + " of " + b
    if w in IRREGULAR:
        return IRREGULAR[w]
    if w.endswith("y") and w[-2] not in "aeiou":
        return w[:-1] + "ies"
    if w.endswith(("s", "x", "ch", "sh", "z")):
        return w + "es"
    return w + "s"


def third(v):
    """a verb's third person: buy -> buys, "pick up" -> "picks up" """
    a, _, b = v.partition(" ")
    if a == "have":
        a = "has"
    elif a == "do":
        a = "does"
    elif a == "go":
        a = "goes"
    elif a.endswith("y") and a[-2] not in "aeiou":
        a = a[:-1] + "ies"
    elif a.endswith(("s", "x", "ch", "sh", "z")):
        a += "es"
    else:
        a += "s"
    return a + (" " + b if b else "")


def a(w):
    return ("an " if w[0] in "aeiou" else "a ") + w


PAST = dict(buy="bought", have="had", get="got", find="found", win="won", give="gave", take="took", bring="brought", sell="sold", lose="lost", eat="ate", drink="drank", see="saw", make="made", put="put", spend="spent", pay="paid", keep="kept", read="read", write="wrote",
            run="ran", ride="rode", drive="drove", swim="swam", catch="caught", draw="drew", grow="grew", throw="threw", break_="broke", do="did", go="went", come="came", leave="left", fly="flew", fall="fell", sit="sat", stand="stood", hold="held", build="built",
            send="sent", lend="lent", cut="cut", think="thought", teach="taught", feed="fed", sleep="slept", steal="stole", begin="began", wear="wore", hide="hid", sing="sang", know="knew", lay="laid", say="said", meet="met", own="owned", want="wanted", dig="dug", fill="filled",
            shoot="shot", hear="heard", tear="tore", burn="burnt", set="set", hit="hit", weigh="weighed", split="split", hand="handed", sew="sewed", blow="blew", shake="shook", sink="sank", melt="melted", freeze="froze", cost="cost", choose="chose", forget="forgot", speak="spoke",
            become="became", rise="rose", spill="spilled", drop="dropped", pop="popped", hop="hopped", stop="stopped", chop="chopped", plan="planned", jog="jogged", grab="grabbed", pin="pinned", wrap="wrapped", knit="knitted", rot="rotted", swap="swapped", trip="tripped", rip="ripped", slip="slipped", tip="tipped", step="stepped", trap="trapped", skip="skipped", admit="admitted", order="ordered", open="opened")
PAST["break"] = PAST.pop("break_")


def past(v):
    a, _, b = v.partition(" ")
    if a in PAST:
        a = PAST[a]
    elif a.endswith("e"):
        a += "d"
    elif a.endswith("y") and a[-2] not in "aeiou":
        a = a[:-1] + "ied"
    else:
        a += "ed"
    return a + (" " + b if b else "")
