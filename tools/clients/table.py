"""pytest's plugin of the clients' suites: skips what is beyond models or server, and adds the client's line to the table."""

import importlib.metadata
import os
import pathlib
import re

import pytest

# The tests that OpenAI's and Anthropic's clients are published with, by their names, and why they are skipped.
PUBLISHED = {
    r"with_all_params": "sends every field at once, with placeholders such as schemas that are none",
    r"deprecated_model": "asks for Anthropic's models by their names",
    r"Embeddings::test_\w+_create\[": "is answered in base64, as the client asks, which its test takes for a fault",
    r"_(retrieve|update|list|delete)\[": "keeps chats, or deletes models, which the server does not",
}
KEPT = r"test_models.py.*_(retrieve|list)|Embeddings.*with_all_params"


def pytest_collection_modifyitems(items):
    for item in items:
        reason = beyond(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def beyond(item):
    """Says why item is skipped: its class knows what the embedded models are no match for (standard.py)."""
    if "/api_resources/" in item.nodeid and not re.search(KEPT, item.nodeid):
        return next((why for name, why in PUBLISHED.items() if re.search(name, item.nodeid)), None)
    return getattr(item.cls, "beyond_the_model", {}).get(getattr(item, "originalname", ""))


def pytest_terminal_summary(terminalreporter):
    """Adds the client's line to the table."""
    table, client = os.environ.get("LUTRA_TABLE"), os.environ.get("LUTRA_CLIENT", "")
    if not table:
        return
    passed, failed, broken, skipped = (len(terminalreporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped"))
    version = importlib.metadata.version(client.partition(" ")[0])
    with pathlib.Path(table).open("a") as out:
        print(client, version, passed, failed + broken, skipped, sep="\t", file=out)
