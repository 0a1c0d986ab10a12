#!/bin/sh
# Makes the interpreters of this folder anew. It needs npm and Go.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make() { # package, path in it, the import that refuels, name
	(cd "$work" && npm pack --silent "$1" >/dev/null && tar xzf ./*.tgz && rm ./*.tgz)
	go run -C ../../../lab ./tools/wasmfuel "$3" <"$work/package/$2" >"$4.wasm.gz"
	rm -r "$work/package"
}
make quickjs-wasi@3.6.2 quickjs.wasm host_interrupt quickjs
make @micropython/micropython-webassembly-pyscript@1.27.0 micropython.wasm mp_js_ticks_ms micropython
