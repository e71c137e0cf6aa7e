#ifndef ROWHOUSE_CLIENT_INTERNAL_RECORD_CONVERT_H_
#define ROWHOUSE_CLIENT_INTERNAL_RECORD_CONVERT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "client/internal/record_stream.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "rowhouse/v1/event_service.pb.h"

namespace rowhouse::client::internal {

/// Events and parts, as they travel and as push logs hold them.
///
/// Errors of `FromProto`:
///   kUnimplemented  an element type that this library does not know.
///   kDataLoss       a part of no kind, or counts that do not agree.
RecordingStart FromProto(const v1::RecordingStart& proto);
RecordedEvent FromProto(const v1::RecordedEvent& proto);
/// Takes the payload out of `proto`.
absl::StatusOr<RecordedPart> TakeFromProto(v1::RecordedPart& proto);

void Fill(const RecordedEvent& event, v1::RecordedEvent& proto);
/// Takes the payload out of `part`.
void TakeInto(RecordedPart& part, v1::RecordedPart& proto);

using TrainerCountsProto =
    google::protobuf::RepeatedPtrField<v1::TrainerCountChange>;
std::vector<TrainerCountChange> FromProto(const TrainerCountsProto& proto);
void Fill(const std::vector<TrainerCountChange>& changes,
          TrainerCountsProto& proto);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_RECORD_CONVERT_H_
