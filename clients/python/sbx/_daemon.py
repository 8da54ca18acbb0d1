"""The daemons, where their sockets may be, and what is said of one that does not answer as it should."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, List, Optional

from ._errors import Failed, Unavailable


@dataclasses.dataclass(frozen=True)
class Daemon:
    """What is called so, and where its socket may be."""

    name: str
    variable: str  #: the environment variable that names its socket
    system_socket: str
    user_socket: str  #: of a user's own, below XDG_RUNTIME_DIR

    @property
    def one_version(self) -> str:
        """The fix for answers that this package does not know."""
        return f"install {self.name} and the package sbx of one version"

    @property
    def see_log(self) -> str:
        return f"see {self.name}'s log: it may have ended"

    def silent(self, seconds: float) -> Unavailable:
        return Unavailable(f"{self.name} was silent for {seconds:g} s", code="timeout",
                           fix=f"see whether {self.name} is stopped or hangs, or give a longer "
                               "timeout")

    def stranger(self, message: str, status: int = 0) -> Failed:
        """What answers is another program."""
        return Failed(message, code=f"not_{self.name}", status=status,
                      fix=f"see whether the socket is {self.name}'s")

    def unknown(self, what: str, value: Any) -> Failed:
        try:
            shown = str(value)[:200]
        except RecursionError:
            shown = "it is nested too deeply"
        return Failed(f"{what} is not as this client knows it: {shown}",
                      code="version_mismatch", fix=self.one_version)


SBXD = Daemon("sbxd", "SBX_SOCKET", "/run/sbx/sbxd.sock", "sbx/sbxd.sock")
AGENTD = Daemon("agentd", "AGENTD_SOCKET", "/run/agentd/agentd.sock", "sbx/agentd.sock")


def socket_candidates(daemon: Daemon, given: Optional[str] = None) -> List[str]:
    """Where to look for the daemon, best first. What is given or set is the only place."""
    if given:
        return [given]
    named = os.environ.get(daemon.variable)
    if named and not os.path.isabs(named):
        raise Unavailable(f"{daemon.variable} is {named}, which is not an absolute path",
                          code="unreachable",
                          fix=f"give {daemon.variable} an absolute path, or unset it")
    if named:
        return [named]
    places = [daemon.system_socket]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isabs(runtime):
        places.append(os.path.join(runtime, daemon.user_socket))
    return places


def find_socket(daemon: Daemon, given: Optional[str] = None) -> str:
    """The first that can be used, else the best one, whose error then says what is wrong."""
    places = socket_candidates(daemon, given)
    for place in places:
        if os.access(place, os.R_OK | os.W_OK):
            return place
    for place in places:
        if os.path.lexists(place):
            return place
    return places[-1]
