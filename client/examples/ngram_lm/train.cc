#include "client/examples/ngram_lm/train.h"

#include "absl/status/status.h"
#include "client/examples/ngram_lm/options.h"

namespace rowhouse::ngram_lm {

absl::Status Train(const Options& /*options*/) {
  return absl::UnimplementedError("the client has no dense tables yet");
}

}  // namespace rowhouse::ngram_lm
