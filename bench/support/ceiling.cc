#include "bench/support/ceiling.h"

#include <cblas.h>

#include <algorithm>
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

// The head's products for 1,024 tokens, 2,048 rows and dim 768.
class Products {
 public:
  void Form() {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, tokens_, rows_, dim_,
                1, hidden_.data(), dim_, weights_.data(), dim_, 0,
                logits_.data(), rows_);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, tokens_, dim_, rows_,
                1, logits_.data(), rows_, weights_.data(), dim_, 0,
                gradient_.data(), dim_);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, rows_, dim_, tokens_,
                1, logits_.data(), rows_, hidden_.data(), dim_, 0,
                gradient_.data(), dim_);
  }
  double flops() const { return 3 * 2.0 * tokens_ * rows_ * dim_; }

 private:
  static std::vector<float> Matrix(int rows, int columns) {
    return std::vector<float>(static_cast<size_t>(rows * columns), 0.5F);
  }

  int tokens_ = static_cast<int>(Size(1024, 64));
  int rows_ = static_cast<int>(Size(2048, 64));
  int dim_ = static_cast<int>(Size(768, 64));
  std::vector<float> hidden_ = Matrix(tokens_, dim_);
  std::vector<float> weights_ = Matrix(rows_, dim_);
  std::vector<float> logits_ = Matrix(tokens_, rows_);
  std::vector<float> gradient_ = Matrix(std::max(tokens_, rows_), dim_);
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
  return sampled.Of(products.front().flops() * ThreadCount(), [] {
    OnAllThreads(
        [](int thread) { products[static_cast<size_t>(thread)].Form(); });
  });
}

}  // namespace rowhouse::bench
