import random, sys, torch
import bpe, turns
from model import *
src, dst, F2 = sys.argv[1], sys.argv[2], int(sys.argv[3])
tk = bpe.Tokenizer("out/tokenizer.json")
m = Model.load(f"ckpt/{src}.pt")
r = random.Random(1)
seqs, n = [], 0
while n < 16000:
    seqs.append(tk.chat(turns.conversation(r)[0])); n += len(seqs[-1][0])
tok, cu, rows, tgt = pack(seqs)
T = len(tok)
m.forward(tok, cu)
k = Model({**m.cfg, "ffn": F2})
for i in range(m.L):
    z = (m.b[i]["q3"][:T].float() * m.b[i]["s3"][:T, None]).square().mean(0).sqrt()
    imp = z * m.w[f"{i}.d"].norm(dim=0)
    keep = imp.topk(F2).indices.sort().values
    print(i, "kept share of importance", (imp[keep].sum() / imp.sum()).item())
    k.w[f"{i}.gu"].copy_(torch.cat([m.w[f"{i}.gu"][keep], m.w[f"{i}.gu"][m.F + keep]]))
    k.w[f"{i}.d"].copy_(m.w[f"{i}.d"][:, keep])
for n in m.w:
    if not n.endswith((".gu", ".d")):
        k.w[n].copy_(m.w[n])
k.requant()
print("loss before", m.lm_loss(tok, cu, rows, tgt, torch.ones(len(rows)))[0], "after", k.lm_loss(tok, cu, rows, tgt, torch.ones(len(rows)))[0])
k.save(f"ckpt/{dst}.pt", step=0)
