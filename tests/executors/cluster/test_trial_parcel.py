"""What comes back from a worker is laid out below one directory, or not at all."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from skillup.executors.cluster.trial_parcel import pack_trials, unpack_trials


def archive(name: str, *, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as written:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.size = kind, link, 1 if kind == tarfile.REGTYPE else 0
        written.addfile(entry, io.BytesIO(b"x"))
    return out.getvalue()


def test_files_come_back_with_their_contents_and_permissions(tmp_path: Path) -> None:
    run, back = tmp_path / "run", tmp_path / "back"
    (run / "trials/a/raw").mkdir(parents=True)
    (run / "trials/a/record.json").write_text('{"at": "/place/of/root/work/x"}')
    (run / "trials/a/raw/turn-01.jsonl").write_text("/place/of/root stays as it was said")
    (run / "blobs/ab").mkdir(parents=True)
    (run / "blobs/ab/abc").write_bytes(b"\0\1")
    (run / "blobs/ab/abc").chmod(0o640)
    unpack_trials(pack_trials(run, "/place/of/root", ["a"]), back)
    assert (back / "trials/a/record.json").read_text() == '{"at": "/work/x"}'
    assert "/place/of/root" in (back / "trials/a/raw/turn-01.jsonl").read_text()
    assert (back / "blobs/ab/abc").read_bytes() == b"\0\1"
    assert (back / "blobs/ab/abc").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "sent",
    [
        archive("../beside"),
        archive("trials/../../beside"),
        archive("/absolute"),
        archive("trials/link", kind=tarfile.SYMTYPE, link="/etc/hostname"),
        archive("trials/link", kind=tarfile.LNKTYPE, link="../beside"),
        archive("trials/pipe", kind=tarfile.FIFOTYPE),
    ],
    # Archives hold the time: each worker of the tests would call them otherwise.
    ids=["above", "above by way of below", "absolute", "link", "hard link", "pipe"],
)
def test_anything_but_a_file_below_is_refused(tmp_path: Path, sent: bytes) -> None:
    with pytest.raises(tarfile.TarError, match="no plain file at"):
        unpack_trials(sent, tmp_path / "back")
    assert not list(tmp_path.rglob("*"))
