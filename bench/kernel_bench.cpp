// SPDX-License-Identifier: Apache-2.0
// Speed of the kernels on one thread: GFLOP/s and share of the peak measured in the same run, for
// the products of ViT-Ti/S/B, attention, norm and activation; beside them OpenBLAS's sgemm where
// there is one. Times are processor time of this thread, so that neighbours on a shared machine
// disturb less.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "fungi/kernel/kernel.h"

#ifdef FUNGI_BENCH_CBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif

namespace fungi::kernel {
namespace {

std::vector<float> random_floats(size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> v(n);
  for (float& x : v) x = normal(random);
  return v;
}

// Rows as the encoder keeps them: an odd number of cache lines, or they would meet in few sets.
size_t stride_of(const Kernel& table, size_t cols) {
  constexpr size_t kLine = 64;
  const size_t lines =
      round_up(round_up(cols, table.k_multiple) * table.element_size, kLine) / kLine;
  return (lines | 1) * kLine / table.element_size;
}

Buffer elements_of(const Kernel& table, const std::vector<float>& x, size_t rows, size_t cols) {
  Buffer buffer(rows * stride_of(table, cols) * table.element_size);
  table.to_elements(rows, cols, x.data(), cols, buffer.data(), stride_of(table, cols));
  return buffer;
}

void report(benchmark::State& state, double operations, double peak) {
  const double done = operations * double(state.iterations());
  state.counters["GFLOP/s"] = benchmark::Counter(done * 1e-9, benchmark::Counter::kIsRate);
  state.counters["share"] = benchmark::Counter(done * 1e-9 / peak, benchmark::Counter::kIsRate);
}

struct Shape {
  size_t m, n, k;
};

void gemm(benchmark::State& state, const Kernel& table, Shape s, Activation activation,
          double peak) {
  const std::vector<float> x = random_floats(s.m * s.k), w = random_floats(s.n * s.k);
  const std::vector<float> bias = random_floats(s.n);
  const Buffer elements = elements_of(table, x, s.m, s.k);
  const PackedMatrix packed = pack(table, {w.data(), s.n, s.k});
  Buffer scratch(table.gemm_scratch(s.m, s.n, s.k)), out(s.m * s.n * table.element_size);
  Epilogue e;
  e.bias = bias.data();
  e.activation = activation;
  e.element_out = out.data();
  e.element_stride = s.n;
  for (auto _ : state)
    table.gemm(s.m, elements.data(), stride_of(table, s.k), packed, e, scratch.data());
  report(state, 2.0 * double(s.m * s.n * s.k), peak);
}

#ifdef FUNGI_BENCH_CBLAS
void sgemm(benchmark::State& state, Shape s, double peak) {
  const std::vector<float> x = random_floats(s.m * s.k), w = random_floats(s.n * s.k);
  std::vector<float> y(s.m * s.n);
  const int m = int(s.m), n = int(s.n), k = int(s.k);
  for (auto _ : state)
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1, x.data(), k, w.data(), k, 0,
                y.data(), n);
  report(state, 2.0 * double(s.m * s.n * s.k), peak);
}
#endif

void attention(benchmark::State& state, const Kernel& table, bool backward, double peak) {
  constexpr size_t kTokens = 197, kHeads = 12, kDim = 64, kWidth = kHeads * kDim;
  const Buffer qkv = elements_of(table, random_floats(kTokens * 3 * kWidth), kTokens, 3 * kWidth);
  std::vector<float> out(kTokens * kWidth), gradient(3 * kTokens * kWidth);
  Attention a;
  a.queries = a.tokens = kTokens;
  a.heads = kHeads;
  a.head_dim = kDim;
  a.scale = 0.125f;
  a.q = qkv.data();
  a.k = qkv.data() + kWidth * table.element_size;
  a.v = qkv.data() + 2 * kWidth * table.element_size;
  a.q_stride = a.k_stride = a.v_stride = stride_of(table, 3 * kWidth);
  a.out = out.data();
  a.out_stride = kWidth;
  Buffer scratch(table.attention_scratch(kTokens, kDim));
  table.attention(a, scratch.data());
  AttentionBackward b;
  b.forward = a;
  b.d_out = out.data();
  b.d_q = gradient.data();
  b.d_k = b.d_q + kTokens * kWidth;
  b.d_v = b.d_k + kTokens * kWidth;
  b.d_out_stride = b.d_q_stride = b.d_k_stride = b.d_v_stride = kWidth;
  for (auto _ : state) {
    if (backward)
      table.attention_backward(b, scratch.data());
    else
      table.attention(a, scratch.data());
  }
  report(state, (backward ? 5 : 2) * 2.0 * double(kTokens * kTokens * kWidth), peak);
}

void norm(benchmark::State& state, const Kernel& table) {
  constexpr size_t kRows = 197, kWidth = 768;
  const std::vector<float> x = random_floats(kRows * kWidth), gamma = random_floats(kWidth);
  Buffer out(kRows * kWidth * table.element_size);
  for (auto _ : state)
    table.norm(false, kRows, kWidth, x.data(), kWidth, gamma.data(), gamma.data(), 1e-6f, nullptr,
               0, out.data(), kWidth);
  state.counters["elements/s"] = benchmark::Counter(
      double(kRows * kWidth) * double(state.iterations()), benchmark::Counter::kIsRate);
}

void activate(benchmark::State& state, const Kernel& table, Activation f) {
  constexpr size_t kCount = 4096;
  const std::vector<float> x = random_floats(kCount);
  std::vector<float> out(kCount);
  for (auto _ : state) table.activate(f, 1, kCount, x.data(), kCount, out.data(), kCount);
  state.counters["elements/s"] =
      benchmark::Counter(double(kCount) * double(state.iterations()), benchmark::Counter::kIsRate);
}

void register_all() {
  const Shape shapes[] = {
      {1576, 2304, 768}, {1576, 768, 768}, {1576, 3072, 768}, {1576, 768, 3072}, {197, 2304, 768},
      {197, 768, 768},   {197, 3072, 768}, {197, 768, 3072},  {1576, 1152, 384}, {1576, 384, 1536},
      {1576, 576, 192},  {1576, 192, 768}, {8, 3072, 768},    {8, 768, 3072},    {1, 768, 768}};
  const Kernel& best = kernel_for(best_isa(), Precision::f32);
  const double f32_peak = measure_peak_gflops(best, 1, 0.3);
  for (const Shape& s : shapes) {
    const std::string size =
        std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k);
    for (Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
      const Kernel& table = kernel_for(best_isa(), precision);
      const double peak = measure_peak_gflops(table, 1, 0.1);
      auto add = [&](const char* name, Activation f) {
        benchmark::RegisterBenchmark(
            (std::string(name) + "/" + table.name + "/" + size).c_str(),
            [&table, s, f, peak](benchmark::State& state) { gemm(state, table, s, f, peak); });
      };
      add("gemm", Activation::none);
      if (s.n == 4 * s.k) add("gemm+gelu", Activation::gelu);
    }
#ifdef FUNGI_BENCH_CBLAS
    benchmark::RegisterBenchmark(("openblas/" + size).c_str(),
                                 [s, f32_peak](benchmark::State& st) { sgemm(st, s, f32_peak); });
#endif
  }
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    const Kernel& table = kernel_for(best_isa(), precision);
    const double peak = measure_peak_gflops(table, 1, 0.1);
    const std::string name = table.name;
    for (bool backward : {false, true})
      benchmark::RegisterBenchmark(
          ((backward ? "attention_backward/" : "attention/") + name).c_str(),
          [&table, backward, peak](benchmark::State& s) { attention(s, table, backward, peak); });
    benchmark::RegisterBenchmark(("norm/" + name).c_str(),
                                 [&table](benchmark::State& s) { norm(s, table); });
    benchmark::RegisterBenchmark(("gelu/" + name).c_str(), [&table](benchmark::State& s) {
      activate(s, table, Activation::gelu);
    });
  }
}

}  // namespace
}  // namespace fungi::kernel

int main(int argc, char** argv) {
#ifdef FUNGI_BENCH_CBLAS
  openblas_set_num_threads(1);
#endif
  fungi::kernel::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
