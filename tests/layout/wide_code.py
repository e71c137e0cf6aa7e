#!/usr/bin/env python3
"""Checks in a library's machine code that AVX instructions stand only in the
functions compiled for them: InAvx2, InAvx512 (kernels/cpu/compile_for.h),
StreamLines, those for tiles (gemm_amx.cc) and what the compiler split off them.
Prints each other function that has some, and exits 1; also when no such
function has any, for then it looked at nothing.

usage: wide_code.py LIBRARY
"""
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
# Programs have no other instructions whose names begin with v or k; the rest are
# those of tiles.
WIDE = re.compile(r"^\s*[0-9a-f]+:\s+([vk]\S+|tile\S+|tdp\S+|\S+tilecfg)(?:\s|$)")
ALLOWED = re.compile(r"_ZN8rowhouse7kernels3cpu"
                     r"((6InAvx2|8InAvx512)I|11StreamLines|3amx)")


def faults_of(lines):
    """Functions with wide code: those not allowed, and how many were."""
    function, faults, allowed = None, {}, set()
    for line in lines:
        if found := FUNCTION.match(line):
            function = found.group(1)
        elif found := WIDE.match(line):
            if ALLOWED.match(function):
                allowed.add(function)
            else:
                faults.setdefault(function, found.group(1))
    return faults, len(allowed)


def self_test():
    wide = " 5:\tvaddps %ymm0,%ymm1,%ymm1"
    masks = " 5:\tkmovw  %k0,%eax"
    old = " 5:\taddps  %xmm0,%xmm1"
    assert faults_of(
        ["00 <_ZN8rowhouse7kernels3cpu6InAvx2IiEEvv>:", wide]) == ({}, 1)
    assert faults_of(["00 <_ZN3SumEv>:", old]) == ({}, 0)
    assert faults_of(["00 <_ZN3SumEv>:", wide]) == ({"_ZN3SumEv": "vaddps"}, 0)
    assert faults_of(["00 <_ZN3SumEv>:", masks])[0]


def main():
    self_test()
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", sys.argv[1]],
        check=True, capture_output=True, text=True).stdout
    faults, allowed = faults_of(code.splitlines())
    for function, instruction in faults.items():
        print(f"{function} has {instruction}")
    print(f"wide code in {allowed} functions compiled for it, in "
          f"{len(faults)} others")
    return 1 if faults or not allowed else 0


if __name__ == "__main__":
    sys.exit(main())
