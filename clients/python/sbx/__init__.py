"""Runs code that nobody has read, by sbxd on this machine.

>>> from sbx import run_code
>>> run_code("print(6 * 7)").stdout
'42\\n'

Code that fails is a result. A SandboxError means that the sandbox itself could not do its work.
"""

from ._client import Client, RunStream, run_code, stream_code
from ._errors import Failed, Refused, SandboxError, Unavailable
from ._events import Event, Finished, Lost, Output, Started
from ._limits import SandboxLimits
from ._result import (Denial, ErrorDetail, ExecutionResult, Image, Layer, Note, OutputFile,
                      RefusedEntry, Timings, Usage, Workspace)
from ._session import Session, SessionFile, SessionInfo

__version__ = "0.1.0"

__all__ = [
    "Client", "Denial", "ErrorDetail", "Event", "ExecutionResult", "Failed", "Finished", "Image",
    "Layer", "Lost", "Note", "Output", "OutputFile", "Refused", "RefusedEntry", "RunStream",
    "SandboxError", "SandboxLimits", "Session", "SessionFile", "SessionInfo", "Started", "Timings",
    "Unavailable", "Usage", "Workspace", "run_code", "stream_code",
]
