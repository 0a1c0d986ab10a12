"""Finds the questions of a test set that a search wins:  shows.py URL TEST.jsonl [SEEDS]

A question is listed when the likeliest single answer is wrong and a beam search of 16 finds the right one with every seed;
best of 8 and a vote of 8 are counted beside it. URL is a running server's, its default model is asked."""
import json, re, sys, urllib.request


def ask(url, question, **fields):
    body = json.dumps({"messages": [{"role": "user", "content": question}], **fields}).encode()
    with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", body, {"Content-Type": "application/json"})) as r:
        m = re.search(r"Answer: (\d+)\.?$", json.load(r)["choices"][0]["message"]["content"])
    return m and int(m[1])


def main(url, test, seeds=20):
    for line in open(test):
        d = json.loads(line)
        q, right = d["question"], d["answer"]
        if ask(url, q, temperature=0, test_time_scaling={"method": "none"}) == right:
            continue
        won = lambda s: sum(ask(url, q, seed=i, test_time_scaling=s) == right for i in range(seeds))
        beam = won({"method": "beam_search", "n": 16, "width": 4})
        if beam == seeds:
            print(f'{d["level"]} steps, best of 8 {won({"method": "best_of_n", "n": 8})}/{seeds}, vote of 8 {won({"method": "self_consistency", "n": 8})}/{seeds}: {q} {right}', flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
