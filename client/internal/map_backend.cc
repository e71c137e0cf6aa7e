#include "client/internal/map_backend.h"

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/mutex.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

class MapBackends {
 public:
  explicit MapBackends(int device_index) : device_index_(device_index) {}

  absl::StatusOr<std::shared_ptr<kernels::Backend>> Find(
      std::string_view kind) {
    kernels::BackendOptions options;
    options.device_index = device_index_;
    if (kind == "cuda") {
      options.kind = kernels::BackendKind::kCuda;
    } else if (kind != "cpu") {
      return absl::UnimplementedError(absl::StrCat(
          "memory of the kind '", std::string(kind), "', wanted cpu or cuda"));
    }
    MutexLock lock(mutex_);
    std::shared_ptr<kernels::Backend>& made = made_[options.kind];
    if (made == nullptr) {
      ROWHOUSE_ASSIGN_OR_RETURN(made, kernels::MakeBackend(options));
    }
    return made;
  }

 private:
  const int device_index_;
  Mutex mutex_;
  std::map<kernels::BackendKind, std::shared_ptr<kernels::Backend>> made_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace

MapBackend ShareMapBackends(int device_index) {
  return [backends = std::make_shared<MapBackends>(device_index)](
             std::string_view kind) { return backends->Find(kind); };
}

}  // namespace rowhouse::client::internal
