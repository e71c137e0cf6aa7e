#ifndef ROWHOUSE_SERVER_CHECKPOINT_MANIFEST_FORMAT_H_
#define ROWHOUSE_SERVER_CHECKPOINT_MANIFEST_FORMAT_H_

/// What all manifests have in common.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/sealed_json.h"

namespace rowhouse::server {

/// An object that begins with what it is, and the format's version.
Json BeginManifest(std::string_view format);

/// `Unseal`, and that it is a `format` of a version that is known.
absl::StatusOr<Json> OpenManifest(std::string_view file, std::string_view text,
                                  std::string_view format);

// Checksums are texts: JSON readers may lose digits of 64-bit numbers. Those
// that read throw `Json::exception` for what is none.

Json ChecksumToJson(uint64_t checksum);
uint64_t ChecksumFromJson(const Json& json);
Json ChecksumsToJson(const std::vector<uint64_t>& checksums);
std::vector<uint64_t> ChecksumsFromJson(const Json& json);

/// Null where there is no base.
Json BaseToJson(const std::optional<BaseTable>& base);
std::optional<BaseTable> BaseFromJson(const Json& json);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_MANIFEST_FORMAT_H_
