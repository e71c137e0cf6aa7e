#include "bench/support/ceiling.h"

#include <cblas.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "bench/support/array.h"
#include "bench/support/check.h"
#include "bench/support/run.h"
#include "bench/support/sampled.h"

namespace rowhouse::bench {
namespace {

// `body(thread)` on every thread of the backend at once.
void OnAllThreads(const std::function<void(int thread)>& body) {
  std::vector<std::thread> threads;
  for (int i = 1; i < ThreadCount(); ++i) threads.emplace_back(body, i);
  body(0);
  for (std::thread& thread : threads) thread.join();
}

bool OnCpu() { return TheRun().backend.kind == kernels::BackendKind::kCpu; }

void CopyOnCpu(const std::byte* from, std::byte* to, int64_t size) {
  const int64_t share = size / ThreadCount();
  OnAllThreads([=](int thread) {
    std::memcpy(to + thread * share, from + thread * share,
                static_cast<size_t>(share));
  });
}

// The head's products for 1024 tokens, 2048 rows and dim 768.
class Products {
 public:
  static constexpr int kTokens = 1024;
  static constexpr int kRows = 2048;
  static constexpr int kDim = 768;
  static constexpr double kFlops = 3 * 2.0 * kTokens * kRows * kDim;

  void Form() {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, kTokens, kRows, kDim,
                1, hidden_.data(), kDim, weights_.data(), kDim, 0,
                logits_.data(), kRows);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, kTokens, kDim, kRows,
                1, logits_.data(), kRows, weights_.data(), kDim, 0,
                gradient_.data(), kDim);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kRows, kDim, kTokens,
                1, logits_.data(), kRows, hidden_.data(), kDim, 0,
                gradient_.data(), kDim);
  }

 private:
  std::vector<float> hidden_ = std::vector<float>(kTokens * kDim, 0.5F);
  std::vector<float> weights_ = std::vector<float>(kRows * kDim, 0.25F);
  std::vector<float> logits_ = std::vector<float>(kTokens * kRows);
  std::vector<float> gradient_ = std::vector<float>(kRows * kDim);
};

}  // namespace

double CopyBytesPerSecond() {
  static const int64_t size = Size(int64_t{512} << 20, int64_t{1} << 20);
  static const Array<std::byte> from(size);
  static const Array<std::byte> to(size);
  static SampledRate sampled;
  return sampled.Of(2.0 * static_cast<double>(size), [] {
    if (OnCpu()) {
      CopyOnCpu(from.data(), to.data(), size);
      return;
    }
    Check(TheBackend().Copy(from.data(), to.data(), size));
    Check(TheBackend().Synchronize());
  });
}

double GemmFlopsPerSecond() {
  if (!OnCpu()) return 0;
  static std::vector<Products> products(static_cast<size_t>(ThreadCount()));
  static SampledRate sampled;
  openblas_set_num_threads(1);  // As the backend does: it has its own threads.
  return sampled.Of(Products::kFlops * ThreadCount(), [] {
    OnAllThreads(
        [](int thread) { products[static_cast<size_t>(thread)].Form(); });
  });
}

}  // namespace rowhouse::bench
