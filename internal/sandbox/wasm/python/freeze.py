"""Writes the part of CPython's standard library that programs without files use, compiled, as C.

    python3.11 freeze.py CPYTHON/Lib > library.c
"""
import marshal, os, sys

lib = sys.argv[1]
modules = """
    __future__ _collections_abc _compat_pickle _markupbase _pydecimal _strptime _threading_local _weakrefset
    abc argparse array ast base64 bisect calendar cmath codecs collections.* colorsys concurrent concurrent.futures
    concurrent.futures._base contextlib copy copyreg csv dataclasses datetime decimal difflib dis encodings
    encodings.aliases encodings.ascii encodings.latin_1 encodings.utf_8 enum fnmatch fractions functools
    genericpath getopt gettext graphlib hashlib heapq hmac html.* importlib.* inspect io ipaddress json.* keyword
    linecache locale logging numbers opcode operator os pathlib pickle platform posixpath pprint queue random re.*
    reprlib sched secrets shlex shutil signal stat statistics string struct textwrap threading timeit token tokenize
    traceback types typing unittest.* urllib urllib.parse uuid warnings weakref
""".split()


def files(name):
    """Yields (module, path, is it a package) of a module, or with .* of a package and all within."""
    whole = name.endswith(".*")
    name = name.removesuffix(".*")
    path = os.path.join(lib, *name.split("."))
    if os.path.isdir(path):
        yield name, path + "/__init__.py", True
        for entry in sorted(os.listdir(path)) if whole else ():
            if entry.endswith(".py") and entry != "__init__.py":
                yield f"{name}.{entry[:-3]}", f"{path}/{entry}", False
    elif os.path.exists(path + ".py"):
        yield name, path + ".py", False


print("#include <Python.h>")
rows, seen = [], set()
for name, path, package in (f for m in modules for f in files(m)):
    if name in seen:
        continue
    seen.add(name)
    # Without docstrings and assertions, as python -OO has it.
    with open(path, encoding="utf-8") as f:
        code = marshal.dumps(compile(f.read(), f"<frozen {name}>", "exec", dont_inherit=True, optimize=2))
    symbol = "m_" + name.replace(".", "_")
    print(f"static const unsigned char {symbol}[] = {{{','.join(map(str, code))}}};")
    rows.append(f'\t{{"{name}", {symbol}, {len(code)}, {int(package)}, NULL}},')
print("const struct _frozen standard_library[] = {", *rows, "\t{0}", "};", sep="\n")
