# need PROGRAM[=PACKAGE]...: sees that programs are there, for a step of the gate. Where
# some are missing, root on Debian gets their packages; elsewhere the step says what it
# lacks and ends: as skipped, or as failed where CI=true says that nothing may be missing.
# No service is started. An absolute path stands for a file that must be there, and
# python3:MODULE for a module.
need() {
  local want program package programs=() packages=()
  for want; do
    program=${want%%=*} package=${want#*=}
    case $program in
    /*) [ -e "$program" ] && continue ;;
    python3:*) python3 -I -c "import ${program#*:}" 2>/dev/null && continue ;;
    *) command -v "$program" >/dev/null && continue ;;
    esac
    programs+=("$program") packages+=("$package")
  done
  [ ${#programs[@]} -gt 0 ] || return 0
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installs: ${packages[*]}"
    ( # one step at a time
      flock 9
      updated=${TMPDIR:-/tmp}/lutra-apt-updated
      [ -n "$(find "$updated" -mmin -60 2>/dev/null)" ] || { apt-get update -qq && touch "$updated"; }
      # A session of its own: whoever ends the gate's leaves no packages half unpacked.
      RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive setsid -w apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null </dev/null
    ) 9>"${TMPDIR:-/tmp}/lutra-need.lock"
    return
  fi
  echo "SKIPPED: there is no ${programs[*]}; Debian: apt-get install ${packages[*]}"
  [ "${CI:-}" = true ] && exit 1
  exit 0
}

# environment DIR PACKAGE...: makes a Python environment of packages. uv does it: for LiteLLM's
# proxy pip takes 87 s of processor time, uv 7, and 9 to be installed. GATE_UV: where it is, or is to be.
environment() {
  need python3 python3:ensurepip=python3-venv
  local dir=$1 uv
  shift
  uv=${GATE_UV:-$dir/uv/bin/uv}
  (
    flock 9
    [ -x "$uv" ] || { python3 -m venv "${uv%/bin/uv}" && "${uv%/uv}/pip" install --quiet --disable-pip-version-check uv==0.13.9; }
  ) 9>"${TMPDIR:-/tmp}/lutra-uv.lock"
  "$uv" --quiet --no-config venv "$dir/python"
  "$uv" --quiet --no-config pip install --python "$dir/python/bin/python" "$@"
}

# node_packages: those of web/test. None brings a browser of its own, and none may run scripts here.
node_packages() (
  cd web/test
  flock 9
  [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund --silent
) 9>"${TMPDIR:-/tmp}/lutra-node.lock"

# again KINDS FILE: arguments of go test that run what FILE, of .ci/skipped, has of KINDS.
again() {
  awk -v kinds=" $1 " 'index(kinds, " " $1 " ") { tests = tests "|" $3; packages[$2] }
    END { if (tests) { print "-run=^(" substr(tests, 2) ")$"; for (p in packages) print p } }' "$2"
}
