"""Small talk, what is too hard, and small changes that people make to a question."""
import random

ABOUT = "I only solve short arithmetic stories."
GREET = ["hello", "hi", "hey", "hello there", "hi there", "good morning", "good evening", "good afternoon", "greetings", "hey there", "hello!", "hi!", "howdy", "yo", "hiya",
         "Hello, world", "hello world", "hello model", "hi bot", "hello bot", "hey bot", "hi friend", "dear model", "hello lutra", "hi lutra"]
WHO = ["who are you", "what are you", "what is your name", "who made you", "who is this", "are you a robot", "are you an AI", "are you chatgpt", "are you human", "are you gpt",
       "tell me about yourself", "introduce yourself", "what model are you", "which model is this", "what is lutra", "what's your name", "who am I talking to", "describe yourself", "what kind of model are you"]
CAN = ["what can you do", "help", "help me", "how can you help me", "what do you know", "how do I use you", "what should I ask", "what are you good at", "can you help me", "give me an example",
       "what questions can I ask", "how does this work", "what is this", "test", "ping", "testing", "are you there", "is this working", "ok", "start", "show me what you can do"]
THX = ["thanks", "thank you", "thank you very much", "great", "nice", "cool", "well done", "good job", "awesome", "perfect", "that is right", "thanks a lot", "good bot", "wow"]
BYE = ["bye", "goodbye", "see you", "good night", "see you later", "bye bye", "exit", "quit", "stop"]
HOW = ["how are you", "how are you doing", "how is it going", "how are you today", "what's up", "are you ok", "how do you feel", "how was your day"]
OFF_V = ["write", "tell me", "explain", "give me", "describe", "make", "show me", "create", "find", "translate", "summarize", "list", "draft", "generate", "sing", "compose", "recommend"]
OFF_O = ["a poem", "a story", "a joke", "an essay", "a song", "a recipe", "a letter", "some code", "a python function", "the news", "the weather", "a haiku", "a list of ideas", "a plan", "a fun fact",
         "a fairy tale", "a limerick", "an email", "a go program", "a short text", "a book review", "the history of rome", "quantum physics", "machine learning", "the rules of chess", "a good movie", "the best phone"]
OFF_T = ["", " about love", " about cats", " about the sea", " for my friend", " about spring", " in french", " about dragons", " in english", " for children", " about computers", " about a dog", " please", " today", " about the moon"]
OFF_Q = ["what is the capital of {}", "who is the president of {}", "where is {}", "what is {}", "why is {} so big", "how old is {}", "tell me about {}", "when was {} founded", "is {} nice", "what do you think about {}",
         "how do I get to {}", "what language is spoken in {}", "who invented {}", "what does {} mean", "what color is {}", "can you explain {}", "do you like {}", "how does {} work", "what is the meaning of {}", "define {}"]
OFF_X = ["france", "germany", "japan", "life", "love", "the moon", "the sun", "a computer", "the internet", "paris", "london", "music", "water", "history", "python", "linux", "gravity", "a cat", "the sky", "time", "space",
         "china", "brazil", "football", "an elephant", "chemistry", "art", "happiness", "the ocean", "spain", "italy", "canada", "a transformer", "best of n", "beam search", "a gpu", "rust", "go", "the universe", "god"]
R_GREET = ["Hello! I am Lutra's tiny built-in model. " + ABOUT + " Ask me one!", "Hi! I am the small demo model inside Lutra. " + ABOUT]
R_WHO = ["I am Lutra's tiny built-in model, with only a few million ternary weights. " + ABOUT, "I am the small demo model inside the Lutra server. " + ABOUT]
R_CAN = [ABOUT + " For example: Tom has 12 apples and buys 5 more. How many apples does he have?", "I can do small sums step by step. Try: Mia has 30 cards and gives 12 away. How many are left?"]
R_THX = ["You are welcome! Do you have another arithmetic story?", "Glad to help! Ask me another one."]
R_BYE = ["Goodbye! Come back with an arithmetic story.", "See you! Thank you for trying Lutra."]
R_HOW = ["I am fine, thank you! " + ABOUT, "All good here! Give me an arithmetic story to solve."]
R_OFF = ["Sorry, I am a tiny model and cannot do that. " + ABOUT, "I am sorry, that is too much for me. " + ABOUT]


def chat(r):
    k = r.random()
    pick = lambda q, a: (r.choice(q), r.choice(a))
    if k < 0.2:
        q, a = pick(GREET, R_GREET)
        if r.random() < 0.15:
            q += ", " + r.choice(HOW + WHO)
    elif k < 0.34:
        q, a = pick(WHO, R_WHO)
        if r.random() < 0.2:
            q = r.choice(GREET[:8]) + ", " + q
    elif k < 0.46:
        q, a = pick(CAN, R_CAN)
    elif k < 0.52:
        q, a = pick(THX, R_THX)
    elif k < 0.57:
        q, a = pick(BYE, R_BYE)
    elif k < 0.63:
        q, a = pick(HOW, R_HOW)
    elif k < 0.78:
        q, a = r.choice(OFF_V) + " " + r.choice(OFF_O) + r.choice(OFF_T), r.choice(R_OFF)
        if r.random() < 0.2:
            q = r.choice(["can you ", "could you ", "please ", "I want you to "]) + q
    elif k < 0.95:
        x = r.choice(OFF_X) if r.random() < 0.8 else "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(3, 9)))
        q, a = r.choice(OFF_Q).format(x), r.choice(R_OFF)
    else:
        q = " ".join("".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(2, 8))) for _ in range(r.randint(1, 5)))
        a = r.choice(R_OFF)
    if r.random() < 0.6:
        q = q[0].upper() + q[1:]
    if q[-1].isalnum() and r.random() < 0.6:
        q += "?" if q.split()[0].lower() in ("what", "who", "how", "why", "where", "when", "is", "are", "can", "could", "do", "which") else r.choice([".", "!", "", ""])
    return q, a


SYSTEM = ["You are a helpful assistant.", "You are a helpful assistant", "You are a math tutor.", "Solve the problem step by step.", "You are Lutra.", "Answer the question.", "Be brief.", "You are a careful solver of word problems.",
          "Think step by step and finish with the answer.", "You are a friendly bot. Answer in English.", "Solve the following math problem efficiently and clearly.", "You solve arithmetic problems. Write one step per line.",
          "You are an AI assistant that helps people.", "Please reason step by step, and put your final answer on the last line."]
PRE = ["Question: ", "Solve this: ", "Please solve: ", "Problem: ", "Q: ", "Here is a problem. "]
POST = [" Think step by step.", " Let's think step by step.", " Please solve it.", "\nAnswer step by step.", " Show your work.", "\nSolve step by step."]


def dress(r, q):
    """Small changes a real user might make to a question."""
    k = r.random()
    if k < 0.04:
        q = r.choice(PRE) + q
    elif k < 0.10:
        q = q + r.choice(POST)
    elif k < 0.12:
        q = q.lower()
    elif k < 0.13:
        q = q.rstrip("?.")
    return q


R_HARD = ["Sorry, that is too hard for me. I only know whole numbers up to 999.", "I am sorry, I cannot do that: I only add, subtract, multiply and divide whole numbers up to 999."]


def hard(r):
    """sums that are beyond the model: percents, decimals, large numbers ..."""
    n, m, k = r.randint(2, 99), r.randint(2, 999), r.randint(2, 30)
    pc = r.choice(["%", "%", " percent", " %"])
    big = lambda: str(r.randint(1000, 10 ** r.randint(4, 8)))
    dec = lambda: f"{r.randint(0, 99)}.{r.randint(1, 99)}"
    o = r.choice(["+", "-", "*", "/", " + ", " - ", " * ", " plus ", " times ", " minus ", " divided by "])
    it = r.choice(["shirt", "bike", "book", "phone", "bill", "meal", "ticket", "lamp"])
    q = r.choice([f"what's {n}{pc} of {m}", f"what is {n}{pc} of {m}", f"{n}{pc} of {m}", f"how much is {n}{pc} of {m}", f"calculate {n}{pc} of {m}", f"a {it} costs ${m} and is {n}{pc} off. how much is it", f"a {it} costs {m} dollars. how much is it with a {n}{pc} discount", f"what is {n}{pc} of ${m}",
                  f"how much is a {n}{pc} tip on ${m}", f"add {n}{pc} tax to ${m}", f"the {it} costs ${m} plus {n}{pc} tax, what do I pay", f"a {it} is {m} dollars, the price rises by {n}{pc}", f"what is the square root of {m}", f"square root of {n}", f"sqrt({m})", f"what is {k} squared", f"{k}^{r.randint(2, 5)}", f"{k} to the power of {r.randint(2, 5)}",
                  f"{dec()}{o}{dec()}", f"what is {dec()}{o}{n}", f"how much is {dec()} times {k}", f"{k} apples cost ${dec()} each. how much is that", f"{big()}{o}{big()}", f"what is {big()}{o}{big()}", f"what is {big()}{o}{n}", f"{big()}{o}{m}", f"solve x + {k} = {m}", f"solve {k}x = {m}", f"what is x if {k}x + {n} = {m}", f"x - {k} = {n}, what is x",
                  f"what is {r.randint(1, 9)}/{r.randint(2, 9)} + {r.randint(1, 9)}/{r.randint(2, 9)}", f"what is the average of {k}, {n} and {m}", f"is {m} a prime number", f"is {n} prime", f"what is {k}!", f"factorial of {k}", f"what is pi", "what is the derivative of x^2", f"sin({n})", f"log {m}", f"convert {n} km to miles", f"what is {n} celsius in fahrenheit",
                  f"a town has {big()} people and {big()} more come. how many are there", f"a house costs ${big()} and a car ${big()}. how much is that", f"what is {n} mod {k}", f"integrate x^{k}", f"a company earns {big()} dollars a day. how much in {k} days", f"round {dec()}"])
    if r.random() < 0.4:
        q = q[0].upper() + q[1:]
    if r.random() < 0.6:
        q += "?" if not q.startswith(("solve", "calc", "add", "round", "conv")) else "."
    return q, r.choice(R_HARD)
