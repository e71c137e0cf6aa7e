#ifndef ROWHOUSE_CLIENT_CLI_ELEMENTS_H_
#define ROWHOUSE_CLIENT_CLI_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rowhouse/types.h"

namespace rowhouse::cli {

/// `bf16`, `fp32`, `fp16`.
const char* NameOf(client::DType dtype);

/// The elements of `bytes`.
std::vector<float> Elements(client::DType dtype,
                            std::span<const std::byte> bytes);

/// Elements as bytes; rounds to nearest, ties to even.
std::vector<std::byte> BytesOf(client::DType dtype,
                               std::span<const float> elements);

/// Six significant digits: `0.0203934`, `-1`, `inf`.
std::string Number(float value);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_ELEMENTS_H_
