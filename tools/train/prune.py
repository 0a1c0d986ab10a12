"""A smaller generator from a larger one:  prune.py FROM TO HEADS FFN   (the most used heads and hidden units of each layer; train it on afterwards)"""
import random, sys, torch
import bpe, turns
from model import *
src, dst, H2, F2 = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tk = bpe.Tokenizer("out/tokenizer.json")
m = Model.load(f"ckpt/{src}.pt")
r = random.Random(1)
seqs, n = [], 0
while n < 16000:
    seqs.append(tk.chat(turns.conversation(r)[0])); n += len(seqs[-1][0])
tok, cu, rows, tgt = pack(seqs)
T = len(tok)
m.forward(tok, cu)
k = Model({**m.cfg, "heads": H2, "ffn": F2})
for i in range(m.L):
    z = (m.b[i]["q3"][:T].float() * m.b[i]["s3"][:T, None]).square().mean(0).sqrt()
    imp = z * m.w[f"{i}.d"].norm(dim=0)
    keep = imp.topk(F2).indices.sort().values
    y = (m.b[i]["qo"][:T].float() * m.b[i]["so"][:T, None]).view(T, m.H, 32)
    use = torch.stack([(y[:, h] @ m.q[f"{i}.o"][:, 32 * h:32 * h + 32].float().t()).square().sum(1).mean().sqrt() for h in range(m.H)])
    heads = use.topk(H2).indices.sort().values
    cols = (32 * heads[:, None] + torch.arange(32)).flatten()
    k.w[f"{i}.qkv"].copy_(torch.cat([m.w[f"{i}.qkv"][cols], m.w[f"{i}.qkv"][m.A:]]))
    k.w[f"{i}.o"].copy_(m.w[f"{i}.o"][:, cols])
    print(i, "kept of units %.2f, of heads %.2f" % (imp[keep].sum() / imp.sum(), use[heads].sum() / use.sum()))
    k.w[f"{i}.gu"].copy_(torch.cat([m.w[f"{i}.gu"][keep], m.w[f"{i}.gu"][m.F + keep]]))
    k.w[f"{i}.d"].copy_(m.w[f"{i}.d"][:, keep])
for n in m.w:
    if not n.endswith((".gu", ".d", ".qkv", ".o")):
        k.w[n].copy_(m.w[n])
k.requant()
print("loss before", m.lm_loss(tok, cu, rows, tgt, torch.ones(len(rows)))[0], "after", k.lm_loss(tok, cu, rows, tgt, torch.ones(len(rows)))[0])
k.save(f"ckpt/{dst}.pt", step=0)
