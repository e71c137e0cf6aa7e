#include "server/shard/event_commit.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/arithmetic.h"
#include "kernels/row_table.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

using kernels::RowAdamScalars;

std::array<uint64_t, 5> BitsOf(const RowAdamScalars& scalars) {
  return {std::bit_cast<uint64_t>(scalars.step_size),
          std::bit_cast<uint64_t>(scalars.decay),
          std::bit_cast<uint64_t>(scalars.beta2),
          std::bit_cast<uint64_t>(scalars.eps),
          std::bit_cast<uint64_t>(scalars.gradient_scale)};
}

absl::Status BadScalar(std::string_view field, double value,
                       std::string_view wanted) {
  const absl::string_view name(field.data(), field.size());
  return wire::Error(
      absl::StatusCode::kInvalidArgument, wire::reasons::kBadScalar,
      absl::StrCat(name, " is ", value, "; it must be ",
                   absl::string_view(wanted.data(), wanted.size())),
      {{"field", std::string(field)}, {"value", absl::StrCat(value)}});
}

}  // namespace

bool SameCommit(const EventCommit& a, const EventCommit& b) {
  return a.skip == b.skip && a.sessions == b.sessions &&
         (a.skip || BitsOf(a.scalars) == BitsOf(b.scalars));
}

absl::Status CheckScalars(const RowAdamScalars& scalars, int64_t divisor) {
  const kernels::RowAdamFactors factors =
      kernels::NarrowScalars(scalars, divisor);
  if (!kernels::IsFinite(factors.step_size)) {
    return BadScalar("step_size", scalars.step_size, "finite in fp32");
  }
  if (!kernels::IsFinite(factors.decay)) {
    return BadScalar("decay", scalars.decay, "finite in fp32");
  }
  if (!(scalars.beta2 >= 0.0 && scalars.beta2 < 1.0)) {
    return BadScalar("beta2", scalars.beta2, "in [0, 1)");
  }
  if (!(scalars.eps >= 0.0) || !kernels::IsFinite(factors.eps)) {
    return BadScalar("eps", scalars.eps, "at least 0 and finite in fp32");
  }
  if (!kernels::IsFinite(factors.grad_mul) ||
      !kernels::IsFinite(factors.sq_mul)) {
    return BadScalar("gradient_scale", scalars.gradient_scale,
                     "finite in fp32, and so must be its square");
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
