"""Renders conversations with Jinja2 as the package transformers sets it up.

Reads {"source", "bos_token", "eos_token", "now", "conversations"} as JSON and writes a
list with a {"text"} or an {"error"} for each conversation. What clients of an HTTP API
write in several ways is brought into the one that templates were made for.
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        parser.stream.skip(1)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def plain(messages):
    """Texts for lists of parts, objects for arguments, roles that templates know."""
    out = []
    for m in messages:
        m = dict(m)
        if isinstance(m.get("content"), list):
            m["content"] = "".join(p["text"] for p in m["content"])
        m.setdefault("content", None)
        if m["role"] == "developer":
            m["role"] = "system"
        if m.get("tool_calls"):
            m["content"] = m["content"] or None
            calls = []
            for c in m["tool_calls"]:
                f = dict(c["function"])
                if isinstance(f["arguments"], str):
                    f["arguments"] = json.loads(f["arguments"])
                calls.append({**c, "function": f})
            m["tool_calls"] = calls
        elif m["content"] is None:
            m["content"] = ""
        out.append(m)
    return out


def in_order(messages):
    """Results of tools stand in the order of their calls."""
    out, order = [], {}
    for m in messages:
        if m["role"] == "tool":
            at = len(out)
            while out[at - 1]["role"] == "tool" and order[out[at - 1]["tool_call_id"]] > order[m["tool_call_id"]]:
                at -= 1
            out.insert(at, m)
            continue
        order = {c["id"]: i for i, c in enumerate(m.get("tool_calls") or [])}
        out.append(m)
    return out


def one_by_one(messages):
    """Every call with its result, for templates that know no more than one at once."""
    out = []
    results = {m["tool_call_id"]: m for m in messages if m["role"] == "tool"}
    for m in messages:
        if m["role"] == "tool":
            continue
        calls = m.get("tool_calls") or []
        if not calls:
            out.append(m)
        for i, c in enumerate(calls):
            out.append({**m, "content": m["content"] if i == 0 else None, "tool_calls": [c]})
            if c["id"] in results:
                out.append(results[c["id"]])
    return out


def silent(messages, content):
    """Messages that call tools and say nothing have this content."""
    return [{**m, "content": content} if m.get("tool_calls") and not m["content"] else m for m in messages]


def as_text(messages):
    """Arguments as JSON in strings."""
    return [
        {**m, "tool_calls": [{**c, "function": {**c["function"], "arguments": tojson(c["function"]["arguments"])}} for c in m["tool_calls"]]}
        if m.get("tool_calls") else m
        for m in messages
    ]


def alone(messages):
    """Calls without the text before them."""
    return [{**m, "content": None} if m.get("tool_calls") else m for m in messages]


def shown(messages, text):
    """Whether the text has all calls."""
    calls = [c for m in messages for c in m.get("tool_calls") or []]
    return all(text.count(c["function"]["name"]) >= len(calls) for c in calls)


def attempts(messages):
    """The ways to write a conversation, those first that change it least."""
    for divide in (lambda m: m, one_by_one):
        for leave in (lambda m: m, alone):
            for arguments in (lambda m: m, as_text):
                for content in (None, ""):
                    yield silent(arguments(leave(divide(messages))), content)


def main():
    given = json.load(sys.stdin)
    env = jinja2.sandbox.SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime.fromisoformat(given["now"]).strftime
    template = env.from_string(given["source"])

    def render(c, messages):
        return template.render(
            messages=messages, tools=c.get("tools") or given["no_tools"], documents=None, add_generation_prompt=True,
            bos_token=given["bos_token"], eos_token=given["eos_token"], **c.get("chat_template_kwargs", {}))

    out = []
    for c in given["conversations"]:
        error = None
        for messages in attempts(in_order(plain(c["messages"]))):
            try:
                text = render(c, messages)
            except Exception as e:
                error = error or e
                continue
            if "None" not in text and shown(messages, text):
                out.append({"text": text})
                break
        else:
            out.append({"error": str(error or "calls are not shown")})
    json.dump(out, sys.stdout)


main()
