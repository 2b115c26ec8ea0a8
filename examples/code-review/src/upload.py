"""Stores uploaded files. The review should find what is wrong here."""

import os
import subprocess

UPLOADS = "/srv/uploads"


def store(name: str, data: bytes) -> str:
    path = os.path.join(UPLOADS, name)
    with open(path, "wb") as f:
        f.write(data)
    subprocess.run(f"file {path}", shell=True, check=True)
    return path
