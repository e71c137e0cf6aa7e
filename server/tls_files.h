#ifndef ROWHOUSE_SERVER_TLS_FILES_H_
#define ROWHOUSE_SERVER_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "rowhouse/config/v1/server_config.pb.h"

namespace rowhouse::server {

/// TLS of the port, as PEM text.
struct TlsOptions {
  std::string certificate;
  std::string private_key;
  std::string client_ca;  ///< Empty: clients need no certificate.
};

/// Reads what `config` names, and checks that gRPC can serve with it: which
/// itself would only say that it cannot.
///
/// Errors:
///   kNotFound         a file cannot be read.
///   kInvalidArgument  a file does not hold what it should in PEM, or the key
///                     is another certificate's; names the file.
absl::StatusOr<TlsOptions> LoadTls(const config::v1::TlsConfig& config);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TLS_FILES_H_
