"""Runs published implementations of search methods on made-up samples and scores, and writes
what they choose, for TestTheChoiceIsThatOfThePublishedImplementation.

    python3 -m venv v
    v/bin/pip install its_hub==1.2.0 numpy==2.4.6 scipy==1.17.1
    v/bin/pip install --no-deps AdaptiveConsistency==1.0.0 deepconf==0.1.0
    v/bin/python generate.py

its_hub (Red Hat, Apache-2.0): ParticleGibbs with one iteration, which is particle filtering, and
with several.
deepconf (Meta, MIT): DeepThinkLLM's online mode with its own logits processor, above a stub of
vLLM that reads the samples from a list. AdaptiveConsistency (Aggarwal et al.): the Beta
criterion. Nothing of them is kept but the numbers they make.
"""
import asyncio
import importlib
import json
import math
import random
import sys
import types

import numpy as np


def particles():
    import its_hub.core.algorithms.particle_gibbs as module

    runs = []
    for case in range(12):
        rng = random.Random(case)
        n, how = rng.choice([2, 5, 8, 16]), ["multinomial", "systematic"][case % 2]
        steps, taken = [], []

        class Steps:
            max_steps = 99

            async def aforward(self, lm, prompts, so_far, tools=None, tool_choice=None):
                # the slot is part of the step, so that all particles differ
                out = [(f"{i}", rng.random() < 0.3) for i in range(len(prompts))]
                steps.append({"ends": [end for _, end in out]})
                return out

            def _post_process(self, parts, stopped=False):
                return ".".join(parts)

        class Scores:
            async def ascore(self, prompt, responses):
                scores = [round(rng.choice([rng.random(), 0.9 + rng.random() / 10, 0.0, 1.0]), 6) for _ in responses]
                steps[-1]["scores"] = scores
                return scores

        real_choices, real_uniform = random.choices, np.random.uniform

        def choices(population, weights=None, k=1):
            state = random.getstate()
            uniforms = [random.random() for _ in range(k)]
            random.setstate(state)
            drawn = real_choices(population, weights=weights, k=k)
            if k and isinstance(population[0], module.Particle):
                taken.append((uniforms, [next(i for i, p in enumerate(population) if p is d) for d in drawn]))
            return drawn

        def uniform(*a, **kw):
            u = real_uniform(*a, **kw)
            taken.append(([u], None))
            return u

        filtering = module.ParticleGibbs(Steps(), Scores(), num_iterations=1, num_ref_particles=0, resampling_method=how)
        systematic = filtering._resampling_systematic

        def indices(population, probabilities, count):
            drawn = systematic(population, probabilities, count)
            taken[-1] = (taken[-1][0], [next(i for i, p in enumerate(population) if p is d) for d in drawn])
            return drawn

        filtering._resampling_systematic = indices
        random.seed(case)
        np.random.seed(case)
        module.random.choices, module.np.random.uniform = choices, uniform
        try:
            result = asyncio.run(filtering.ainfer(None, "Q", n, return_response_only=False))
        finally:
            module.random.choices, module.np.random.uniform = real_choices, real_uniform
        for step, (uniforms, drawn) in zip(steps, taken, strict=True):
            step["uniforms"], step["drawn"] = uniforms, drawn
        runs.append({"n": n, "resampling": how, "steps": steps, "chosen": result.selected_index, "path": result.the_one["content"]})
    return runs


def gibbs():
    import its_hub.core.algorithms.particle_gibbs as module

    runs = []
    for case in range(6):
        rng = random.Random(200 + case)
        each, iterations, references = rng.choice([3, 4, 6]), rng.choice([2, 3]), rng.choice([1, 2])
        rounds, names = [], 0

        class Steps:
            max_steps = 99

            async def aforward(self, lm, prompts, so_far, tools=None, tool_choice=None):
                nonlocal names
                if not any(so_far) and (not rounds or "references" in rounds[-1]):
                    rounds.append({"steps": []})
                out = []
                for _ in prompts:
                    out.append((f"{names}", rng.random() < 0.35))
                    names += 1
                rounds[-1]["steps"].append({"ends": [end for _, end in out]})
                return out

            def _post_process(self, parts, stopped=False):
                return ".".join(parts)

        class Scores:
            async def ascore(self, prompt, responses):
                scores = [round(rng.uniform(0.2, 0.9), 6) for _ in responses]
                rounds[-1]["steps"][-1]["scores"] = scores
                return scores

        real = random.choices

        def choices(population, weights=None, k=1):
            state = random.getstate()
            uniforms = [random.random() for _ in range(k)]
            random.setstate(state)
            drawn = real(range(len(population)), weights=weights, k=k)
            at = rounds[-1]
            if isinstance(population[0], module.Particle):
                at["steps"][-1].update(uniforms=uniforms, drawn=drawn)
            else:
                at.update(uniforms=uniforms, references=drawn)
            return [population[i] for i in drawn]

        random.seed(case)
        module.random.choices = choices
        try:
            sampler = module.ParticleGibbs(Steps(), Scores(), num_iterations=iterations, num_ref_particles=references)
            result = asyncio.run(sampler.ainfer(None, "Q", each * iterations, return_response_only=False))
        finally:
            module.random.choices = real
        runs.append({"particles": each, "rounds": rounds, "paths": [r["content"] for r in result.responses_lst[-1]], "chosen": result.selected_index})
    return runs


def stub_vllm():
    for name in ["vllm", "vllm.v1", "vllm.v1.sample", "vllm.v1.sample.logits_processor", "vllm.config", "transformers", "torch"]:
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["vllm"].LLM = object
    sys.modules["vllm"].SamplingParams = types.SimpleNamespace
    sys.modules["vllm.config"].VllmConfig = object
    sys.modules["vllm.v1.sample.logits_processor"].AdapterLogitsProcessor = object
    sys.modules["vllm.v1.sample.logits_processor"].RequestLogitsProcessor = object
    sys.modules["transformers"].AutoTokenizer = object
    sys.modules["torch"].Tensor = sys.modules["torch"].device = object


def deepconf():
    stub_vllm()
    wrapper = importlib.import_module("deepconf.wrapper")
    utils = importlib.import_module("deepconf.utils")
    processors = importlib.import_module("deepconf.processors")
    k = 4

    class Processor(processors.ConfPerReqLogitsProcessor):
        """The published one; log-probabilities take the place of logits and of torch's softmax."""

        def compute_conf(self, logprobs):
            return -sum(logprobs) / self.conf_topk

    cases = []
    for case in range(6):
        rng = random.Random(100 + case)
        window, eta, warmup, budget = rng.choice([3, 5]), rng.choice([50, 75, 90]), 4, 12
        samples = []
        for _ in range(budget):
            level = rng.uniform(1, 3)
            length = rng.randint(window - 1, 14)
            tokens = [sorted((round(-rng.uniform(0, 2) * level - 0.01, 3) for _ in range(k)), reverse=True) for _ in range(length)]
            samples.append({"answer": str(rng.randint(1, 5)), "logprobs": tokens})
        position = 0

        class Engine:
            def generate(self, prompts, params):
                nonlocal position
                outputs = []
                for p in params:
                    sample, tokens, text = samples[position], [], ""
                    position += 1
                    extra = getattr(p, "extra_args", None)
                    watch = extra and Processor(extra["conf_threshold"], 0, extra["conf_group_size"], k)
                    ends = len(sample["logprobs"])
                    for i, logprobs in enumerate(sample["logprobs"]):
                        tokens.append(logprobs)
                        if watch:
                            row = FakeRow(logprobs)
                            watch(None, row)
                            if row.forced and ends == len(sample["logprobs"]):
                                ends = i + 1
                                break
                    if ends == len(sample["logprobs"]):
                        text = "\\boxed{%s}" % sample["answer"]
                    if watch:
                        sample["tokens"] = ends
                    listed = [{j: types.SimpleNamespace(logprob=l) for j, l in enumerate(t)} for t in tokens[:ends]]
                    outputs.append(types.SimpleNamespace(outputs=[types.SimpleNamespace(
                        text=text, token_ids=list(range(ends)), logprobs=listed, finish_reason="stop")]))
                return outputs

        class FakeRow(list):
            forced = False

            def __getitem__(self, i):
                return types.SimpleNamespace(item=lambda: 0.0) if i == 0 else list.__getitem__(self, i)

            def __setitem__(self, i, v):
                self.forced = True

        llm = object.__new__(wrapper.DeepThinkLLM)
        llm.model_name, llm.llm, llm.init_times = "m", Engine(), {"llm_init_time": 0, "tokenizer_init_time": 0}
        llm.tokenizer = types.SimpleNamespace(eos_token_id=0)
        out = llm.deepthink("Q", mode="online", warmup_traces=warmup, total_budget=budget, confidence_percentile=eta,
                            window_size=window, sampling_params=types.SimpleNamespace(), compute_multiple_voting=False)
        traces = out.all_voting_traces
        answers = [t["extracted_answer"] for t in traces]
        votes = {"lowest": out.voted_answer}
        for name, weight in [
            ("mean", lambda t: utils.calculate_mean_confidence(t)),
            ("tail", lambda t: utils.calculate_tail_confidence(t, window)),
            ("bottom", lambda t: utils.calculate_bottom_window_confidence(t, window)),
        ]:
            votes[name] = utils.weighted_majority_vote(answers, [weight(t) for t in traces])
        voting = [i for i, t in enumerate(out.all_traces) if any(t is v for v in traces)]
        cases.append({"window": window, "eta": eta, "warmup": warmup, "top_k": k, "samples": samples, "threshold": out.conf_bar,
                      "lowest": [t["min_conf"] for t in out.all_traces], "voters": voting, "votes": votes})
    return cases


def adaptive():
    from adaptive_consistency import BetaStoppingCriteria

    cases = []
    for a, b, c in [(1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 0), (2, 1, 0), (3, 1, 1), (5, 1, 0), (6, 1, 1), (7, 1, 0), (8, 3, 2),
                    (9, 2, 1), (12, 4, 3), (20, 9, 5), (24, 12, 1), (30, 12, 8)]:
        got = BetaStoppingCriteria(0.95).should_stop(["x"] * a + ["y"] * b + ["z"] * c)
        cases.append({"first": a, "second": b, "probability": got["prob"], "stop": bool(got["stop"])})
    return cases


for name, made in [("particles", particles()), ("gibbs", gibbs()), ("deepconf", deepconf()), ("adaptive", adaptive())]:
    with open(f"{name}.json", "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in made) + "\n]\n")
