#ifndef ROWHOUSE_SERVER_SERVICE_LM_HEAD_SERVICE_H_
#define ROWHOUSE_SERVER_SERVICE_LM_HEAD_SERVICE_H_

#include "rowhouse/v1/lm_head_service.grpc.pb.h"
#include "server/service/active_calls.h"
#include "server/service/linear_cross_entropy_call.h"
#include "server/table_registry.h"

namespace rowhouse::server {

/// `rowhouse.v1.LmHeadService`.
///
/// Thread-safe.
class LmHeadService final : public v1::LmHeadService::CallbackService {
 public:
  /// All must outlive it.
  LmHeadService(TableRegistry& tables, ActiveCalls& calls,
                const Mappings& mappings, const Links& links)
      : tables_(tables), calls_(calls), mappings_(mappings), links_(links) {}

  grpc::ServerBidiReactor<v1::LinearCrossEntropyRequest,
                          v1::LinearCrossEntropyResponse>*
  LinearCrossEntropy(grpc::CallbackServerContext* context) override {
    auto* const call = new LinearCrossEntropyCall(calls_, *context, tables_,
                                                  mappings_, links_);
    call->Start();
    return call;
  }

 private:
  TableRegistry& tables_;
  ActiveCalls& calls_;
  const Mappings& mappings_;
  const Links& links_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_LM_HEAD_SERVICE_H_
