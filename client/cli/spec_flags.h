#ifndef ROWHOUSE_CLIENT_CLI_SPEC_FLAGS_H_
#define ROWHOUSE_CLIENT_CLI_SPEC_FLAGS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "rowhouse/types.h"

namespace rowhouse::cli {

/// The flags of a table's spec: those that are given change what a file, or
/// the defaults, say.
///
/// Stays where it is: the parser refers to it.
class SpecFlags {
 public:
  explicit SpecFlags(CLI::App& command);
  SpecFlags(const SpecFlags&) = delete;
  SpecFlags& operator=(const SpecFlags&) = delete;

  /// The spec that was asked for; `server_count` shards when not said.
  ///
  /// Errors:
  ///   kInvalidArgument  the file cannot be read, something required is
  ///                     missing, or a flag means nothing without another;
  ///                     names the flags.
  absl::StatusOr<client::TableSpec> Spec(int32_t server_count) const;

 private:
  using Edit = std::function<void(client::TableSpec&)>;

  template <typename T>
  void AddValue(CLI::App& command, const std::string& flag,
                const std::string& type_name, const std::string& description,
                std::function<void(client::TableSpec&, T)> edit);
  void AddCountFlag(CLI::App& command, const std::string& flag,
                    const std::string& description,
                    std::function<void(client::TableSpec&, int64_t)> edit);
  template <typename T>
  void AddChoice(CLI::App& command, const std::string& flag,
                 const std::vector<std::pair<std::string, T>>& choices,
                 const std::string& description,
                 std::function<void(client::TableSpec&, T)> edit);
  void AddDense(CLI::App& command);
  absl::Status CheckCompany(const client::TableSpec& spec) const;

  CLI::App& command_;
  std::string file_;
  std::vector<Edit> edits_;
};

/// Reads a textproto of `rowhouse.v1.TableSpec`, or of a server's configuration
/// with one entry `tables { name ... spec ... }`, or of what is in such an
/// entry; the name is left out.
///
/// Errors:
///   kInvalidArgument  it cannot be read or is none; names file and field.
absl::StatusOr<client::TableSpec> ReadSpecFile(const std::string& path);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_SPEC_FLAGS_H_
