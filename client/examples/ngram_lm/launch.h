#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_LAUNCH_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_LAUNCH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/examples/ngram_lm/options.h"

namespace rowhouse::ngram_lm {

/// Starts the servers, on free ports, then the trainers: this program again,
/// with `arguments` and what makes it a trainer. Copies what they print, until
/// all trainers have ended; then the servers drain. No process is left behind,
/// whatever ends this one.
///
/// Call it from the main thread.
///
/// Errors:
///   kNotFound     there is no such server program.
///   kUnavailable  a server did not start; the output folder cannot be made or
///                 written.
///   kAborted      a process ended before its time, as a trainer does without
///                 its text; names it.
absl::Status Launch(const Options& options,
                    const std::vector<std::string>& arguments);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_LAUNCH_H_
