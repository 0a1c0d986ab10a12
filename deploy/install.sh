#!/bin/sh
# Installs lutra from a release's archive, whose SHA-256 it checks. It asks for no password, and
# changes nothing but the folder that it names.
#
#   curl -fsSL https://github.com/lutra-lm/lutra/releases/latest/download/install.sh | sh
#   sh install.sh --lab --to ~/bin
#
# LUTRA_BASE_URL names another folder that holds the archives and their SHA256SUMS.
set -eu

releases=https://github.com/lutra-lm/lutra/releases

usage() {
  cat <<END
Usage: sh install.sh [--lab] [--to FOLDER] [--version VERSION]

  --lab               installs lutra-lab too, the programs that measure and convert models
  --to FOLDER         where to (default: /usr/local/bin if you may write there, else ~/.local/bin)
  --version VERSION   a release such as v1.2.0 (default: the latest)

LUTRA_BASE_URL      a folder with archives and SHA256SUMS (default: that of the release on GitHub)
END
}

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

# platform prints OS-ARCH as archives are named, or ends where no release has one.
platform() {
  kernel=$(uname -s) machine=$(uname -m)
  case $kernel in
  Linux) [ "$(uname -o 2>/dev/null)" = Android ] && system=android || system=linux ;;
  Darwin) system=darwin ;;
  MINGW* | MSYS* | CYGWIN*) fail "this is Windows: use winget, or unpack the .zip of $releases" ;;
  *) fail "there is no release for $kernel; with Go: go build . in a clone" ;;
  esac
  case $machine in
  x86_64 | amd64) processor=amd64 ;;
  aarch64 | arm64) processor=arm64 ;;
  *) fail "there is no release for $kernel on $machine; with Go: go build . in a clone" ;;
  esac
  # A shell that Rosetta translates takes itself for an Intel one.
  if [ "$system" = darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then processor=arm64; fi
  [ "$system-$processor" != android-amd64 ] || fail "there is no release for Android on $machine"
  echo "$system-$processor"
}

# download URL FILE
download() {
  if command -v curl >/dev/null; then
    curl -fsSL -o "$2" "$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$2" "$1"
  else
    fail "neither curl nor wget is here"
  fi || fail "cannot download $1"
}

# sum FILE prints its SHA-256.
sum() {
  if command -v sha256sum >/dev/null; then
    sha256sum <"$1"
  elif command -v shasum >/dev/null; then
    shasum -a 256 <"$1"
  elif command -v openssl >/dev/null; then
    openssl dgst -sha256 -r <"$1"
  else
    fail "sha256sum, shasum and openssl are missing, and nothing is installed unchecked"
  fi | cut -d ' ' -f 1
}

# fetch PROGRAM: downloads its archive, checks it, and unpacks the program into the scratch folder.
fetch() {
  # A name has no slash, so that it is a file of the folder above.
  line=$(grep -E "^[0-9a-f]{64}  $1-[0-9][0-9A-Za-z.+-]*-$platform\.tar\.gz\$" "$scratch/SHA256SUMS" || true)
  [ "$(printf '%s' "$line" | grep -c .)" = 1 ] || fail "$base/SHA256SUMS does not name one archive of $1 for $platform"
  want=${line%% *} archive=${line##* }
  echo "Downloading $base/$archive"
  download "$base/$archive" "$scratch/$archive"
  got=$(sum "$scratch/$archive")
  [ "$got" = "$want" ] || fail "$archive has the SHA-256 $got, and SHA256SUMS says $want; nothing is installed"
  tar xzf "$scratch/$archive" -C "$scratch" "${archive%.tar.gz}/$1" || fail "$archive holds no $1"
  mv "$scratch/${archive%.tar.gz}/$1" "$scratch/$1"
}

# choose prints the folder to install to.
choose() {
  if [ -n "$to" ]; then
    echo "$to"
  elif [ "$platform" = android-arm64 ] && [ -n "${PREFIX:-}" ]; then
    echo "$PREFIX/bin" # Termux
  elif [ -d /usr/local/bin ] && [ -w /usr/local/bin ]; then
    echo /usr/local/bin
  elif [ -n "${HOME:-}" ]; then
    echo "$HOME/.local/bin"
  else
    fail "/usr/local/bin cannot be written to, and HOME is not set: name a folder with --to"
  fi
}

# main is called in the last line: a script that was cut off on its way does nothing.
main() {
  to='' version='' programs=lutra
  while [ $# -gt 0 ]; do
    case $1 in
    --lab) programs='lutra lutra-lab' ;;
    --to | --version)
      [ -n "${2:-}" ] || fail "$1 needs a value"
      if [ "$1" = --to ]; then to=$2; else version=$2; fi
      shift
      ;;
    -h | --help)
      usage
      exit
      ;;
    *) usage >&2 && fail "unknown argument $1" ;;
    esac
    shift
  done
  platform=$(platform)
  base=$releases/latest/download
  [ -z "$version" ] || base=$releases/download/v${version#v}
  base=${LUTRA_BASE_URL:-$base}
  base=${base%/}
  folder=$(choose)
  mkdir -p "$folder" 2>/dev/null || true
  if [ ! -d "$folder" ] || [ ! -w "$folder" ]; then fail "cannot write to $folder: name another folder with --to, or run this as a user who may"; fi

  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  download "$base/SHA256SUMS" "$scratch/SHA256SUMS"
  for program in $programs; do fetch "$program"; done
  for program in $programs; do
    # A program that runs keeps its file: the new one takes the name at once.
    new=$folder/.$program.new
    cp "$scratch/$program" "$new"
    chmod 755 "$new"
    mv "$new" "$folder/$program"
    echo "Installed $folder/$program"
  done

  case ":$PATH:" in
  *":$folder:"*)
    found=$(command -v lutra)
    [ "$found" = "$folder/lutra" ] || echo "Another lutra comes first in PATH: $found"
    ;;
  *) echo "$folder is not in PATH; for this shell: export PATH=\"$folder:\$PATH\"" ;;
  esac
  echo "To try it: lutra ask \"What is 12 * 7?\""
  remove=
  for program in $programs; do remove="$remove \"$folder/$program\""; done
  echo "To remove it: rm$remove"
}

main "$@"
