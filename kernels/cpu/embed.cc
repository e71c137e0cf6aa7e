#include "kernels/cpu/embed.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/merge.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/sign_row.h"
#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cpu {
namespace {

// Where an entry's row gradient comes from, packed into `Entry::source`.
struct GradientSource {
  uint32_t step;
  uint32_t position;  // In [0, 2T).

  uint64_t Pack() const { return uint64_t{step} << 32 | position; }
  static GradientSource Of(const Entry& entry) {
    return {static_cast<uint32_t>(entry.source >> 32),
            static_cast<uint32_t>(entry.source)};
  }
};

EntryList EntriesOf(Executor& executor, std::span<const NgramStep> steps) {
  int64_t count = 0;
  for (const NgramStep& step : steps) {
    count += static_cast<int64_t>(step.slots.size());
  }
  EntryList entries(count);
  Entry* to = entries.data.get();
  for (size_t step = 0; step < steps.size(); ++step) {
    for (size_t i = 0; i < steps[step].slots.size(); ++i) {
      const GradientSource source = {static_cast<uint32_t>(step),
                                     static_cast<uint32_t>(i)};
      *to++ = {steps[step].slots[i], source.Pack()};
    }
  }
  SortBySlot(executor, entries);
  return entries;
}

// One body's share of a cycle's sums, with its scratch.
template <typename Gradient, typename Wire>
class SumShare {
 public:
  SumShare(std::span<const NgramStep> steps, int64_t dim, const SignPool& pool,
           Wire* out)
      : steps_(steps),
        dim_(dim),
        sign_row_count_(pool.row_count),
        out_(out),
        signs_(pool, dim),
        sum_(dim) {}

  void Prefetch(const Entry& entry) const {
    PrefetchRow(RowAt(GradientSource::Of(entry)),
                dim_ * int64_t{sizeof(Gradient)});
  }

  void Write(std::span<const Entry> run) {
    sum_.Start();
    for (const Entry& entry : run) {
      const GradientSource source = GradientSource::Of(entry);
      const Gradient* row = RowAt(source);
      signs_.Load(SignRowAt(source));
      sum_.Add([&, row](int64_t j) { return Widen(signs_.Flip(row[j], j)); },
               FetchNothing);
    }
    const float* sum = sum_.Finish();
    Wire* to = out_ + run.front().slot * dim_;
    for (int64_t j = 0; j < dim_; ++j) to[j] = Narrow<Wire>(sum[j]);
  }

 private:
  // Position of the token that `position` of [0, 2T) belongs to.
  int64_t TokenAt(GradientSource source) const {
    const auto token_count =
        static_cast<int64_t>(steps_[source.step].tokens.size());
    return source.position < token_count ? source.position
                                         : source.position - token_count;
  }
  const Gradient* RowAt(GradientSource source) const {
    return static_cast<const Gradient*>(steps_[source.step].gradient) +
           TokenAt(source) * dim_;
  }
  int64_t SignRowAt(GradientSource source) const {
    const int32_t* tokens = steps_[source.step].tokens.data();
    const int64_t t = TokenAt(source);
    return t == int64_t{source.position}
               ? BigramSignRow(tokens, t, sign_row_count_)
               : TrigramSignRow(tokens, t, sign_row_count_);
  }

  const std::span<const NgramStep> steps_;
  const int64_t dim_;
  const int64_t sign_row_count_;
  Wire* const out_;
  SignRow signs_;
  RowRunSum sum_;
};

template <typename Gradient, typename Wire>
void WriteSums(Executor& executor, std::span<const NgramStep> steps,
               int64_t dim, const SignPool& pool, const EntryList& entries,
               Wire* out) {
  VectorFor(executor, entries.size, RowGrain(dim * int64_t{sizeof(Gradient)}),
            [&](int64_t begin, int64_t end) {
              SumShare<Gradient, Wire> share(steps, dim, pool, out);
              ForEachRun(
                  entries, begin, end,
                  [&](const Entry& entry) { share.Prefetch(entry); },
                  [&](std::span<const Entry> run) { share.Write(run); });
            });
}

// Clears the rows of `out` that no entry names.
void ClearGaps(Executor& executor, const EntryList& entries, int64_t slot_count,
               int64_t row_bytes, void* out) {
  const Entry* list = entries.data.get();
  VectorFor(executor, entries.size + 1, RowGrain(row_bytes),
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                const int64_t first = i == 0 ? 0 : list[i - 1].slot + 1;
                const int64_t last =
                    i == entries.size ? slot_count : list[i].slot;
                if (first >= last) continue;
                std::memset(static_cast<std::byte*>(out) + first * row_bytes, 0,
                            static_cast<size_t>((last - first) * row_bytes));
              }
            });
}

template <typename T>
void Forward(Executor& executor, const T* cache, int64_t dim,
             std::span<const int32_t> tokens, const int64_t* slots,
             const SignPool& pool, T* out) {
  const auto count = static_cast<int64_t>(tokens.size());
  const auto row_of = [=](int64_t i) { return cache + slots[i] * dim; };
  const int64_t row_bytes = dim * int64_t{sizeof(T)};
  VectorFor(
      executor, count, RowGrain(3 * row_bytes),
      [&](int64_t begin, int64_t end) {
        SignRow bigram_signs(pool, dim);
        SignRow trigram_signs(pool, dim);
        for (int64_t t = begin; t < end; ++t) {
          if (t + kRowsAhead < count) {
            PrefetchRow(row_of(t + kRowsAhead), row_bytes);
            PrefetchRow(row_of(count + t + kRowsAhead), row_bytes);
          }
          bigram_signs.Load(BigramSignRow(tokens.data(), t, pool.row_count));
          trigram_signs.Load(TrigramSignRow(tokens.data(), t, pool.row_count));
          const T* bigram = row_of(t);
          const T* trigram = row_of(count + t);
          T* __restrict to = out + t * dim;
          for (int64_t j = 0; j < dim; ++j) {
            to[j] = Narrow<T>(Widen(bigram_signs.Flip(bigram[j], j)) +
                              Widen(trigram_signs.Flip(trigram[j], j)));
          }
        }
      });
}

template <typename T>
void Backward(Executor& executor, const T* gradient, int64_t dim,
              std::span<const int32_t> tokens, const SignPool& pool,
              T* row_gradient) {
  const auto count = static_cast<int64_t>(tokens.size());
  VectorFor(executor, count, RowGrain(3 * dim * int64_t{sizeof(T)}),
            [&](int64_t begin, int64_t end) {
              SignRow signs(pool, dim);
              const auto write = [&](const T* from, T* __restrict to) {
                for (int64_t j = 0; j < dim; ++j)
                  to[j] = signs.Flip(from[j], j);
              };
              for (int64_t t = begin; t < end; ++t) {
                const T* from = gradient + t * dim;
                signs.Load(BigramSignRow(tokens.data(), t, pool.row_count));
                write(from, row_gradient + t * dim);
                signs.Load(TrigramSignRow(tokens.data(), t, pool.row_count));
                write(from, row_gradient + (count + t) * dim);
              }
            });
}

}  // namespace

void NgramRowIds(Executor& executor, std::span<const int32_t> tokens,
                 int64_t table_row_count, std::span<int64_t> row_ids) {
  constexpr int64_t kGrain = 4096;
  const NgramLayout layout = NgramLayout::Of(table_row_count);
  const auto count = static_cast<int64_t>(tokens.size());
  int64_t* bigrams = row_ids.data();
  int64_t* trigrams = bigrams + count;
  VectorFor(executor, count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      bigrams[t] = BigramRowId(tokens.data(), t, layout);
      trigrams[t] = TrigramRowId(tokens.data(), t, layout);
    }
  });
}

int64_t FindSlots(Executor& executor, std::span<const int64_t> want,
                  std::span<const int64_t> row_ids, std::span<int64_t> slots) {
  constexpr int64_t kGrain = 4096;
  const auto count = static_cast<int64_t>(row_ids.size());
  std::atomic<int64_t> first_missing = count;
  executor.ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end);
         ++i) {
      const auto found = std::lower_bound(want.begin(), want.end(), row_ids[i]);
      slots[i] = found - want.begin();
      if (found != want.end() && *found == row_ids[i]) continue;
      const auto missing = static_cast<int64_t>(i);
      int64_t first = first_missing;
      while (missing < first &&
             !first_missing.compare_exchange_weak(first, missing)) {
      }
      return;
    }
  });
  return first_missing == count ? -1 : first_missing.load();
}

void NgramEmbedForward(Executor& executor, const void* cache, DType dtype,
                       int64_t dim, std::span<const int32_t> tokens,
                       std::span<const int64_t> slots, const SignPool& pool,
                       void* out) {
  WithElement(dtype, [&]<typename T>() {
    Forward(executor, static_cast<const T*>(cache), dim, tokens, slots.data(),
            pool, static_cast<T*>(out));
  });
}

void NgramEmbedBackward(Executor& executor, const void* gradient, DType dtype,
                        int64_t dim, std::span<const int32_t> tokens,
                        const SignPool& pool, void* row_gradient) {
  WithElement(dtype, [&]<typename T>() {
    Backward(executor, static_cast<const T*>(gradient), dim, tokens, pool,
             static_cast<T*>(row_gradient));
  });
}

void SumNgramGradients(Executor& executor, std::span<const NgramStep> steps,
                       DType gradient_dtype, int64_t dim, const SignPool& pool,
                       int64_t slot_count, DType wire_dtype, void* out) {
  const EntryList entries = EntriesOf(executor, steps);
  ClearGaps(executor, entries, slot_count, dim * SizeOf(wire_dtype), out);
  WithElement(gradient_dtype, [&]<typename Gradient>() {
    WithElement(wire_dtype, [&]<typename Wire>() {
      WriteSums<Gradient, Wire>(executor, steps, dim, pool, entries,
                                static_cast<Wire*>(out));
    });
  });
}

}  // namespace rowhouse::kernels::cpu
