#ifndef ROWHOUSE_BENCH_SUPPORT_KEPT_H_
#define ROWHOUSE_BENCH_SUPPORT_KEPT_H_

#include <cstdint>
#include <memory>
#include <typeindex>
#include <vector>

namespace rowhouse::bench {

/// What a benchmark works on. Google Benchmark calls a function several times;
/// what is dear to make is made once and kept until something else is asked
/// for, so that one at a time is in memory.
struct KeptObject {
  std::type_index type = typeid(void);
  std::vector<int64_t> arguments;
  std::shared_ptr<void> object;
};

inline KeptObject& TheKept() {
  static KeptObject kept;
  return kept;
}

/// The kept `Work(arguments...)`, made now if another was kept.
template <typename Work, typename... Arguments>
Work& Kept(Arguments... arguments) {
  KeptObject& kept = TheKept();
  const std::vector<int64_t> wanted = {static_cast<int64_t>(arguments)...};
  if (kept.type != typeid(Work) || kept.arguments != wanted) {
    kept = {};
    kept = {typeid(Work), wanted, std::make_shared<Work>(arguments...)};
  }
  return *static_cast<Work*>(kept.object.get());
}

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_KEPT_H_
