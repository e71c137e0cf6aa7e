// Which files a port may be served with.

#include "server/tls_files.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// What `write` writes.
template <typename Write>
std::string PemOf(Write write) {
  BIO* const bio = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(bio), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);  // NOLINT: as it is declared.
  std::string pem(text, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

// A key, and a certificate that it signed itself.
struct Identity {
  Identity() {
    EVP_PKEY* const pair = EVP_EC_gen("P-256");
    X509* const made = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(made), 0);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, pair);
    EXPECT_GT(X509_sign(made, pair, EVP_sha256()), 0);
    certificate = PemOf([&](BIO* to) { return PEM_write_bio_X509(to, made); });
    key = PemOf([&](BIO* to) {
      return PEM_write_bio_PrivateKey(to, pair, nullptr, nullptr, 0, nullptr,
                                      nullptr);
    });
    locked_key = PemOf([&](BIO* to) {
      return PEM_write_bio_PrivateKey(
          to, pair, EVP_aes_256_cbc(),
          reinterpret_cast<const unsigned char*>("pass"), 4, nullptr, nullptr);
    });
    X509_free(made);
    EVP_PKEY_free(pair);
  }

  std::string certificate;
  std::string key;
  std::string locked_key;
};

class TlsFilesTest : public ::testing::Test {
 protected:
  ~TlsFilesTest() override {
    for (const std::string& file : files_) unlink(file.c_str());
  }

  std::string File(const std::string& text) {
    std::string path = ::testing::TempDir() + "/rowhouse_tls_XXXXXX";
    const int file = mkstemp(path.data());
    EXPECT_GE(file, 0);
    close(file);
    std::ofstream(path) << text;
    files_.push_back(path);
    return path;
  }

  absl::StatusOr<server::TlsOptions> Load(const std::string& certificate,
                                          const std::string& key,
                                          const std::string& client_ca = "") {
    config::v1::TlsConfig config;
    config.set_certificate_file(File(certificate));
    config.set_private_key_file(File(key));
    if (!client_ca.empty()) config.set_client_ca_file(File(client_ca));
    return server::LoadTls(config);
  }

  // The file is named that was made `back` files ago.
  void ExpectRefusal(const absl::StatusOr<server::TlsOptions>& loaded,
                     const std::string& field, size_t back) {
    EXPECT_THAT(loaded, StatusIs(kInvalid, "tls." + field + " names " +
                                               files_[files_.size() - back]));
  }

  const Identity mine_;
  const Identity other_;
  std::vector<std::string> files_;
};

TEST_F(TlsFilesTest, ACertificateItsKeyAndAnAuthorityAreTaken) {
  const auto loaded = Load(mine_.certificate + other_.certificate, mine_.key,
                           other_.certificate);
  ASSERT_THAT(loaded, IsOk());
  EXPECT_EQ(loaded->certificate, mine_.certificate + other_.certificate);
  EXPECT_EQ(loaded->private_key, mine_.key);
  EXPECT_EQ(loaded->client_ca, other_.certificate);
}

TEST_F(TlsFilesTest, WhatIsNoCertificateIsRefused) {
  ExpectRefusal(Load("", mine_.key), "certificate_file", 2);
  ExpectRefusal(Load("no PEM", mine_.key), "certificate_file", 2);
  ExpectRefusal(Load(mine_.key, mine_.key), "certificate_file", 2);
  std::string torn = mine_.certificate;
  torn.resize(torn.size() / 2);
  ExpectRefusal(Load(torn, mine_.key), "certificate_file", 2);
  ExpectRefusal(Load(mine_.certificate + torn, mine_.key), "certificate_file",
                2);
}

TEST_F(TlsFilesTest, WhatIsNoKeyOfTheCertificateIsRefused) {
  ExpectRefusal(Load(mine_.certificate, "no PEM"), "private_key_file", 1);
  ExpectRefusal(Load(mine_.certificate, mine_.locked_key), "private_key_file",
                1);
  const auto others = Load(mine_.certificate, other_.key);
  ExpectRefusal(others, "private_key_file", 1);
  EXPECT_THAT(others, StatusIs(kInvalid, "the key of the first certificate"));
}

TEST_F(TlsFilesTest, WhatIsNoAuthorityIsRefused) {
  ExpectRefusal(Load(mine_.certificate, mine_.key, "no PEM"), "client_ca_file",
                1);
}

}  // namespace
}  // namespace rowhouse::testing
