"""Python starts with this file when its folder is on the path: addresses beyond this machine are
refused and noted.
"""

from __future__ import annotations

import os
import socket

_connect = socket.socket.connect
_lookup = socket.getaddrinfo


def _own() -> set[str]:
    # Ray's helpers bind to the machine's own address; asking which one it is sends nothing.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return {probe.getsockname()[0], socket.gethostname()}
        except OSError:
            return {socket.gethostname()}


OWN = _own()


def _refuse(address: object) -> None:
    host = address[0] if isinstance(address, tuple) else address
    if isinstance(host, bytes):
        host = host.decode()
    local = (
        host in (None, "", "localhost", "::1", "0.0.0.0")
        or host in OWN
        or str(host).startswith(("127.", "/"))
    )
    if not local:
        if log := os.environ.get("CLINVEIL_TEST_NETWORK_LOG"):
            with open(log, "a") as file:
                file.write("an address beyond this machine was asked for\n")
        raise OSError("the tests allow no network")


def connect(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        _refuse(address)
    return _connect(self, address)


def getaddrinfo(host, *args, **kwargs):
    _refuse((host,))
    return _lookup(host, *args, **kwargs)


socket.socket.connect = connect
socket.getaddrinfo = getaddrinfo
