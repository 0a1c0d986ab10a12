"""Metrics of several servers in one text."""

import re

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?( .*)")


def merge(texts: dict[str, str]) -> str:
    """Joins Prometheus' texts, by replica, whose name each sample gets as a label."""
    about: dict[str, list[str]] = {}  # by metric: # HELP and # TYPE
    samples: dict[str, list[str]] = {}
    for replica, text in texts.items():
        metric = ""
        for line in text.splitlines():
            if line.startswith(("# HELP ", "# TYPE ")):
                metric = line.split(" ", 3)[2]
                if line not in about.setdefault(metric, []):
                    about[metric].append(line)
            elif found := _SAMPLE.fullmatch(line):
                name, labels, value = found.groups()
                label = f'replica="{replica}"' + ("," + labels if labels else "")
                samples.setdefault(metric, []).append(f"{name}{{{label}}}{value}")
    return "".join("\n".join([*about.get(m, []), *lines]) + "\n" for m, lines in samples.items())
