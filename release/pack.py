"""Packs a folder as a .tar.gz: the same files give the same bytes, whoever packs them, wherever and when.

    pack.py FOLDER ARCHIVE

The time of every file is SOURCE_DATE_EPOCH.
"""

import gzip
import os
import sys
import tarfile

folder, archive = sys.argv[1:]
time = int(os.environ["SOURCE_DATE_EPOCH"])


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = time
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


with (
    open(archive, "wb") as file,
    gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=9, mtime=time) as compressed,
    tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
):
    # In the order of their names.
    tar.add(folder, arcname=os.path.basename(folder), filter=anonymous)
