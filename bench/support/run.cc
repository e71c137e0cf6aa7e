#include "bench/support/run.h"

#include <cblas.h>

#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/support/kept.h"
#include "bench/support/role.h"
#include "benchmark/benchmark.h"

namespace rowhouse::bench {
namespace {

RunOptions the_run;                       // NOLINT: one run a process.
kernels::Backend* the_backend = nullptr;  // NOLINT: never freed.

// Google Benchmark's console, which also knows whether a case failed.
class Reporter : public benchmark::ConsoleReporter {
 public:
  Reporter() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) failed_ = failed_ || run.error_occurred;
    ConsoleReporter::ReportRuns(runs);
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

bool TakeNumber(std::string_view argument, std::string_view flag, int& value) {
  return argument.starts_with(flag) &&
         absl::SimpleAtoi(std::string(argument.substr(flag.size())), &value) &&
         value >= 0;
}

bool TakeFlag(std::string_view argument) {
  if (argument == "--quick") {
    the_run.quick = true;
  } else if (argument == "--backend=cpu") {
    the_run.backend.kind = kernels::BackendKind::kCpu;
  } else if (argument == "--backend=cuda") {
    the_run.backend.kind = kernels::BackendKind::kCuda;
  } else {
    return TakeNumber(argument, "--device=", the_run.backend.device_index) ||
           TakeNumber(argument, "--server-device=", the_run.server_device) ||
           TakeNumber(argument, "--threads=", the_run.backend.thread_count);
  }
  return true;
}

void AddContext() {
  benchmark::AddCustomContext("backend", the_backend->Description());
  benchmark::AddCustomContext("backend_threads", absl::StrCat(ThreadCount()));
  benchmark::AddCustomContext("quick", the_run.quick ? "yes" : "no");
  benchmark::AddCustomContext("openblas_kernels", openblas_get_corename());
}

int Refuse(std::string_view fault) {
  std::cerr << fault << '\n';
  return 2;
}

}  // namespace

const RunOptions& TheRun() { return the_run; }

kernels::Backend& TheBackend() { return *the_backend; }

int ThreadCount() {
  const int asked = the_run.backend.thread_count;
  return asked > 0 ? asked
                   : static_cast<int>(std::thread::hardware_concurrency());
}

int Main(int argc, char** argv) {
  if (PlayRole()) return 0;
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    if (i == 0 || !TakeFlag(argv[i])) rest.push_back(argv[i]);
  }
  int rest_count = static_cast<int>(rest.size());
  benchmark::Initialize(&rest_count, rest.data());
  if (rest_count > 1) {
    return Refuse(absl::StrCat(
        "unknown flag: ", rest[1],
        " (wanted: --backend=cpu|cuda, --device=N, --server-device=N, "
        "--threads=N, --quick, or one of Google Benchmark's; --help lists "
        "those)"));
  }
  absl::StatusOr<std::unique_ptr<kernels::Backend>> backend =
      kernels::MakeBackend(the_run.backend);
  if (!backend.ok()) return Refuse(backend.status().ToString());
  the_backend = backend->release();

  AddContext();
  Reporter reporter;
  const size_t ran = benchmark::RunSpecifiedBenchmarks(&reporter);
  TheKept() = {};  // Its memory goes before the backend's own statics.
  benchmark::Shutdown();
  return ran > 0 && !reporter.failed() ? 0 : 1;
}

}  // namespace rowhouse::bench
