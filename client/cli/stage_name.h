#ifndef ROWHOUSE_CLIENT_CLI_STAGE_NAME_H_
#define ROWHOUSE_CLIENT_CLI_STAGE_NAME_H_

#include "rowhouse/observer.h"

namespace rowhouse::cli {

/// `want list`, `ids sent`, ...
constexpr const char* NameOf(client::Stage stage) {
  switch (stage) {
    case client::Stage::kWantList:
      return "want list";
    case client::Stage::kPullWait:
      return "pull wait";
    case client::Stage::kEmbed:
      return "embed";
    case client::Stage::kAccumulate:
      return "accumulate";
    case client::Stage::kSum:
      return "sum per row";
    case client::Stage::kSendIds:
      return "ids sent";
    case client::Stage::kAwaitRows:
      return "rows awaited";
    case client::Stage::kTakeRows:
      return "rows taken";
    case client::Stage::kPush:
      return "push";
    case client::Stage::kSeal:
      return "seal";
    case client::Stage::kCommit:
      return "commit";
    case client::Stage::kAwaitEvent:
      return "event awaited";
  }
  return "";
}

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_STAGE_NAME_H_
