#ifndef ROWHOUSE_SERVER_SERVICE_EVENT_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_EVENT_SERVICE_H_

#include "absl/time/time.h"
#include "rowhouse/v1/event_service.grpc.pb.h"
#include "server/service/active_calls.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// `rowhouse.v1.EventService`: checks requests and hands them to the shard.
///
/// Thread-safe.
class EventService final : public v1::EventService::CallbackService {
 public:
  /// Both must outlive it.
  EventService(TableRegistry& tables, ActiveCalls& calls)
      : tables_(tables), calls_(calls) {}

  grpc::ServerUnaryReactor* OpenSession(
      grpc::CallbackServerContext* context,
      const v1::OpenSessionRequest* request,
      v1::OpenSessionResponse* response) override;
  grpc::ServerUnaryReactor* KeepAlive(grpc::CallbackServerContext* context,
                                      const v1::KeepAliveRequest* request,
                                      v1::KeepAliveResponse* response) override;
  grpc::ServerUnaryReactor* SealContribution(
      grpc::CallbackServerContext* context,
      const v1::SealContributionRequest* request,
      v1::SealContributionResponse* response) override;
  grpc::ServerUnaryReactor* DiscardContribution(
      grpc::CallbackServerContext* context,
      const v1::DiscardContributionRequest* request,
      v1::DiscardContributionResponse* response) override;
  grpc::ServerUnaryReactor* GetEventState(
      grpc::CallbackServerContext* context,
      const v1::GetEventStateRequest* request,
      v1::GetEventStateResponse* response) override;
  grpc::ServerUnaryReactor* GetEventStatistics(
      grpc::CallbackServerContext* context,
      const v1::GetEventStatisticsRequest* request,
      v1::GetEventStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* CommitEvent(
      grpc::CallbackServerContext* context,
      const v1::CommitEventRequest* request,
      v1::CommitEventResponse* response) override;
  grpc::ServerWriteReactor<v1::RecordEventsResponse>* RecordEvents(
      grpc::CallbackServerContext* context,
      const v1::RecordEventsRequest* request) override;

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_EVENT_SERVICE_H_
