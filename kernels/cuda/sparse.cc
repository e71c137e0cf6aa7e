#include "kernels/cuda/sparse.h"

namespace rowhouse::kernels::cuda {

absl::Status InitializeRows(Stream&, const RowTable&, const Initializer&, bool) { return absl::UnimplementedError("InitializeRows"); }
absl::Status GatherRows(Stream&, const RowTable&, std::span<const int64_t>, void*) { return absl::UnimplementedError("GatherRows"); }
absl::Status WriteRows(Stream&, const RowTable&, int64_t, int64_t, const void*) { return absl::UnimplementedError("WriteRows"); }
absl::Status ApplyRowAdamEvent(Stream&, const RowTable&, const RowAdamEvent&, EventReport&) { return absl::UnimplementedError("ApplyRowAdamEvent"); }
absl::Status BringCurrent(Stream&, const RowTable&, const Beta2History&, std::span<const int64_t>) { return absl::UnimplementedError("BringCurrent"); }
absl::Status MergedStatistics(Stream&, std::span<const GradientPart>, int64_t, DType, GradientStatistics&) { return absl::UnimplementedError("MergedStatistics"); }
absl::Status Digest(Stream&, const RowTable&, const Beta2History&, uint64_t&) { return absl::UnimplementedError("Digest"); }
absl::Status LandRows(Stream&, const void*, void*, int64_t, int64_t, DType, int64_t, ContentSum&, RowScan&) { return absl::UnimplementedError("LandRows"); }

}
