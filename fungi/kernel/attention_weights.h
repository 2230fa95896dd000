// SPDX-License-Identifier: Apache-2.0
// The softmax of attention: logits become weights e^(logit - largest), kept as elements for the
// second product, and one over the f32 sum of exactly those weights. Internal to this room.
#pragma once

#include "fungi/kernel/micro_kernel.h"
#include "fungi/kernel/rows.h"

namespace fungi::kernel {
namespace {

// Logits of one query in place: scale · (q·k) + bias. Returns the largest, lane by lane.
FUNGI_INLINE Floats finish_logits(const Attention& a, size_t head, size_t query, float* row) {
  const float* bias = a.bias ? a.bias + (head * a.queries + query) * a.tokens : nullptr;
  Floats peak = all(-__builtin_inff());
  for_each_vector(a.tokens, [&](size_t j, size_t count) FUNGI_FORCE {
    Floats s = load(row + j, count) * a.scale;
    if (bias) s += load(bias + j, count);
    store(row + j, count, s);
    peak = max(load(row + j, count, -__builtin_inff()), peak);
  });
  return peak;
}

// Whether the logits are finished by a factor alone, which the exponential takes in passing: after
// the largest is subtracted, which is exact for those near it however large all of them are.
FUNGI_INLINE bool scaled_only(const Attention& a) { return !a.bias && a.scale > 0; }

// Weights of queries [first, first + count) over their logits, in elements' values but as floats.
template <class E>
void weigh(const Attention& a, size_t head, size_t first, size_t count, E, float* logits,
           size_t stride, float* inverse) {
  const bool scaled = scaled_only(a);
  const Floats scale = all(scaled ? a.scale : 1.0f);
  for (size_t i = 0; i < count; ++i) {
    float* row = logits + i * stride;
    const float peak =
        scaled ? row_peak(a.tokens, row) : largest(finish_logits(a, head, first + i, row));
    const Floats top = all(peak == -__builtin_inff() ? 0.0f : peak);
    Floats total{};
    for_each_vector(a.tokens, [&](size_t j, size_t lanes) FUNGI_FORCE {
      Floats e = exp((load(row + j, lanes, -__builtin_inff()) - top) * scale);
      if constexpr (sizeof(E) == 2) e = rounded_to_bf16(e);
      store(row + j, lanes, e);
      total += e;
    });
    const float whole = sum(total);
    inverse[i] = whole > 0 ? 1.0f / whole : 0.0f;
  }
}

constexpr size_t kPairLanes = 2 * kLanes;  // bf16 in a register

// The same as bf16, two registers of logits at a time, up to the next multiple of kPairLanes (zeros
// beyond the tokens). weights may lie over the logits: they take half the room. between(i) runs
// after query i: other work, for the tile unit.
template <class Between>
FUNGI_INLINE void weigh(const Attention& a, size_t head, size_t first, size_t count, float* logits,
                        size_t stride, bfloat16* weights, size_t weight_stride, float* inverse,
                        Between between) {
  constexpr float kLog2E = 1.44269504f, kNever = -__builtin_inff();
  const bool scaled = scaled_only(a);
  const Floats scale = all((scaled ? a.scale : 1.0f) * kLog2E);
  const Floats ones = Floats(Words{} + 0x3f803f80u);
  for (size_t begin = 0; begin < count; begin += kLanes) {
    const size_t rows = smaller(kLanes, count - begin);
    Floats register_of[kLanes] = {};
    for (size_t i = 0; i < rows; ++i) {
      float* row = logits + (begin + i) * stride;
      register_of[i] =
          scaled ? row_peaks(a.tokens, row) : finish_logits(a, head, first + begin + i, row);
    }
    const Floats peaks = fold_rows(register_of, [](Floats x, Floats y) { return max(x, y); });
    alignas(64) float peak[kLanes];
    store(peak, peaks == kNever ? Floats{} : peaks);
    for (size_t i = 0; i < rows; ++i) {
      const float* row = logits + (begin + i) * stride;
      bfloat16* out = weights + (begin + i) * weight_stride;
      const Floats top = all(peak[i]);
      Floats total{};
      size_t j = 0;
      const auto weight = [&](Floats x) FUNGI_FORCE { return quick_exp2((x - top) * scale); };
      const auto keep = [&](Floats low, Floats high) FUNGI_FORCE {
        const Floats pairs = narrow(low, high);
        __builtin_memcpy(out + j, &pairs, sizeof pairs);
        total = dot_pairs(pairs, ones, total);
      };
      for (; j + kPairLanes <= a.tokens; j += kPairLanes)
        keep(weight(load(row + j)), weight(load(row + j + kLanes)));
      if (const size_t rest = a.tokens - j; rest > kLanes)
        keep(weight(load(row + j)), weight(load(row + j + kLanes, rest - kLanes, kNever)));
      else if (rest > 0)
        keep(weight(load(row + j, rest, kNever)), Floats{});
      register_of[i] = total;
      between(begin + i);
    }
    const Floats whole = fold_rows(register_of, [](Floats x, Floats y) { return x + y; });
    store(inverse + begin, rows, whole > 0.0f ? 1.0f / whole : Floats{});
  }
}

inline void weigh(const Attention& a, size_t head, size_t first, size_t count, Pair, float* logits,
                  size_t stride, float* inverse) {
  weigh(a, head, first, count, logits, stride, reinterpret_cast<bfloat16*>(logits), 2 * stride,
        inverse, [](size_t) FUNGI_FORCE {});
}

}  // namespace
}  // namespace fungi::kernel
