// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient against the reference, for every table: head sizes that are no
// multiple of anything, one query, biases, masks with -inf, tokens that do not fill a block.
#include "tests/kernel/reference.h"
#include "tests/kernel/support.h"

namespace fungi::kernel {
namespace {

using AttentionTest = TableTest;

// One random problem in both worlds. q, k and v stand side by side in one buffer, as the encoder
// has them.
struct Problem {
  reference::AttentionProblem<double> truth;
  Elements qkv;
  Rows bias;
  Attention args;

  static Rows random_qkv(const Kernel& table, size_t rows, size_t width, float deviation) {
    return random_rows(rows, 3 * width, 0, unsigned(rows + width),
                       table.precision == Precision::bf16, deviation);
  }

  Problem(const Kernel& table, size_t queries, size_t tokens, size_t heads, size_t head_dim,
          bool with_bias, bool with_mask, float deviation = 1)
      : Problem(table, queries, tokens, heads, head_dim, with_bias, with_mask,
                random_qkv(table, std::max(queries, tokens), heads * head_dim, deviation)) {}

  Problem(const Kernel& table, size_t queries, size_t tokens, size_t heads, size_t head_dim,
          bool with_bias, bool with_mask, const Rows& x)
      : qkv(table, x, 1), bias(random_rows(heads * queries, tokens, 0, 3)) {
    const size_t width = heads * head_dim;
    truth = {queries, tokens, heads, head_dim, 1 / std::sqrt(double(head_dim)), {}, {}, {}, {}};
    auto take = [&](size_t rows, size_t column) {
      std::vector<double> v;
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < width; ++j) v.push_back(x(i, column + j));
      return v;
    };
    truth.q = take(queries, 0);
    truth.k = take(tokens, width);
    truth.v = take(tokens, 2 * width);
    args.queries = queries;
    args.tokens = tokens;
    args.heads = heads;
    args.head_dim = head_dim;
    args.scale = float(truth.scale);
    args.q = qkv.at(0, 0);
    args.k = qkv.at(0, width);
    args.v = qkv.at(0, 2 * width);
    args.q_stride = args.k_stride = args.v_stride = qkv.stride;
    for (size_t i = 0; i < bias.rows; ++i)
      for (size_t j = 0; j < tokens; ++j) {
        const float masked = j % 3 == 1   ? -std::numeric_limits<float>::infinity()
                             : j % 5 == 3 ? -1e9f
                                          : 0;
        bias(i, j) = (with_bias ? bias(i, j) : 0) + (with_mask ? masked : 0);
      }
    if (with_bias || with_mask) {
      args.bias = bias.data();
      truth.bias = values(bias);
    }
  }
};

void check_attention(const Kernel& table, Problem& p) {
  const auto& t = p.truth;
  SCOPED_TRACE(testing::Message() << t.queries << " queries, " << t.tokens << " tokens, " << t.heads
                                  << " heads of " << t.head_dim);
  Rows out(t.queries, t.width(), t.width() + 3);
  Elements elements(table, out, 1);
  p.args.out = out.data();
  p.args.out_stride = out.stride;
  p.args.element_out = elements.data();
  p.args.element_stride = elements.stride;
  Scratch scratch(table.attention_scratch(t.tokens, t.head_dim));
  table.attention(p.args, scratch.data());
  out.expect_margin_untouched();
  const bool bf16 = table.precision == Precision::bf16;
  // bf16 rounds each weight to 2^-9; f32 loses a few ulps of the logits, which lie within about
  // ±10.
  const double tolerance = bf16 ? 0.015 : 4e-6 * std::sqrt(double(t.head_dim));
  expect_close(values(out), reference::attention(t), tolerance, "out", bf16 ? 2e-5 : 1e-6);
  for (size_t i = 0; i < t.queries; ++i)
    for (size_t j = 0; j < t.width(); ++j)
      ASSERT_EQ(elements.value(i, j), bf16 ? to_bf16(out(i, j)) : out(i, j));
}

TEST_P(AttentionTest, ManyShapes) {
  struct {
    size_t queries, tokens, heads, head_dim;
  } const shapes[] = {{1, 1, 1, 1},    {1, 2, 3, 5},    {2, 17, 2, 8},    {3, 33, 1, 48},
                      {17, 16, 2, 80}, {31, 65, 1, 88}, {1, 197, 3, 64},  {2, 50, 2, 33},
                      {65, 31, 2, 32}, {16, 63, 1, 17}, {197, 197, 1, 64}};
  for (const auto& s : shapes) {
    Problem p(table(), s.queries, s.tokens, s.heads, s.head_dim, false, false);
    check_attention(table(), p);
  }
}

TEST_P(AttentionTest, BiasAndMask) {
  for (bool bias : {false, true})
    for (bool mask : {false, true}) {
      Problem p(table(), 20, 45, 2, 24, bias, mask);
      check_attention(table(), p);
    }
}

TEST_P(AttentionTest, HugeLogitsPickOneToken) {
  Problem p(table(), 9, 40, 2, 32, false, false, 60);
  const auto truth = reference::attention(p.truth);
  Rows out(9, 64, 64);
  p.args.out = out.data();
  p.args.out_stride = out.stride;
  Scratch scratch(table().attention_scratch(40, 32));
  table().attention(p.args, scratch.data());
  expect_close(values(out), truth, bf16() ? 2.0 : 0.3, "out", 1e-4);
}

TEST_P(AttentionTest, EverythingMaskedGivesZeros) {
  Problem p(table(), 3, 20, 2, 16, false, true);
  std::fill_n(p.bias.data(), 2 * 3 * 20, -std::numeric_limits<float>::infinity());
  Rows out(3, 32, 32);
  p.args.out = out.data();
  p.args.out_stride = out.stride;
  Scratch scratch(table().attention_scratch(20, 16));
  table().attention(p.args, scratch.data());
  for (double v : values(out)) EXPECT_EQ(v, 0);
}

// Whatever all logits have in common cancels, as long as f32 can tell them apart at all.
TEST_P(AttentionTest, AMaskOnEveryTokenGivesTheirMean) {
  for (const float mask : {-1e9f, -1e10f, -1e30f, std::numeric_limits<float>::lowest()}) {
    Problem p(table(), 3, 40, 2, 32, false, true);
    std::fill_n(p.bias.data(), 2 * 3 * 40, mask);
    Rows out(3, 64, 64), plain(3, 64, 64);
    Scratch scratch(table().attention_scratch(40, 32));
    p.args.out = out.data();
    p.args.out_stride = out.stride;
    table().attention(p.args, scratch.data());
    p.args.out = plain.data();
    p.args.bias = nullptr;
    p.args.scale = 0;  // no logit is larger than another
    table().attention(p.args, scratch.data());
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 64; ++j) EXPECT_NEAR(out(i, j), plain(i, j), 0.01) << mask;
  }
}

TEST_P(AttentionTest, Gradient) {
  struct {
    size_t queries, tokens, heads, head_dim;
    bool bias, mask;
  } const shapes[] = {{1, 1, 1, 1, false, false},    {1, 40, 2, 64, false, false},
                      {2, 17, 3, 33, true, false},   {50, 33, 2, 17, false, true},
                      {130, 130, 1, 64, true, true}, {197, 197, 1, 32, false, false}};
  for (const auto& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.queries << " x " << s.tokens << " x " << s.head_dim);
    Problem p(table(), s.queries, s.tokens, s.heads, s.head_dim, s.bias, s.mask);
    const size_t width = p.truth.width();
    const Rows d_out = random_rows(s.queries, width, 2, 9);
    const auto truth = reference::attention_backward(p.truth, values(d_out));
    Rows d_q(s.queries, width, width + 1), d_k(s.tokens, width, width + 2),
        d_v(s.tokens, width, width + 3);
    AttentionBackward b;
    b.forward = p.args;
    b.d_out = d_out.data();
    b.d_out_stride = d_out.stride;
    b.d_q = d_q.data();
    b.d_k = d_k.data();
    b.d_v = d_v.data();
    b.d_q_stride = d_q.stride;
    b.d_k_stride = d_k.stride;
    b.d_v_stride = d_v.stride;
    Scratch scratch(table().attention_scratch(s.tokens, s.head_dim));
    table().attention_backward(b, scratch.data());
    for (const Rows* d : {&d_q, &d_k, &d_v}) d->expect_margin_untouched();
    const double tolerance = 2e-5 * std::sqrt(double(s.queries) / double(s.tokens) + 1);
    expect_close(values(d_q), truth.q, tolerance, "d_q");
    expect_close(values(d_k), truth.k, tolerance, "d_k");
    expect_close(values(d_v), truth.v, tolerance, "d_v");
  }
}

FUNGI_FOR_EVERY_TABLE(AttentionTest);

}  // namespace
}  // namespace fungi::kernel
