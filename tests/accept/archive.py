"""Bars of the archive: tests/archive looks at it from outside."""
import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from frame import Short, bar
from product import LONG, ROOT, last_line
from suites import cargo


def check(name):
    """One check of tests/archive; the figure is what it says of it."""
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "archive"), name], cwd=ROOT, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LONG)
    if done.returncode:
        print(done.stdout)
        raise Short(last_line(done.stdout))
    return last_line(done.stdout).partition(": ")[2]


@bar("archive-serve", "`serve` archives what is due by itself, and works on while the archive is out of reach")
def serve():
    return check("serve")


@bar("archive-replay", "`replay --archive` and exported facts give the same packed hours and usage, to the byte")
def replay():
    return check("replay")


@bar("archive-duckdb", "DuckDB's sums over the archive equal the packed hours and the generator; 0 and absent differ")
def duckdb():
    return check("duckdb")


@bar("archive-kill", "kill -9 between file and commit: each window in one closed file, no orphan stays")
def kill():
    return check("kill")


@bar("archive-retention", "partitions ahead; archived days and months go by policy; the export of all events stays the same")
def retention():
    return check("retention")


@bar("archive-refusal", "a damaged file and another ledger's archive are refused")
def refusal():
    return check("refusal")


@contextlib.contextmanager
def bucket():
    """A foreign store that speaks S3, with the bucket of the tests; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("moto_server")
    server = subprocess.Popen([str(program), "-H", "127.0.0.1", "-p", str(port)], env={**os.environ}, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        make_bucket(f"http://127.0.0.1:{port}/gpuledger-archive", server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def make_bucket(url, server, patience=30):
    body = b'<CreateBucketConfiguration><LocationConstraint>eu-central-1</LocationConstraint></CreateBucketConfiguration>'
    until = time.monotonic() + patience
    while True:
        try:
            return urllib.request.urlopen(urllib.request.Request(url, data=body, method="PUT"), timeout=5).close()
        except (urllib.error.URLError, OSError) as why:
            if server.poll() is not None or time.monotonic() > until:
                raise Short(f"the store does not answer: {why}") from None
            time.sleep(0.1)


@bar("archive-s3", "an archive in a bucket: written, listed, read, removed over S3; no secret in what is printed")
def s3():
    with bucket() as endpoint:
        return cargo("-p", "gpuledger-archive", "--features", "s3", "--test", "it", "bucket", env={"ARCHIVE_S3_ENDPOINT": endpoint})
