# Sourced by ./run and ./test: virtual environments with this checkout installed in them.
# Everything is fetched once; later starts work offline. What the tests need besides is in tests/set_up.py.
set -eu

refuse() {
  echo "error: $1" >&2
  echo "hint: $2" >&2
  exit 2
}

# find_python [VERSION]: the interpreter to make environments with. $PYTHON where that is set, and no other; else the
# first that runs, on the PATH or among pyenv's. A shim may be found and not run: that is said, and the search goes on.
find_python() {
  wanted="${1:-}"
  found=()
  if [ -n "${PYTHON:-}" ]; then
    command -v "$PYTHON" >/dev/null || refuse "PYTHON is $PYTHON, which is not there" "name one that is, or none"
    found=("$PYTHON")
  else
    for name in $([ -n "$wanted" ] && echo "python$wanted" || echo python3 python3.13 python3.12 python3.11); do
      while IFS= read -r path; do found+=("$path"); done < <(type -ap "$name")
    done
    for path in "${PYENV_ROOT:-${HOME:-}/.pyenv}/versions/${wanted:-3}"{,.*}/bin/python3; do
      if [ -x "$path" ]; then found+=("$path"); fi
    done
  fi
  for path in ${found[@]+"${found[@]}"}; do
    if ! version=$("$path" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null); then
      echo "note: $(basename "$path") was found but does not run ($path)" >&2
      continue
    fi
    if ! "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      [ -z "${PYTHON:-}" ] || refuse "$PYTHON is Python $version, and 3.11 or newer is needed" "name a newer one"
      continue
    fi
    case "$version." in
      "${wanted:+$wanted.}"*) printf '%s' "$path" && return ;;
    esac
    [ -z "${PYTHON:-}" ] || refuse "$PYTHON is Python $version, and --python says $wanted" "leave one of them out"
  done
  refuse "no Python ${wanted:-3.11 or newer} was found that runs" "install one, or name it: PYTHON=/path/to/python3 $0"
}

# make_env DIR PIP-ARGUMENTS…: a virtual environment with the versions of constraints.txt, made again when that file,
# pyproject.toml or the page changed since. Its interpreter is what find_python gives for $version_wanted.
version_wanted=""
make_env() {
  dir="$1"
  shift
  stamp="$dir/ready-$(printf '%s' "$*" | cksum | cut -d' ' -f1)"
  if [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt constraints.txt ] && ! page_changed "$stamp"; then
    return
  fi
  echo "Setting up $dir (once)…" >&2
  if [ ! -x "$dir/bin/python" ]; then
    python=$(find_python "$version_wanted") || exit $?
    "$python" -m venv "$dir" || return
  fi
  # Said at each step: where the caller looks at the end of all this, bash does not stop at the first that fails.
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1" >&2 || return
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check -c constraints.txt "$@" >&2 || return
  if [ -e src/lastword/web/static/not-built ]; then
    echo "warning: $(cat src/lastword/web/static/not-built)" >&2
    echo "hint: everything but the page works; what is missing is tried again at the next start" >&2
  fi
  touch "$stamp"
}

# Whether a source of the page is newer than a file. Installing builds it again.
page_changed() {
  ui=src/lastword/web/ui
  [ ! -e src/lastword/web/static/index.html ] ||
    [ -n "$(find $ui/src $ui/index.html $ui/package-lock.json -newer "$1" -print -quit)" ]
}
