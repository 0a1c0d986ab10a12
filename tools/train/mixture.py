"""Model with mixtures of experts, begun from a trained generator:  mixture.py FROM.gguf TO   (writes ckpt/TO.pt, which train.py goes on from)

Each token takes `used` of `experts` feed-forwards of `ffn` hidden units. The router is float32 and reads the normed rows as they
are, before they are quantised; weights are the softmax over the chosen experts (Mixtral's). Rows are sorted by expert, so that each
expert is three products of its own rows.

An expert begins as hidden units of FROM's feed-forward, drawn anew for every expert (sparse upcycling, Komatsuzaki et al. 2023, in
small experts). Routers begin at random, and experts grow apart in training.

The balance loss (Shazeer et al. 2017, Fedus et al. 2022) only keeps experts alive: its weight is steered, layer by layer, so that the
most popular expert gets between 2.2 and 3.2 times the mean, and the least popular at least a fifth of it.
"""
import sys
from model import *


class Mixture(Model):
    def __init__(s, cfg, seed=0):
        s.E, s.U = cfg["experts"], cfg["used"]
        super().__init__(cfg, seed)
        s.balance = [0.003] * s.L  # weight of the balance loss
        s.popular = torch.full((s.L, s.E), 1 / s.E)  # share of the rows, averaged over some tens of steps

    def init_ffn(s, i, rn):
        s.w[f"{i}.router"] = rn(s.E, s.D, s.D ** -0.5)
        s.w[f"{i}.gu"] = rn(s.E * 2 * s.F, s.D, s.D ** -0.5)
        s.w[f"{i}.d"] = rn(s.E * s.D, s.F, (s.F * s.U) ** -0.5 * s.U / math.sqrt(2 * s.L))

    def ffn_parts(s):
        F, D = s.F, s.D
        return {"gu": [(f"{n}.{e}", (2 * e + k) * F, (2 * e + k + 1) * F) for e in range(s.E) for k, n in enumerate("gu")],
                "d": [(f"d.{e}", e * D, (e + 1) * D) for e in range(s.E)]}

    def nactive(s):
        """parameters that a token reads"""
        return s.nparams() - s.L * (s.E - s.U) * 3 * s.F * s.D

    def ffn_buffers(s, T):
        e, R = torch.empty, T * s.U
        return dict(xg=e(R, s.D, dtype=BF), gu=e(R, 2 * s.F, dtype=BF), q3=e(R, s.F, dtype=BF), s3=e(R), o=e(R, s.D, dtype=BF), hs=torch.ones(T))

    def reserve(s, T, train=True):
        if T > s.cap:
            super().reserve(T, train)
            R, e = s.cap * s.U, lambda *a: torch.empty(*a, dtype=BF)
            s.rowG, s.rowF, s.row2F, s.rowX = e(R, s.D), e(R, s.F), e(R, 2 * s.F), e(R, s.D)

    def route(s, i, x, b, T):
        """normed rows, the router's numbers, the chosen experts and their weights, the best first"""
        hn = x[:T] * b["r2"][:T, None] * s.w[f"{i}.n2"]
        lg = hn @ s.w[f"{i}.router"].t()
        top, ex = lg.topk(s.U, 1)
        return hn, lg, ex, top.softmax(1)

    def ffn(s, i, x, b, T, out):
        D, F, R = s.D, s.F, T * s.U
        hn, lg, ex, wt = s.route(i, x, b, T)
        order = torch.sort(ex.flatten(), stable=True)[1]
        at = torch.empty(R, dtype=torch.int32)
        at[order] = torch.arange(R, dtype=torch.int32)
        of = torch.div(order, s.U, rounding_mode="floor").int()
        n = ex.flatten().bincount(minlength=s.E)
        end = n.cumsum(0).tolist()
        b["rows"] = [(e, z - k, z) for e, (z, k) in enumerate(zip(end, n.tolist())) if k]
        b["route"], b["at"], b["sg"], b["n"] = (hn, lg, ex, wt), at, b["s2"][:T][of.long()], n
        K.k_gather(R, D, p(of), p(b["q2"]), p(b["xg"]))
        gu, d = s.q[f"{i}.gu"].view(s.E, 2 * F, D), s.q[f"{i}.d"].view(s.E, D, F)
        for e, a, z in b["rows"]:
            mm(b["xg"][a:z], gu[e].t(), out=b["gu"][a:z])
        K.k_swiglu(R, F, p(b["gu"]), p(b["sg"]), p(b["q3"]), p(b["s3"]))
        for e, a, z in b["rows"]:
            mm(b["q3"][a:z], d[e].t(), out=b["o"][a:z])
        K.k_combine(T, D, s.U, p(at), p(wt), p(b["s3"]), p(b["o"]), p(out))

    def ffn_back(s, i, x, b, T, g):
        D, F, R, W = s.D, s.F, T * s.U, s.w[f"{i}.router"]
        hn, lg, ex, wt = b["route"]
        dw = torch.empty(T, s.U)
        K.k_combine_bwd(T, D, s.U, p(b["at"]), p(wt), p(b["s3"]), p(b["o"]), p(s.dx), p(s.rowG), p(dw))
        gu, d = s.q[f"{i}.gu"].view(s.E, 2 * F, D), s.q[f"{i}.d"].view(s.E, D, F)
        ggu, gd = g[f"{i}.gu"].view(s.E, 2 * F, D), g[f"{i}.d"].view(s.E, D, F)
        if len(b["rows"]) < s.E:
            ggu.zero_(), gd.zero_()
        for e, a, z in b["rows"]:
            mm(s.rowG[a:z].t(), b["q3"][a:z], out=gd[e])
            mm(s.rowG[a:z], d[e], out=s.rowF[a:z])
        K.k_swiglu_bwd(R, F, p(b["gu"]), p(b["sg"]), p(b["s3"]), p(s.rowF), p(s.row2F))
        for e, a, z in b["rows"]:
            mm(s.row2F[a:z].t(), b["xg"][a:z], out=ggu[e])
            mm(s.row2F[a:z], gu[e], out=s.rowX[a:z])
        K.k_combine(T, D, s.U, p(b["at"]), None, None, p(s.rowX), p(s.hb2))
        # the router: the chosen experts' weights, and the balance loss E * sum of share(e) * mean probability(e)
        P, share = lg.softmax(1), b["n"] / R
        c = share * (s.balance[i] * s.E / T)
        dl = P * (c - (P * c).sum(1, keepdim=True))
        dl.scatter_add_(1, ex, wt * (dw - (wt * dw).sum(1, keepdim=True)))
        g[f"{i}.router"].copy_(dl.t() @ hn)
        s.hb2[:T] += (dl @ W) * b["s2"][:T, None]
        s.popular[i].lerp_(share, 0.03)

    def steer(s):
        """sets the weights of the balance losses"""
        for i, q in enumerate(s.popular * s.E):
            if q.max() > 3.2 or q.min() < 0.2:
                s.balance[i] = min(0.1, s.balance[i] * 1.02)
            elif q.max() < 2.2 and q.min() > 0.3:
                s.balance[i] = max(1e-5, s.balance[i] / 1.02)

    def routes(s):
        """one line about each layer: the most and the least popular expert, in multiples of the mean"""
        return " ".join(f"{q.max():.2f}/{q.min():.2f}@{a:.4f}" for q, a in zip(s.popular * s.E, s.balance))


def spread(q, r):
    """latent weights whose ternary form is q (beta * {-1,0,1}): zeros evenly about 0, the others as far out as their mean must be"""
    beta = q.abs().max()
    one = q != 0
    w = (torch.rand(q.shape, generator=r) - 0.5) * 0.9 * beta
    far = (beta * q.numel() - w[~one].abs().sum()) / one.sum() - beta / 2
    tail = torch.empty(int(one.sum())).exponential_(generator=r)
    w[one] = q[one].sign() * (beta / 2 + far * tail / tail.mean())
    return w


def upcycle(src, seed=1):
    """the mixture that src (matrices by GGUF names, in float32) becomes"""
    m, r = Mixture(CONFIGS["moe"], seed), torch.Generator().manual_seed(seed)
    T = {k: torch.from_numpy(np.array(v)) for k, v in src.items()}
    m.w["emb"].copy_(T["token_embd.weight"])
    m.w["nf"].copy_(T["output_norm.weight"])
    for i in range(m.L):
        t = lambda n: T[f"blk.{i}.{n}.weight"]
        m.w[f"{i}.n1"].copy_(t("attn_norm"))
        m.w[f"{i}.n2"].copy_(t("ffn_norm"))
        m.w[f"{i}.qkv"].copy_(torch.cat([spread(t(n), r) for n in ("attn_q", "attn_k", "attn_v")]))
        m.w[f"{i}.o"].copy_(spread(t("attn_output"), r))
        hidden = t("ffn_gate").shape[0]
        gu, d = m.w[f"{i}.gu"].view(m.E, 2, m.F, m.D), m.w[f"{i}.d"].view(m.E, m.D, m.F)
        for e in range(m.E):
            units = torch.randperm(hidden, generator=r)[:m.F]
            gu[e, 0] = spread(t("ffn_gate")[units], r)
            gu[e, 1] = spread(t("ffn_up")[units], r)
            d[e] = spread(t("ffn_down")[:, units], r) * m.U  # weights of experts add up to 1
    m.requant()
    return m


if __name__ == "__main__":
    from export_gguf import read
    os.makedirs("ckpt", exist_ok=True)
    upcycle(read(sys.argv[1])[1]).save(f"ckpt/{sys.argv[2]}.pt", step=0)
