"""What a tensor frees stays with the process if that was asked for, and can be given back."""

import platform
import subprocess
import sys

import pytest

MANY = """
import resource, sys
import psutil, torch
from tokentrail.allocator import give_back, keep_freed
if sys.argv[1] == "kept":
    keep_freed()
torch.set_num_threads(1)

def layer():
    wide = torch.ones(16 << 20)  # 64 MiB, more than glibc ever keeps by itself
    return wide * 2

def faults(layers):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(layers):
        layer()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults(20)  # the heap grows until every tensor finds a hole
found = faults(20)
held = psutil.Process().memory_info().rss
give_back()
print(found, held - psutil.Process().memory_info().rss)
"""

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library decides by itself")


def faults_and_given_back(how: str) -> tuple[int, int]:
    command = [sys.executable, "-c", MANY, how]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    faults, given_back = map(int, said.split())
    return faults, given_back


def test_freed_memory_is_handed_out_again():
    pages = 20 * 2 * (64 << 20) // 4096
    mapped_anew, _ = faults_and_given_back("not kept")
    kept, given_back = faults_and_given_back("kept")
    assert given_back > 60 << 20
    if mapped_anew < pages / 2:
        pytest.skip("this system maps large pages, so that faults do not count what is mapped")
    assert kept < mapped_anew / 4
