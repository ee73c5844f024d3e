# Sourced by ./run and ./test: virtual environments with this checkout installed in them.
# Everything is fetched once; later starts work offline.
set -eu

find_python() {
  for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
    [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 || continue
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s' "$name"
      return
    fi
  done
  echo "error: no Python 3.11 or newer was found" >&2
  echo "hint: install one, or name it: PYTHON=/path/to/python3 ./run" >&2
  exit 2
}

# make_env DIR PIP-ARGUMENTS…: a virtual environment, made again when pyproject.toml or the page changed since.
make_env() {
  dir="$1"
  shift
  stamp="$dir/ready-$(printf '%s' "$*" | cksum | cut -d' ' -f1)"
  if [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && ! page_changed "$stamp"; then return; fi
  echo "Setting up $dir (once)…" >&2
  [ -x "$dir/bin/python" ] || "$(find_python)" -m venv "$dir"
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1" >&2
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check "$@" >&2
  touch "$stamp"
}

# Whether a source of the page is newer than a file. Installing builds it again.
page_changed() {
  ui=src/lastword/web/ui
  [ ! -e src/lastword/web/static/index.html ] ||
    [ -n "$(find $ui/src $ui/index.html $ui/package-lock.json -newer "$1" -print -quit)" ]
}

# make_browser: Debian's Chromium for the tests of the page, where the system's package manager is at hand.
missing=""
make_browser() {
  command -v chromium >/dev/null 2>&1 && return
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Installing Chromium (once)…" >&2
    { apt-get update && apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } >/dev/null 2>&1 || true
  fi
  command -v chromium >/dev/null 2>&1 || missing="Chromium was not found and could not be installed: the tests of the page in a browser were left out."
}

# finish CODE: end with what could not be set up, so that nobody overlooks it.
finish() {
  [ -z "$missing" ] || echo "NOT SET UP: $missing" >&2
  exit "$1"
}
