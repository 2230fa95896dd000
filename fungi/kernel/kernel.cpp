// SPDX-License-Identifier: Apache-2.0
// Chooses the table, packs weights, measures the ceiling: what needs no particular instruction set.
#include "fungi/kernel/kernel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/kernel/tables.h"

namespace fungi {

const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::f32:
      return "f32";
    case Precision::bf16:
      return "bf16";
    case Precision::int8:
      return "int8";
  }
  return "unknown";
}

Precision parse_precision(std::string_view name, std::string_view place) {
  for (Precision precision : {Precision::f32, Precision::bf16, Precision::int8})
    if (name == to_string(precision)) return precision;
  fail("expected the precision f32, bf16 or int8, found '" + std::string(name) + "'",
       std::string(place));
}

}  // namespace fungi

namespace fungi::kernel {

PackedView view_of(const PackedMatrix& matrix) noexcept {
  return {matrix.data.data(), matrix.n, matrix.k};
}

namespace {

// Whichever bf16 table and products of bytes the processor is best with.
const Kernel& int8_kernel(Isa isa) {
  static const Kernel generic = with_bytes(generic_bf16, generic_int8);
  static const Kernel avx2 = with_bytes(avx2_bf16, cpu().avx_vnni ? avxvnni_int8 : avx2_int8);
  static const ByteProducts& wide = !cpu().avx512_vnni  ? avx512_int8
                                    : cpu().avx512_bf16 ? avx512vnnibf16_int8
                                                        : avx512vnni_int8;
  static const Kernel avx512 =
      with_bytes(cpu().avx512_bf16 ? avx512_pairs_bf16 : avx512_bf16, wide);
  static const Kernel amx = with_bytes(amx_bf16, cpu().amx_int8 ? amx_int8 : wide);
  switch (isa) {
    case Isa::generic:
      return generic;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::amx:
      return amx;
  }
  fail("unknown instruction set");
}

}  // namespace

const Kernel& kernel_for(Isa isa, Precision precision) {
  const std::vector<Isa> supported = supported_isas();
  if (std::find(supported.begin(), supported.end(), isa) == supported.end())
    fail(std::string("this machine cannot run '") + to_string(isa) + "'", "",
         std::string("the best it has is ") + to_string(supported.back()));
  if (precision == Precision::int8) return int8_kernel(isa);
  const bool f32 = precision == Precision::f32;
  switch (isa) {
    case Isa::generic:
      return f32 ? generic_f32 : generic_bf16;
    case Isa::avx2:
      return f32 ? avx2_f32 : avx2_bf16;
    case Isa::avx512:
      return f32 ? avx512_f32 : cpu().avx512_bf16 ? avx512_pairs_bf16 : avx512_bf16;
    case Isa::amx:
      return f32 ? avx512_f32 : amx_bf16;
  }
  fail("unknown instruction set");
}

const Kernel& f32_kernel() { return kernel_for(best_isa(), Precision::f32); }

Precision fastest_precision(Isa isa) {
  const bool bf16 = isa == Isa::amx || (isa == Isa::avx512 && cpu().avx512_bf16);
  return bf16 ? Precision::bf16 : Precision::f32;
}

PackedMatrix pack(const Kernel& kernel, View<const float> w, bool transposed) {
  PackedMatrix packed;
  packed.n = transposed ? w.cols : w.rows;
  packed.k = transposed ? w.rows : w.cols;
  packed.data = Buffer(kernel.packed_bytes(packed.n, packed.k));
  kernel.pack(w.data, w.stride, transposed, packed.n, packed.k, packed.data.data());
  return packed;
}

PackedMatrix pack_smoothed(const Kernel& kernel, View<const float> w,
                           std::span<const float> smoothing) {
  FUNGI_ASSERT(kernel.pack_smoothed && smoothing.size() == w.cols);
  PackedMatrix packed;
  packed.n = w.rows, packed.k = w.cols;
  packed.data = Buffer(kernel.packed_bytes(w.rows, w.cols));
  kernel.pack_smoothed(w.data, w.stride, w.rows, w.cols, smoothing.data(), packed.data.data());
  return packed;
}

void multiply(const Kernel& kernel, View<const float> x, const PackedMatrix& w, const float* bias,
              View<float> y, Buffer& scratch) {
  FUNGI_ASSERT(x.cols == w.k && y.cols == w.n && x.rows == y.rows);
  if (x.rows == 0) return;
  Matrix<float> padded;  // only where the table wants zeros after the last column
  if (x.stride % kernel.k_multiple != 0 || x.cols % kernel.k_multiple != 0) {
    padded = Matrix<float>(x.rows, x.cols, round_up(x.cols, kernel.k_multiple));
    for (size_t i = 0; i < x.rows; ++i) std::copy_n(x.row(i), x.cols, padded.row(i));
    x = padded.view();
  }
  const size_t bytes = kernel.gemm_scratch(x.rows, w.n, w.k);
  if (scratch.bytes() < bytes) scratch = Buffer(bytes);
  Epilogue epilogue;
  epilogue.bias = bias;
  epilogue.out = y.data;
  epilogue.out_stride = y.stride;
  kernel.gemm(x.rows, x.data, x.stride, w, epilogue, scratch.data());
}

double measure_peak_gflops(const Kernel& kernel, unsigned threads, double seconds) {
  threads = std::min(threads, cpu().logical_cores);  // more of them would share these
  using Clock = std::chrono::steady_clock;
  constexpr size_t kNumbers = 4096, kRounds = 10000;
  Matrix<float> random(1, kNumbers);
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (size_t i = 0; i < kNumbers; ++i) {  // zeros and repeats run faster than real data
    state = state * 6364136223846793005u + 1442695040888963407u;
    random(0, i) = float(int32_t(state >> 32)) / 2147483648.0f;
  }
  std::atomic<unsigned> ready{0};
  std::vector<double> rate(threads, 0.0);
  auto run = [&](unsigned i) {
    ready.fetch_add(1);
    while (ready.load() < threads) std::this_thread::yield();
    // The median of short bursts: one that another process interrupted does not count.
    std::vector<double> bursts;
    const auto begin = Clock::now();
    for (auto last = begin; last - begin < std::chrono::duration<double>(seconds);) {
      const double operations = kernel.multiply_add_rounds(random.data(), kRounds);
      const auto now = Clock::now();
      bursts.push_back(operations / std::chrono::duration<double>(now - last).count() * 1e-9);
      last = now;
    }
    const auto middle = bursts.begin() + std::ptrdiff_t(bursts.size() / 2);
    std::nth_element(bursts.begin(), middle, bursts.end());
    rate[i] = *middle;
  };
  {
    std::vector<std::jthread> crew;
    try {
      for (unsigned i = 1; i < threads; ++i) crew.emplace_back(run, i);
    } catch (const std::system_error& e) {
      ready = threads;  // those that wait would wait for ever
      fail("expected to start " + std::to_string(threads) + " threads: " + e.code().message(),
           "threads", "use fewer");
    }
    if (threads > 0) run(0);
  }
  double sum = 0;
  for (double r : rate) sum += r;
  return sum;
}

}  // namespace fungi::kernel
