#!/bin/sh
# Builds CPython for the sandbox and writes it to standard output. It needs Debian 12 with
#
#   apt-get install build-essential clang-19 libclang-rt-19-dev-wasm32 lld-19 llvm-19 python3.11 wasi-libc
#
# whose sources have CPython too. Where a python3.11 is not called so, PYTHON says which it is.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3.11}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
{
	curl -fsSO https://deb.debian.org/debian/pool/main/p/python3.11/python3.11_3.11.2.orig.tar.gz
	echo "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849  python3.11_3.11.2.orig.tar.gz" | sha256sum -c
	tar xzf python3.11_3.11.2.orig.tar.gz
	mkdir build
	cd build
	cc="clang-19 --target=wasm32-wasi"
	CONFIG_SITE=../Python-3.11.2/Tools/wasm/config.site-wasm32-wasi CC="$cc" CPP="$cc -E" AR=llvm-ar-19 RANLIB=llvm-ranlib-19 CFLAGS=-Os \
		../Python-3.11.2/configure -q --host=wasm32-unknown-wasi --build="$(cc -dumpmachine)" --with-build-python="$(command -v "$python")" \
		--without-pymalloc --without-doc-strings --disable-test-modules --prefix=/
	cp "$here/Setup.local" Modules/
	# Numbers of clocks are addresses in this libc; without zlib binascii has a CRC of its own.
	make -j"$(nproc)" EXTRA_CFLAGS=-Wno-int-conversion MODULE_BINASCII_CFLAGS= libpython3.11.a
	"$python" "$here/freeze.py" ../Python-3.11.2/Lib >library.c
	$cc -Os -I ../Python-3.11.2/Include -I . -mexec-model=reactor -Wl,--strip-all,--gc-sections,--stack-first,-z,stack-size=4194304,--export=malloc \
		"$here/main.c" library.c libpython3.11.a $(find Modules -name "lib*.a" | sort) -lm -lwasi-emulated-signal -lwasi-emulated-getpid \
		-lwasi-emulated-process-clocks -lwasi-emulated-mman -o python.wasm
} >&2
cat python.wasm
