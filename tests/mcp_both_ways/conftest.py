"""What is left out where it could not be set up; `./test` names it in its last lines."""

from real_servers import CHECKS, INSTALLED

_NEEDED = {
    "test_real_servers.py": INSTALLED / "installed.json",
    "test_conformance.py": CHECKS / "installed.json",
    "test_python_servers.py": CHECKS / "installed",
}
collect_ignore = [name for name, file in _NEEDED.items() if not file.exists()]
