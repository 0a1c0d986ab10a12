"""Which experts tokens take:  popularity.py NAME   (ckpt/NAME.pt)

Experts are ranked, layer by layer, by their share of the tokens of training conversations. What those ranks are worth elsewhere is
asked of problems that were held out: long stories with their solutions, short questions and conversations with the model's answers."""
import json, os, random, sys
import bpe, data, turns
from gen import *


def shares(m, seqs):
    """[layers][experts]: share of the places, of which each token has `used`"""
    n = torch.zeros(m.L, m.E)

    def counted(i, x, b, T, out):
        type(m).ffn(m, i, x, b, T, out)
        n[i] += b["n"]
    m.ffn = counted
    for c in range(0, len(seqs), 32):
        m.forward(*pack([(x, [0] * len(x)) for x in seqs[c:c + 32]])[:2])
    del m.ffn
    return n / n.sum(1, keepdim=True)


if __name__ == "__main__":
    tk = bpe.Tokenizer("out/tokenizer.json")
    m, r = Model.load(f"ckpt/{sys.argv[1]}.pt"), random.Random("popularity")
    g, limit = Gen(m, tk), int(os.environ.get("LIMIT", 1000))
    lines = lambda path: open(path).read().splitlines()[:limit]

    def answered(path):
        """conversations with the model's own answers"""
        out = []
        for x in lines(path):
            d, ids = json.loads(x), []
            for u in d.get("turns", [d]):
                q = tk.prompt([("user", u["question"])])
                ids += (tk.encode("\n") if ids else []) + q
                ids += g.generate([ids], 1, 0.0)[0][0]
            out.append(ids)
        return out

    sets = {"training": [tk.chat(turns.conversation(r)[0])[0] for _ in range(limit)],
            "test": [tk.prompt([("user", d["question"])]) + tk.encode(data.solution(d)) + [tk.end] for d in map(json.loads, lines("../../models/embedded/test.jsonl"))],
            "everyday": answered("../../models/embedded/everyday.jsonl"), "turns": answered("../../models/embedded/turns.jsonl")}
    of = {k: shares(m, v) for k, v in sets.items()}
    print("| layer | tokens of | most popular, × mean | least | hottest 4 of training cover % | 8 cover % | overlap of 4 | of 8 |\n|---:|---|---:|---:|---:|---:|---:|---:|")
    for i in range(m.L):
        rank = of["training"][i].argsort(descending=True)
        for k, v in of.items():
            q, own = v[i] * m.E, v[i].argsort(descending=True)
            same = lambda n: len(set(rank[:n].tolist()) & set(own[:n].tolist()))
            print(f"| {i} | {k} | {q.max():.2f} | {q.min():.2f} | " + " | ".join(f"{100 * v[i][rank[:n]].sum():.1f}" for n in (4, 8)) + f" | {same(4)}/4 | {same(8)}/8 |")
