#include "tests/server/service/bad_input_cases.h"

namespace rowhouse::testing {
namespace {

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kPrecondition =
    absl::StatusCode::kFailedPrecondition;

BadInput On(const std::string& method, const std::string& name,
            const std::string& fields, absl::StatusCode code,
            const std::string& reason, const std::string& message) {
  return {name, method, {"table: 'tables/t' " + fields}, code, reason, message};
}

// A commit of event 1 by rank 0.
BadInput Commit(const std::string& name, const std::string& update,
                absl::StatusCode code, const std::string& reason,
                const std::string& message) {
  return On("CommitEvent", name,
            "trainer { session: 3 } event: 1 commit { sessions: [3, 1] " +
                update + " }",
            code, reason, message);
}

std::vector<BadInput> BadSessionInputs() {
  return {
      On("OpenSession", "NoTrainer", "owner: 1", kInvalid, "MALFORMED",
         "trainer is not set"),
      On("OpenSession", "NoOwner", "trainer { session: 4 }", kInvalid,
         "BAD_SESSION", "owner is 0"),
      On("OpenSession", "NumberZero", "trainer {} owner: 1", kInvalid,
         "BAD_SESSION", "trainer.session is 0"),
      On("OpenSession", "NumberNegative", "trainer { session: -1 } owner: 1",
         kInvalid, "BAD_SESSION", "trainer.session is -1"),
      On("OpenSession", "NumberPassed", "trainer { session: 2 } owner: 1",
         absl::StatusCode::kAborted, "FENCED", "newest session is 3"),
      On("OpenSession", "NumberOfAnother", "trainer { session: 3 } owner: 2",
         absl::StatusCode::kAborted, "FENCED", "another owner's"),
      On("OpenSession", "RankAfterLast",
         "trainer { trainer_rank: 2 session: 1 } owner: 1", kInvalid,
         "BAD_RANK", "trainer_rank is 2; it must be in [0, 2)"),
      On("OpenSession", "RankNegative",
         "trainer { trainer_rank: -1 session: 1 } owner: 1", kInvalid,
         "BAD_RANK", "trainer.trainer_rank is -1"),
      On("KeepAlive", "Fenced", "trainer { session: 2 }",
         absl::StatusCode::kAborted, "FENCED", "newest session is 3"),
      On("KeepAlive", "NeverOpened", "trainer { session: 9 }", kPrecondition,
         "NO_SESSION", "session 9"),
  };
}

std::vector<BadInput> BadSealInputs() {
  return {
      On("SealContribution", "NoEvent", "trainer { session: 3 }", kInvalid,
         "BAD_EVENT", "event is 0"),
      On("SealContribution", "Ahead", "trainer { session: 3 } event: 3",
         kPrecondition, "EVENT_AHEAD", "event is 3"),
      On("SealContribution", "CountNegative",
         "trainer { session: 3 } event: 1 part_count: -1", kInvalid, "BAD_PART",
         "part_count is -1"),
      On("SealContribution", "CountOverLimit",
         "trainer { session: 3 } event: 1 part_count: 5", kInvalid, "BAD_PART",
         "part_count is 5; it must be in [0, 4]"),
      On("SealContribution", "PartsMissing",
         "trainer { session: 3 } event: 1 part_count: 2", kPrecondition,
         "PARTS_MISSING", "0"),
      On("DiscardContribution", "NoEvent", "trainer { session: 3 }", kInvalid,
         "BAD_EVENT", "event is 0"),
      On("GetEventState", "SealedNegative", "wait_sealed_event: -1", kInvalid,
         "BAD_EVENT", "wait_sealed_event is -1"),
      On("GetEventState", "AppliedNegative", "wait_applied_event: -1", kInvalid,
         "BAD_EVENT", "wait_applied_event is -1"),
      On("GetEventStatistics", "NotSealed", "event: 1", kPrecondition,
         "NOT_SEALED", "1"),
      On("GetEventStatistics", "Ahead", "event: 2", kPrecondition,
         "EVENT_AHEAD", "event is 2"),
      On("GetEventStatistics", "NoEvent", "", kInvalid, "BAD_EVENT",
         "event is 0"),
  };
}

}  // namespace

std::vector<BadInput> BadEventInputs() {
  std::vector<BadInput> inputs = {
      Commit("NotSealed", "skip {}", kPrecondition, "NOT_SEALED", "1"),
      Commit("NoUpdate", "", kInvalid, "MALFORMED", "update is not set"),
      Commit("OfDenseTable", "adamw {}", kInvalid, "BAD_COMMIT",
             "commit.update is adamw; it must be row_adam or skip"),
      Commit("Beta2One", "row_adam { beta2: 1 }", kInvalid, "BAD_SCALAR",
             "beta2 is 1; it must be in [0, 1)"),
      Commit("Beta2Nan", "row_adam { beta2: nan }", kInvalid, "BAD_SCALAR",
             "beta2 is nan"),
      Commit("EpsNegative", "row_adam { eps: -1 }", kInvalid, "BAD_SCALAR",
             "eps is -1"),
      Commit("StepInfinite", "row_adam { step_size: inf }", kInvalid,
             "BAD_SCALAR", "step_size is inf"),
      Commit("StepOverFp32", "row_adam { step_size: 1e39 }", kInvalid,
             "BAD_SCALAR", "step_size is 1e+39; it must be finite in fp32"),
      Commit("DecayNan", "row_adam { decay: nan }", kInvalid, "BAD_SCALAR",
             "decay is nan"),
      Commit("ScaleSquareOverFp32", "row_adam { gradient_scale: 1e20 }",
             kInvalid, "BAD_SCALAR", "gradient_scale is 1e+20"),
      Commit("SessionZero", "sessions: 0 skip {}", kInvalid, "BAD_SESSION",
             "commit.sessions[2] is 0"),
      On("CommitEvent", "NoCommit", "trainer { session: 3 } event: 1", kInvalid,
         "MALFORMED", "commit is not set"),
      On("CommitEvent", "NotRank0",
         "trainer { trainer_rank: 1 session: 1 } event: 1 "
         "commit { sessions: [3, 1] skip {} }",
         kPrecondition, "NOT_RANK_0", "1"),
      On("CommitEvent", "Ahead",
         "trainer { session: 3 } event: 2 commit { sessions: [3, 1] skip {} }",
         kPrecondition, "EVENT_AHEAD", "event is 2"),
      On("CommitEvent", "Fenced",
         "trainer { session: 2 } event: 1 commit { sessions: [2, 1] skip {} }",
         absl::StatusCode::kAborted, "FENCED", "newest session is 3"),
  };
  for (const BadInput& input : BadSessionInputs()) inputs.push_back(input);
  for (const BadInput& input : BadSealInputs()) inputs.push_back(input);
  return inputs;
}

}  // namespace rowhouse::testing
