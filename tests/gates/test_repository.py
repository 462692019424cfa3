"""The repository holds for everybody: no path of one machine, no address of a package registry."""

import re

from tests.gates.source import REPOSITORY, repository_files

# Written in parts, so that this file does not find itself.
FOLDERS = ("work", "root", r"home/\w+", r"Users/\w+", "tmp/bash" + "_jobs")
PATH = re.compile(rb"(?<![\w.])/(" + "|".join(FOLDERS).encode() + rb")/")
HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org", "deb.debian" + ".org")
HOST = re.compile("|".join(map(re.escape, HOSTS)).encode())


def test_no_machine_paths_and_no_registries():
    found = [
        f"{path.relative_to(REPOSITORY)}: {match.group().decode()}"
        for path in repository_files()
        for pattern in (PATH, HOST)
        for match in pattern.finditer(path.read_bytes())
    ]
    assert found == []
