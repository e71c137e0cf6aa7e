"""Writes a C++ file whose one function is the README's client snippet.

usage: readme_snippet.py README OUT
"""

import re
import sys

FRAME = """// Generated from the README: its client snippet, as it stands there.
#include <cstddef>
#include <cstdint>
#include <span>

#include "rowhouse/adamw.h"
#include "rowhouse/cluster.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"

using namespace rowhouse::client;

void ReadmeSnippet(std::span<const int64_t> tokens,
                   std::span<std::byte> embeddings,
                   std::span<const std::byte> hidden,
                   std::span<const int64_t> targets,
                   std::span<std::byte> hidden_gradient,
                   std::span<const std::byte> embedding_gradient) {
%s}
"""


def main():
    readme, out = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        snippets = re.findall(r"```cpp\n(.*?)```", file.read(), re.DOTALL)
    if len(snippets) != 1:
        sys.exit(f"{readme} has {len(snippets)} snippets of C++; one is wanted")
    with open(out, "w", encoding="utf-8") as file:
        file.write(FRAME % snippets[0])


if __name__ == "__main__":
    main()
