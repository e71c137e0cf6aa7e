#include "server/shard/event_commit.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/arithmetic.h"
#include "kernels/dense_table.h"
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

std::array<uint64_t, 8> BitsOf(const kernels::AdamWScalars& scalars) {
  return {std::bit_cast<uint64_t>(scalars.learning_rate),
          std::bit_cast<uint64_t>(scalars.weight_decay),
          std::bit_cast<uint64_t>(scalars.beta1),
          std::bit_cast<uint64_t>(scalars.beta2),
          std::bit_cast<uint64_t>(scalars.eps),
          std::bit_cast<uint64_t>(scalars.bias_correction1),
          std::bit_cast<uint64_t>(scalars.bias_correction2),
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

bool IsBeta(double value) { return value >= 0.0 && value < 1.0; }

// 1 - beta^n, and its quotients finite.
bool IsCorrection(double value) { return value > 0.0 && value <= 1.0; }

}  // namespace

bool SameCommit(const EventCommit& a, const EventCommit& b) {
  if (a.skip != b.skip || a.sessions != b.sessions) return false;
  if (a.skip) return true;
  if (a.adamw.has_value() != b.adamw.has_value()) return false;
  return a.adamw.has_value() ? BitsOf(*a.adamw) == BitsOf(*b.adamw)
                             : BitsOf(a.scalars) == BitsOf(b.scalars);
}

absl::Status CheckUpdate(const EventCommit& commit, const UpdateRule& rule,
                         int32_t trainer_count) {
  if (commit.skip) return absl::OkStatus();
  if (commit.adamw.has_value() != rule.dense) {
    return wire::Error(
        absl::StatusCode::kInvalidArgument, wire::reasons::kBadCommit,
        absl::StrCat("commit.update is ", rule.dense ? "row_adam" : "adamw",
                     "; it must be ", rule.dense ? "adamw" : "row_adam",
                     " or skip for a ", rule.dense ? "dense" : "sparse",
                     " table"),
        {{"field", "commit.update"}});
  }
  const int64_t divisor = DivisorOf(rule.reduction, trainer_count);
  return rule.dense ? CheckScalars(*commit.adamw, divisor)
                    : CheckScalars(commit.scalars, divisor);
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
  if (!IsBeta(scalars.beta2)) {
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

absl::Status CheckScalars(const kernels::AdamWScalars& scalars,
                          int64_t divisor) {
  const kernels::AdamWFactors factors =
      kernels::NarrowScalars(scalars, divisor);
  if (!IsBeta(scalars.beta1)) {
    return BadScalar("beta1", scalars.beta1, "in [0, 1)");
  }
  if (!IsBeta(scalars.beta2)) {
    return BadScalar("beta2", scalars.beta2, "in [0, 1)");
  }
  if (!IsCorrection(scalars.bias_correction1)) {
    return BadScalar("bias_correction1", scalars.bias_correction1, "in (0, 1]");
  }
  if (!IsCorrection(scalars.bias_correction2) ||
      factors.root_correction2 == 0.0F) {
    return BadScalar("bias_correction2", scalars.bias_correction2,
                     "in (0, 1], and its root above 0 in fp32");
  }
  if (!kernels::IsFinite(factors.step)) {
    return BadScalar("learning_rate", scalars.learning_rate,
                     "finite in fp32 when divided by bias_correction1");
  }
  if (!kernels::IsFinite(factors.decay_mul)) {
    return BadScalar("weight_decay", scalars.weight_decay,
                     "finite in fp32, and so must be learning_rate times it");
  }
  if (!(scalars.eps >= 0.0) || !kernels::IsFinite(factors.eps)) {
    return BadScalar("eps", scalars.eps, "at least 0 and finite in fp32");
  }
  if (!kernels::IsFinite(factors.grad_mul)) {
    return BadScalar("gradient_scale", scalars.gradient_scale,
                     "finite in fp32");
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::server
