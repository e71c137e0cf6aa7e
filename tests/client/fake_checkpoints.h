#ifndef ROWHOUSE_TESTS_CLIENT_FAKE_CHECKPOINTS_H_
#define ROWHOUSE_TESTS_CLIENT_FAKE_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "kernels/mutex.h"
#include "proto/wire/error.h"
#include "proto/wire/status.h"
#include "rowhouse/v1/checkpoint_service.grpc.pb.h"
#include "rowhouse/v1/table_service.grpc.pb.h"

namespace rowhouse::testing {

/// A server of two that has a shard of every table, at event 7, and does with
/// checkpoints what a test says. Without that it writes nothing and ends OK.
class FakeCheckpointServer {
 public:
  template <typename Response>
  using Stream = std::function<absl::Status(grpc::ServerContext&,
                                            grpc::ServerWriter<Response>&)>;

  explicit FakeCheckpointServer(int32_t index)
      : tables_(index), checkpoints_(*this) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterService(&tables_);
    builder.RegisterService(&checkpoints_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeCheckpointServer() { server_->Shutdown(); }

  const std::string& address() const { return address_; }

  // Set before the first call.
  Stream<v1::WriteCheckpointResponse> write;
  Stream<v1::VerifyCheckpointResponse> verify;
  std::function<absl::Status()> publish;
  std::function<absl::Status()> put_state;

  /// The methods that were called, with the checkpoint's name, in order; those
  /// of states with the bytes of each message.
  std::vector<std::string> calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }
  v1::WriteCheckpointRequest write_request() const {
    MutexLock lock(mutex_);
    return write_request_;
  }

 private:
  class Tables final : public v1::TableService::Service {
   public:
    explicit Tables(int32_t index) : index_(index) {}

   private:
    grpc::Status GetTable(grpc::ServerContext*,
                          const v1::GetTableRequest* request,
                          v1::GetTableResponse* response) override {
      v1::Table& table = *response->mutable_table();
      table.set_name(request->name());
      table.mutable_spec()->set_shard_count(2);
      table.mutable_spec()->set_row_count(10);
      table.mutable_spec()->set_dim(1);
      table.mutable_spec()->set_row_dtype(v1::DATA_TYPE_BF16);
      table.mutable_spec()->set_gradient_dtype(v1::DATA_TYPE_BF16);
      table.mutable_spec()->mutable_sparse();
      for (const int64_t bound : {0, 5, 10}) table.add_shard_bounds(bound);
      table.set_shard_index(index_);
      table.set_event(7);
      return grpc::Status::OK;
    }

    const int32_t index_;
  };

  class Service final : public v1::CheckpointService::Service {
   public:
    explicit Service(FakeCheckpointServer& fake) : fake_(fake) {}

   private:
    grpc::Status WriteCheckpoint(
        grpc::ServerContext* context, const v1::WriteCheckpointRequest* request,
        grpc::ServerWriter<v1::WriteCheckpointResponse>* writer) override {
      fake_.Note("write " + request->name());
      {
        MutexLock lock(fake_.mutex_);
        fake_.write_request_ = *request;
      }
      if (fake_.write == nullptr) return grpc::Status::OK;
      return wire::ToGrpc(fake_.write(*context, *writer));
    }
    grpc::Status VerifyCheckpoint(
        grpc::ServerContext* context,
        const v1::VerifyCheckpointRequest* request,
        grpc::ServerWriter<v1::VerifyCheckpointResponse>* writer) override {
      fake_.Note("verify " + request->name());
      return wire::ToGrpc(fake_.verify(*context, *writer));
    }
    grpc::Status PublishCheckpoint(
        grpc::ServerContext*, const v1::PublishCheckpointRequest* request,
        v1::PublishCheckpointResponse* response) override {
      fake_.Note("publish " + request->name());
      response->mutable_checkpoint()->set_name(request->name());
      if (fake_.publish == nullptr) return grpc::Status::OK;
      return wire::ToGrpc(fake_.publish());
    }
    grpc::Status DeleteCheckpoint(grpc::ServerContext*,
                                  const v1::DeleteCheckpointRequest* request,
                                  v1::DeleteCheckpointResponse*) override {
      fake_.Note(
          (request->unfinished_only() ? "delete unfinished " : "delete ") +
          request->name());
      return grpc::Status::OK;
    }
    grpc::Status PutTrainerState(
        grpc::ServerContext*,
        grpc::ServerReader<v1::PutTrainerStateRequest>* reader,
        v1::PutTrainerStateResponse* response) override {
      v1::PutTrainerStateRequest message;
      std::string call = "put";
      int64_t size = 0;
      while (reader->Read(&message)) {
        if (!message.name().empty()) {
          call += " " + message.name() + " of rank " +
                  std::to_string(message.trainer_rank()) + ":";
        }
        call += " " + std::to_string(message.state().size());
        size += std::ssize(message.state());
      }
      response->set_size_bytes(size);
      fake_.Note(call);
      if (fake_.put_state == nullptr) return grpc::Status::OK;
      return wire::ToGrpc(fake_.put_state());
    }

    FakeCheckpointServer& fake_;
  };

  void Note(std::string call) {
    MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
  }

  mutable Mutex mutex_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
  v1::WriteCheckpointRequest write_request_ ABSL_GUARDED_BY(mutex_);
  Tables tables_;
  Service checkpoints_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_FAKE_CHECKPOINTS_H_
