#include "server/service/table_list.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "kernels/mutex.h"
#include "proto/wire/reasons.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

constexpr int64_t kDefaultPageSize = 100;
constexpr int64_t kMaxPageSize = 1000;
// Of specs and bounds in one page: far below the 4 MiB of a message.
constexpr int64_t kMaxPageBytes = int64_t{1} << 20;

int64_t ListedBytes(const ServedTable& table) {
  const auto spec = static_cast<int64_t>(table.spec.ByteSizeLong());
  const auto signs =
      static_cast<int64_t>(table.spec.ngram().sign_words().size());
  const int64_t bounds = 8 * (int64_t{table.spec.shard_count()} + 1);
  return spec - signs + bounds + 256;
}

// A token is the name of the last table before the page.
absl::StatusOr<std::string> NameBefore(const std::string& page_token) {
  if (page_token.empty()) return std::string();
  std::string name;
  if (absl::WebSafeBase64Unescape(page_token, &name) &&
      CheckTableName(name).ok()) {
    return name;
  }
  return FieldError(reasons::kBadPage, "page_token",
                    std::string_view(Quoted(page_token)),
                    "the next_page_token of an answer");
}

// The answers of the shards of one page. The last one ends the call.
class PageAnswer {
 public:
  PageAnswer(TablePage page, UnaryCall& call, v1::ListTablesResponse* response)
      : page_(std::move(page)),
        call_(call),
        response_(response),
        infos_(page_.tables.size()),
        open_(page_.tables.size()) {}

  void Set(size_t i, absl::StatusOr<ShardInfo> info) {
    {
      MutexLock lock(mutex_);
      if (info.ok()) {
        infos_[i] = *std::move(info);
      } else if (info.status().code() != absl::StatusCode::kNotFound) {
        status_ = info.status();
      }
      if (--open_ > 0) return;
    }
    End();
  }

  void End() {
    for (size_t i = 0; i < infos_.size(); ++i) {
      if (!infos_[i].has_value()) continue;
      v1::Table& table = *response_->add_tables();
      table = ToProto(*page_.tables[i], *infos_[i]);
      if (table.spec().has_ngram()) {
        table.mutable_spec()->mutable_ngram()->clear_sign_words();
      }
    }
    response_->set_next_page_token(page_.next_page_token);
    page_.tables.clear();  // Nothing is held beyond the call.
    call_.End(status_);
  }

 private:
  TablePage page_;
  UnaryCall& call_;
  v1::ListTablesResponse* const response_;
  Mutex mutex_;
  // Written under the mutex; read by `End`, after the last write.
  std::vector<std::optional<ShardInfo>> infos_;
  size_t open_;
  absl::Status status_;
};

}  // namespace

v1::Table ToProto(const ServedTable& table, const ShardInfo& info) {
  v1::Table proto;
  proto.set_name(table.name);
  *proto.mutable_spec() = table.spec;
  const ShardSpec& spec = table.shard->spec();
  const std::vector<int64_t>& bounds = spec.placement.bounds();
  proto.mutable_shard_bounds()->Add(bounds.begin(), bounds.end());
  proto.set_shard_index(spec.shard_index);
  proto.set_event(info.event);
  for (const TrainerCountChange& change : info.trainer_counts) {
    v1::TrainerCountChange& out = *proto.add_trainer_counts();
    out.set_from_event(change.from_event);
    out.set_trainer_count(change.trainer_count);
  }
  proto.set_reserved_bytes(table.reserved_bytes);
  return proto;
}

absl::StatusOr<TablePage> FindPage(const v1::ListTablesRequest& request,
                                   const TableRegistry& tables) {
  if (request.page_size() < 0) {
    return FieldError(reasons::kBadPage, "page_size",
                      int64_t{request.page_size()}, "at least 0");
  }
  absl::StatusOr<std::string> before = NameBefore(request.page_token());
  if (!before.ok()) return before.status();
  const int64_t size =
      request.page_size() == 0
          ? kDefaultPageSize
          : std::min(int64_t{request.page_size()}, kMaxPageSize);
  TablePage page;
  page.tables = tables.ListAfter(*before, size + 1);
  size_t count = 0;
  int64_t bytes = 0;
  while (count < page.tables.size() && static_cast<int64_t>(count) < size) {
    bytes += ListedBytes(*page.tables[count]);
    if (count > 0 && bytes > kMaxPageBytes) break;
    ++count;
  }
  if (count < page.tables.size()) {
    page.tables.resize(count);
    page.next_page_token = absl::WebSafeBase64Escape(page.tables.back()->name);
  }
  return page;
}

void AnswerPage(TablePage page, UnaryCall& call,
                v1::ListTablesResponse* response) {
  const std::vector<std::shared_ptr<ServedTable>> tables = page.tables;
  const auto answer =
      std::make_shared<PageAnswer>(std::move(page), call, response);
  if (tables.empty()) return answer->End();
  for (size_t i = 0; i < tables.size(); ++i) {
    tables[i]->shard->GetInfo(call.call(),
                              [answer, i](absl::StatusOr<ShardInfo> info) {
                                answer->Set(i, std::move(info));
                              });
  }
}

}  // namespace rowhouse::server
