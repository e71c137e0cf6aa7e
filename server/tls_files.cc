#include "server/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/file.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

template <auto kFree>
struct Freeing {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Bio = std::unique_ptr<BIO, Freeing<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freeing<X509_free>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Freeing<EVP_PKEY_free>>;

Bio Open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// In place of OpenSSL's own, which would ask at the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/,
               void* /*unused*/) {
  return -1;
}

// The first of the certificates in `pem`, each of which must parse; null when
// one does not, or there are none.
Certificate FirstCertificate(const std::string& pem) {
  const Bio bio = Open(pem);
  Certificate first;
  while (true) {
    Certificate next(
        PEM_read_bio_X509(bio.get(), nullptr, NoPassword, nullptr));
    if (next == nullptr) break;
    if (first == nullptr) first = std::move(next);
  }
  // No further begin line is how a good file ends.
  const bool at_end =
      ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return at_end ? std::move(first) : nullptr;
}

PrivateKey FirstPrivateKey(const std::string& pem) {
  const Bio bio = Open(pem);
  PrivateKey key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassword, nullptr));
  ERR_clear_error();
  return key;
}

bool Belongs(const PrivateKey& key, const Certificate& certificate) {
  const bool belongs =
      X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return belongs;
}

absl::Status BadFile(const char* field, const std::string& path,
                     const std::string& wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " names ", path, "; it must hold ", wanted));
}

}  // namespace

absl::StatusOr<TlsOptions> LoadTls(const config::v1::TlsConfig& config) {
  TlsOptions tls;
  ROWHOUSE_ASSIGN_OR_RETURN(tls.certificate,
                            wire::ReadFile(config.certificate_file()));
  const Certificate certificate = FirstCertificate(tls.certificate);
  if (certificate == nullptr) {
    return BadFile("tls.certificate_file", config.certificate_file(),
                   "certificates in PEM");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(tls.private_key,
                            wire::ReadFile(config.private_key_file()));
  const PrivateKey key = FirstPrivateKey(tls.private_key);
  if (key == nullptr) {
    return BadFile("tls.private_key_file", config.private_key_file(),
                   "a private key in PEM, without a password");
  }
  if (!Belongs(key, certificate)) {
    return BadFile("tls.private_key_file", config.private_key_file(),
                   absl::StrCat("the key of the first certificate in ",
                                config.certificate_file()));
  }
  if (config.client_ca_file().empty()) return tls;
  ROWHOUSE_ASSIGN_OR_RETURN(tls.client_ca,
                            wire::ReadFile(config.client_ca_file()));
  if (FirstCertificate(tls.client_ca) == nullptr) {
    return BadFile("tls.client_ca_file", config.client_ca_file(),
                   "certificates in PEM");
  }
  return tls;
}

}  // namespace rowhouse::server
