/// The n-gram operations on the CPU and on CUDA: equal bits.

#include <algorithm>

#include "kernels/ngram_hash.h"
#include "tests/kernels/differential.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

class NgramDifferentialTest : public DifferentialTest {
 protected:
  static std::vector<int32_t> Tokens(Random& random, int64_t count) {
    std::vector<int32_t> tokens(static_cast<size_t>(count));
    for (int32_t& token : tokens) {
      token = static_cast<int32_t>(random.Integer(0, 50256));
    }
    return tokens;
  }
  static DType AnyType(Random& random) {
    return random.Chance(0.5) ? DType::kBf16 : DType::kFp32;
  }
  static Bytes ZeroRows(int64_t row_count, int64_t dim, DType dtype) {
    return Bytes(static_cast<size_t>(row_count * dim * SizeOf(dtype)), 0xff);
  }
  // A pool and its words, of which most calls use none.
  struct Pool {
    SignPool pool;
    std::vector<uint64_t> words;

    static Pool Of(Random& random, int64_t dim) {
      Pool made;
      made.pool.seed = random.Bits();
      made.pool.row_count = int64_t{1} << random.Integer(0, 13);
      if (random.Chance(0.3)) {
        made.words.resize(
            static_cast<size_t>(made.pool.row_count * ((dim + 63) / 64)));
        for (uint64_t& word : made.words) word = random.Bits();
      }
      return made;
    }
    SignPool In(const uint64_t* memory) const {
      SignPool there = pool;
      there.words = words.empty() ? nullptr : memory;
      return there;
    }
  };

  void Embed(Random& random, int64_t count, int64_t dim) {
    const DType dtype = AnyType(random);
    const int64_t cache_rows = random.Integer(1, 500);
    const Pool pool = Pool::Of(random, dim);
    std::vector<int64_t> slots;
    for (int64_t i = 0; i < 2 * count; ++i) {
      slots.push_back(random.Integer(0, cache_rows - 1));
    }
    SCOPED_TRACE(::testing::Message()
                 << count << " x " << dim << " " << NameOf(dtype));
    ExpectSame(
        {RandomElements(random, dtype, cache_rows * dim, 0.01),
         BytesOf(Tokens(random, count)), BytesOf(slots), BytesOf(pool.words),
         ZeroRows(count, dim, dtype), ZeroRows(2 * count, dim, dtype),
         Bytes(static_cast<size_t>(2 * count) * sizeof(int64_t))},
        [&](const Arrays& arrays) {
          Backend& backend = arrays.backend();
          const auto size = static_cast<size_t>(count);
          const std::span<const int32_t> tokens(arrays.at<int32_t>(1), size);
          const SignPool signs = pool.In(arrays.at<uint64_t>(3));
          absl::Status status = backend.NgramEmbedForward(
              arrays.at(0), dtype, dim, tokens,
              {arrays.at<int64_t>(2), slots.size()}, signs, arrays.at(4));
          status.Update(backend.NgramEmbedBackward(
              arrays.at(4), dtype, dim, tokens, signs, arrays.at(5)));
          status.Update(backend.NgramRowIds(tokens, 84602880,
                                            {arrays.at<int64_t>(6), 2 * size}));
          return status;
        });
  }

  // A cycle's want list, of few tokens or of many, into more or less room.
  void Want(Random& random, int64_t step_count, int64_t most_tokens,
            int64_t table_row_count) {
    const int64_t room = random.Integer(0, 2 * step_count * most_tokens);
    const auto greatest = static_cast<int32_t>(random.Integer(0, 50256));
    SCOPED_TRACE(::testing::Message()
                 << step_count << " steps of tokens up to " << greatest
                 << ", of " << table_row_count << " rows, into " << room);
    std::vector<Bytes> all = {
        Bytes(static_cast<size_t>(room) * sizeof(int64_t), 0xff)};
    std::vector<size_t> counts;
    for (int64_t step = 0; step < step_count; ++step) {
      std::vector<int32_t> tokens =
          Tokens(random, random.Integer(0, most_tokens));
      for (int32_t& token : tokens) token %= greatest + 1;
      counts.push_back(tokens.size());
      all.push_back(BytesOf(tokens));
    }
    std::vector<int64_t> found(2, -1);
    size_t call = 0;
    ExpectSame(all, [&](const Arrays& arrays) {
      std::vector<std::span<const int32_t>> steps;
      for (size_t i = 0; i < counts.size(); ++i) {
        steps.emplace_back(arrays.at<int32_t>(i + 1), counts[i]);
      }
      return arrays.backend().NgramWantList(
          steps, table_row_count,
          {arrays.at<int64_t>(0), static_cast<size_t>(room)}, found[call++]);
    });
    EXPECT_EQ(found[1], found[0]);
    EXPECT_GE(found[0], 0);
  }

  // A cycle of `step_count` steps.
  void Sum(Random& random, int64_t step_count, int64_t most_tokens, int64_t dim,
           int64_t slot_count) {
    const DType gradient_dtype = AnyType(random);
    const DType wire_dtype = AnyType(random);
    const Pool pool = Pool::Of(random, dim);
    SCOPED_TRACE(::testing::Message()
                 << step_count << " steps of " << NameOf(gradient_dtype)
                 << " into " << slot_count << " x " << dim << " "
                 << NameOf(wire_dtype));
    std::vector<Bytes> all = {ZeroRows(slot_count, dim, wire_dtype),
                              BytesOf(pool.words)};
    std::vector<size_t> counts;
    for (int64_t step = 0; step < step_count; ++step) {
      const int64_t count = random.Integer(0, most_tokens);
      counts.push_back(static_cast<size_t>(count));
      all.push_back(BytesOf(Tokens(random, count)));
      all.push_back(BytesOf(RandomSlots(random, 2 * count, slot_count)));
      all.push_back(RandomElements(random, gradient_dtype, count * dim, 0.001));
    }
    ExpectSame(all, [&](const Arrays& arrays) {
      std::vector<NgramStep> steps;
      for (size_t i = 0; i < counts.size(); ++i) {
        steps.push_back({{arrays.at<int32_t>(3 * i + 2), counts[i]},
                         {arrays.at<int64_t>(3 * i + 3), 2 * counts[i]},
                         arrays.at(3 * i + 4)});
      }
      return arrays.backend().SumNgramGradients(
          steps, gradient_dtype, dim, pool.In(arrays.at<uint64_t>(1)),
          slot_count, wire_dtype, arrays.at(0));
    });
  }
};

TEST_F(NgramDifferentialTest, SmallEmbeddings) {
  Random random(81);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(2000); i < cases; ++i) {
    Embed(random, random.Integer(0, 40), random.Integer(1, 300));
    if (HasFatalFailure()) return;
  }
}

TEST_F(NgramDifferentialTest, LargeEmbeddings) {
  Random random(82);
  SCOPED_TRACE(random.Trace());
  for (const int64_t dim : kDims) {
    Embed(random, 3000, dim);
    if (HasFatalFailure()) return;
  }
}

TEST_F(NgramDifferentialTest, SmallWantLists) {
  Random random(85);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(2000); i < cases; ++i) {
    Want(random, random.Integer(0, 5), 60, random.Integer(4, 300000));
    if (HasFatalFailure()) return;
  }
}

TEST_F(NgramDifferentialTest, LargeWantLists) {
  Random random(86);
  SCOPED_TRACE(random.Trace());
  // One tile of rows, whole and not; many; and the largest table.
  for (const int64_t rows :
       {131071, 131072, 131073, 1000000, 84602880, 2147483647}) {
    Want(random, 4, 49152, rows);
    if (HasFatalFailure()) return;
  }
}

TEST_F(NgramDifferentialTest, SmallCycles) {
  Random random(83);
  SCOPED_TRACE(random.Trace());
  for (int64_t i = 0, cases = CaseCount(2000); i < cases; ++i) {
    Sum(random, random.Integer(0, 5), 60, random.Integer(1, 300),
        random.Integer(1, 80));
    if (HasFatalFailure()) return;
  }
}

TEST_F(NgramDifferentialTest, LargeCycles) {
  Random random(84);
  SCOPED_TRACE(random.Trace());
  for (const int64_t dim : kDims) {
    Sum(random, 8, dim > 1000 ? 1000 : 8000, dim, 5000);
    if (HasFatalFailure()) return;
  }
  // More steps than one launch of the sort gathers.
  Sum(random, 150, 100, 32, 300);
}

}  // namespace
}  // namespace rowhouse::kernels
