#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TRAIN_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TRAIN_H_

#include "absl/status/status.h"
#include "client/examples/ngram_lm/options.h"

namespace rowhouse::ngram_lm {

/// One trainer's whole run, as `options.trainer_rank` on the servers at
/// `options.addresses`. Rank 0 also makes the tables, evaluates and reports.
///
/// Errors:
///   kInvalidArgument  the text is too small, or not UTF-8.
///   Those of the client library.
absl::Status Train(const Options& options);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_TRAIN_H_
