#!/bin/sh
# Makes the interpreters of this folder anew. It needs npm, Go, and what python/build.sh names.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent quickjs-wasi@3.6.2 >/dev/null && tar xzf ./*.tgz)
go run -C ../../../lab ./tools/wasmfuel host_interrupt <"$work/package/quickjs.wasm" >quickjs.wasm.gz
python/build.sh >"$work/python.wasm"
go run -C ../../../lab ./tools/wasmfuel refuel <"$work/python.wasm" >python.wasm.gz
