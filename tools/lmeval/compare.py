#!/usr/bin/env python3
"""Holds lm-eval's scores of a Lutra server against `lutra-lab logits`.

    pip install "lm-eval[api]"
    lutra serve --model lutra-tiny-l &
    python3 tools/lmeval/compare.py --lutra ./lutra-lab --model lutra-tiny-l

lm-eval (local-completions) runs the three tasks beside this file, which ask
for log-likelihoods of answers, for the likeliest of several answers, and for
those of whole texts. Each of its requests is then scored again from the logits
that `lutra-lab logits` writes for the same tokens, without a server. The exit
status is 1 where two scores differ by more than --tolerance nats.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TASKS = ["lutra_loglikelihood", "lutra_choice", "lutra_rolling"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--url", default="http://127.0.0.1:8080", help="the server")
    p.add_argument("--lutra", default="lutra-lab", help="the program that writes logits")
    p.add_argument("--model", default="lutra-tiny-l", help="embedded model or GGUF file that the server has as its first")
    p.add_argument("--name", default="default", help="the model's name in the API")
    p.add_argument("--tolerance", type=float, default=1e-3, help="nats")
    p.add_argument("--markdown", action="store_true", help="print the table that docs/evaluation.md shows some rows of")
    return p.parse_args()


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def harness(args, **options):
    """lm-eval's samples of all tasks."""
    import lm_eval
    from lm_eval.models.openai_completions import LocalCompletionsAPI
    from lm_eval.tasks import TaskManager

    model = LocalCompletionsAPI(model=args.name, base_url=args.url + "/v1/completions", max_length=512, **options)
    result = lm_eval.simple_evaluate(model, tasks=TASKS, bootstrap_iters=0, log_samples=True,
                                     task_manager=TaskManager(include_path=str(HERE), include_defaults=False))
    return result["samples"]


class Logits:
    """Log-likelihoods from `lutra-lab logits`."""

    def __init__(self, args):
        self.args = args
        with urllib.request.urlopen(args.url + "/tokenizer_info") as answer:
            info = json.load(answer)
        self.prefix = self.tokens(info["bos_token"] or info["eos_token"])

    def tokens(self, text):
        return post(self.args.url + "/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]

    def score(self, context, continuation):
        """Sum of the continuation's log-probabilities, and whether each token was the likeliest."""
        import numpy

        # As lm-eval divides them: spaces at the context's end belong to the continuation.
        spaces = len(context) - len(context.rstrip())
        if spaces:
            context, continuation = context[:-spaces], context[-spaces:] + continuation
        head = self.tokens(context) if context else self.prefix
        ids = self.tokens(context + continuation) if context else self.prefix + self.tokens(continuation)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "logits.npy")
            subprocess.run([self.args.lutra, "logits", "--model", self.args.model, "--tokens", "-", "--out", file],
                           input=" ".join(map(str, ids)), text=True, check=True, stdout=subprocess.DEVNULL)
            rows = numpy.load(file).astype("float64")
        total, greedy = 0.0, True
        for at in range(len(head), len(ids)):
            row = rows[at - 1]
            top = row.max()
            total += row[ids[at]] - top - numpy.log(numpy.exp(row - top).sum())
            greedy = greedy and row[ids[at]] == top
        return total, bool(greedy)


def main():
    args = arguments()
    os.chdir(HERE)  # the tasks name their data relative to it
    os.environ.setdefault("HF_HOME", tempfile.mkdtemp())
    os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
    runs = {
        "one at a time": harness(args),
        "batches of 4, 2 at once": harness(args, batch_size=4, num_concurrent=2),
        "as text": harness(args, tokenized_requests=False),
    }
    logits, worst, lines = Logits(args), 0.0, []
    for task in TASKS:
        for i, sample in enumerate(runs["one at a time"][task]):
            for k, asked in enumerate(sample["arguments"]):
                context, continuation = asked if len(asked) == 2 else ("", asked[0])
                want, greedy = logits.score(context, continuation)
                got = {}
                for name, samples in runs.items():
                    answer = samples[task][i]["resps"][k][0]
                    got[name] = answer[0] if isinstance(answer, (list, tuple)) else answer
                    if isinstance(answer, (list, tuple)) and bool(answer[1]) != greedy:
                        sys.exit(f"{task} {i}.{k}, {name}: greedy {answer[1]}, by the logits {greedy}")
                    worst = max(worst, abs(float(got[name]) - want))
                lines.append((task, f"{i}.{k}", continuation, float(got["one at a time"]), want))
    for task, item, text, got, want in lines:
        if args.markdown:
            print(f"| `{task}` | {item} | `{json.dumps(text)}` | {got:.4f} | {want:.4f} |")
        else:
            print(f"{task:20} {item:4} lm-eval {got:10.4f}  logits {want:10.4f}  {json.dumps(text)}")
    print(f"{len(lines)} scores, each asked for in {len(runs)} ways; the largest difference is {worst:.1e} nats")
    if worst > args.tolerance:
        sys.exit("the scores differ")


if __name__ == "__main__":
    main()
