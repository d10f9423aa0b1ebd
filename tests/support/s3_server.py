"""moto's S3 server, in a process of its own on 127.0.0.1."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec  # type: ignore[import-untyped, unused-ignore]

BUCKET = "nights"
_STARTED = re.compile(rb"Running on (http://127\.0\.0\.1:\d+)")


class S3Server:
    def __init__(self, address: str, process: subprocess.Popen[bytes]) -> None:
        self.address = address
        self._process = process
        self.environment: Mapping[str, str] = {
            "AWS_ENDPOINT_URL": address,
            "AWS_DEFAULT_REGION": "eu-west-1",
            "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def files(self) -> Any:
        """A client of it; nothing is remembered."""
        given = self.environment
        client = fsspec.filesystem(
            "s3",
            key=given["AWS_ACCESS_KEY_ID"],
            secret=given["AWS_SECRET_ACCESS_KEY"],
            client_kwargs={"endpoint_url": self.address, "region_name": "eu-west-1"},
            use_listings_cache=False,
            skip_instance_cache=True,
        )
        client.invalidate_cache()
        return client

    def names(self, folder: str) -> set[str]:
        found = self.files().find(f"{BUCKET}/{folder}")
        return {str(path).rpartition("/")[2] for path in found}


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server with an empty bucket :data:`BUCKET`."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as written:
            process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
                cwd=folder,
            )
        try:
            while (found := _STARTED.search(log.read_bytes())) is None:
                assert process.poll() is None, log.read_text()
                time.sleep(0.05)
            server = S3Server(found[1].decode(), process)
            server.files().mkdir(BUCKET)
            yield server
        finally:
            process.kill()
            process.wait()
