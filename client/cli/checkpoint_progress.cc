#include "client/cli/checkpoint_progress.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

std::string NoteOn(const client::CheckpointProgress& now) {
  if (now.event_wait <= absl::ZeroDuration()) return "";
  return absl::StrCat("events waited ", Span(now.event_wait));
}

}  // namespace

CheckpointWatch::CheckpointWatch(std::string what, client::Cluster& cluster,
                                 const Context& context)
    : what_(std::move(what)), context_(context) {
  CatchInterrupts();
  interrupts_.emplace([&cluster] { cluster.CancelCalls(); });
}

client::CheckpointCallOptions CheckpointWatch::options() {
  client::CheckpointCallOptions options;
  if (context_.connection.timeout_seconds.has_value()) {
    options.timeout = context_.connection.timeout();
  }
  Begin();
  options.watcher = [this](const client::CheckpointProgress& now) {
    Show(now);
    return true;
  };
  return options;
}

void CheckpointWatch::Begin() {
  progress_.emplace(what_, 0, Progress::Unit::kBytes,
                    StderrScreen(context_.quiet));
}

void CheckpointWatch::Show(const client::CheckpointProgress& now) {
  last_ = now;
  if (now.done_bytes == 0) return Begin();
  progress_->SetTotal(now.total_bytes);
  progress_->Update(now.done_bytes, NoteOn(now));
}

client::CheckpointProgress CheckpointWatch::End() {
  progress_.reset();
  return last_;
}

}  // namespace rowhouse::cli
