# /// script
# dependencies = ["anthropic", "openai[aiohttp]", "pytest", "pytest-asyncio", "pytest-timeout", "respx", "rich",
#   "dirty-equals", "inline-snapshot", "http-snapshot[httpx]", "opentelemetry-sdk", "pip", "hatchling", "hatch-fancy-pypi-readme"]
# ///
"""Runs the tests that the clients of OpenAI and Anthropic are published with, those of what the server has.

    published.py CLIENT FOLDER

They hold every answer to the client's types. The sources of CLIENT, in the version that is
installed, are unpacked in FOLDER; LUTRA_URL is the server, whose models have the names that
the tests ask for.
"""

import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tarfile

FILES = {
    "anthropic": ["test_messages.py", "test_models.py"],
    "openai": ["test_completions.py", "test_embeddings.py", "test_models.py", "chat/test_completions.py"],
}
BASE = {"anthropic": "", "openai": "/v1"}


def main(client, folder):
    release = f"{client}-{importlib.metadata.version(client)}"
    source = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--disable-pip-version-check", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", "download", *source, "--dest", folder, release.replace("-", "==")], check=True)
    with tarfile.open(pathlib.Path(folder, release + ".tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    root = pathlib.Path(folder, release)
    settings = ["addopts=-q -rs --tb=short --show-capture=no -p no:cacheprovider -p table", "filterwarnings=ignore", "timeout=60"]
    tests = [str(pathlib.Path("tests/api_resources", name)) for name in FILES[client]]
    changed = {"TEST_API_BASE_URL": os.environ["LUTRA_URL"] + BASE[client], "LUTRA_CLIENT": client + " (its own)"}
    changed["PYTHONPATH"] = str(pathlib.Path(__file__).parent.resolve())
    options = [word for setting in settings for word in ("-o", setting)]
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=root, env=os.environ | changed).returncode)


if __name__ == "__main__":
    main(*sys.argv[1:])
