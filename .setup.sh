# Sourced by ./run and ./test: a virtual environment in .venv with this checkout installed in it.
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

# $1 names what is wanted ("run" or "test"); the stamp changes when pyproject.toml does.
prepare() {
  want="$1"
  stamp=".venv/ready-$want"
  if [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ]; then return; fi
  python=$(find_python)
  if [ ! -x .venv/bin/python ]; then
    echo "Setting up .venv (once)…" >&2
    "$python" -m venv .venv
  fi
  .venv/bin/python -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1" >&2
  if [ "$want" = test ]; then
    .venv/bin/python -m pip install -qq --disable-pip-version-check --group dev -e . >&2
  else
    .venv/bin/python -m pip install -qq --disable-pip-version-check -e . >&2
  fi
  touch "$stamp"
}
