"""Where `HttpWire` was up to version 0.3. It goes with 0.5."""

import warnings

from lastword.talk.apiclient import HttpWire

__all__ = ["HttpWire"]

warnings.warn("HttpWire is in lastword.talk.apiclient now", DeprecationWarning, stacklevel=2)
