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

# make_env DIR PIP-ARGUMENTS…: a virtual environment, made again when pyproject.toml changed since.
make_env() {
  dir="$1"
  shift
  stamp="$dir/ready-$(printf '%s' "$*" | cksum | cut -d' ' -f1)"
  if [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ]; then return; fi
  echo "Setting up $dir (once)…" >&2
  [ -x "$dir/bin/python" ] || "$(find_python)" -m venv "$dir"
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1" >&2
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check "$@" >&2
  touch "$stamp"
}
