// SPDX-License-Identifier: Apache-2.0
// Every golden file with one tensor after the other renamed, dropped, added, transposed or there
// twice. There are two outcomes: the file is refused, or the embedding is the same, bit by bit.
// What may be the same, and the few files that a change turns into another whole one, is said here.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "fungi/backbone/backbone.h"
#include "fungi/backbone/recipes.h"
#include "tests/support/golden_family.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using golden::Family;
using test::TinyCheckpoint;

enum class Outcome { refused, same, other };

struct Mutated : testing::TestWithParam<std::string> {
  Mutated() : family(GetParam()), random(std::hash<std::string>()(GetParam())) {
    const Checkpoint file = Checkpoint::open(family.checkpoint());
    facts = family.stated_facts();
    if (file.format() == "torchscript")  // the copy is none, which tells the activation
      facts["activation"] = family.facts.at("activation").get<std::string>();
    for (const TensorInfo& t : file.tensors()) {
      whole.shapes[t.name] = t.shape;
      if (t.type > DType::f64) continue;
      const Matrix<float> read = file.read(t.name);
      whole.values[t.name].assign(read.data(), read.data() + t.count());
    }
    if (const std::string text = file.beside("config.json"); !text.empty())
      whole.config = nlohmann::json::parse(text);
    for (const auto& [canonical, recipe] : read_names(file, facts).recipes)
      used.insert(recipe.parts.begin(), recipe.parts.end()), used.insert(recipe.times);
    truth = embedding(whole);
  }

  std::vector<float> embedding(const TinyCheckpoint& c) const {
    const test::TemporaryFolder folder(test::place_in_memory());
    Pool pool(1);
    const Backbone backbone =
        Backbone::open(c.write(folder),
                       {.precision = Precision::f32, .layer = "none", .stated_facts = facts}, pool);
    Workspace workspace;
    const size_t n = family.input.rows(), width = backbone.architecture().embedding_width;
    std::vector<float> out(n * width);
    backbone.forward(family.inputs(), workspace, {out.data(), n, width});
    return out;
  }

  Outcome run(const TinyCheckpoint& c) {
    try {
      return embedding(c) == truth ? Outcome::same : Outcome::other;
    } catch (const Error& e) {
      said = e.what();
      return Outcome::refused;
    }
  }

  // The network does not need the tensor, or what takes its place is another file that exists.
  bool needed(const std::string& name) const {
    return used.count(name) && !golden::may_go(GetParam(), name);
  }
  bool reads(const TinyCheckpoint& c, const std::string& name) const {
    const test::TemporaryFolder folder(test::place_in_memory());
    for (const auto& [canonical, recipe] :
         read_names(Checkpoint::open(c.write(folder)), facts).recipes)
      if (recipe.parts == std::vector<std::string>{name}) return true;
    return false;
  }
  size_t below(size_t n) { return size_t(random() % n); }

  Family family;
  std::mt19937 random;
  StatedFacts facts;
  TinyCheckpoint whole;
  std::set<std::string> used;
  std::vector<float> truth;
  std::string said;
};

// SSAST, KWT and DINOv3 are known by these, which are no part of the network.
bool is_sign(const std::string& name) {
  return name.ends_with("p_input_tdim") || name == "frontend.mel" || name == "rope_embed.periods";
}

void copy(TinyCheckpoint& c, const std::string& from, const std::string& to) {
  c.shapes[to] = c.shapes.at(from);
  if (const auto own = c.values.find(from); own != c.values.end()) c.values[to] = own->second;
}

TEST_P(Mutated, ADroppedTensor) {
  for (const auto& [name, shape] : whole.shapes) {
    TinyCheckpoint c = whole;
    c.shapes.erase(name);
    const Outcome outcome = run(c);
    if (needed(name) || is_sign(name)) {
      EXPECT_EQ(outcome, Outcome::refused) << name;
    } else if (!used.count(name)) {
      EXPECT_EQ(outcome, Outcome::same) << name << ": " << said;
    }
  }
}

TEST_P(Mutated, ARenamedTensor) {
  for (const auto& [name, shape] : whole.shapes)
    for (int draw = 0; draw < 3; ++draw) {
      std::string other = name;
      const size_t at = below(name.size()), digit = name.find_first_of("0123456789");
      const size_t kind = below(digit == std::string::npos ? 5 : 6);
      if (kind == 0) other.erase(at, 1);
      if (kind == 1) other.insert(at, 1, char('a' + below(26)));
      if (kind == 2) other[at] = char('a' + below(26));
      if (kind == 3) other = "x." + other;
      if (kind == 4) other = other.substr(other.find('.') + 1);
      if (kind == 5) other[digit] = char('0' + below(10));  // another block
      if (other.empty() || whole.shapes.count(other)) continue;
      TinyCheckpoint c = whole;
      copy(c, name, other);
      c.shapes.erase(name);
      const Outcome outcome = run(c);
      EXPECT_TRUE(outcome == Outcome::refused || !needed(name)) << name << " as " << other;
      EXPECT_TRUE(outcome != Outcome::other || used.count(name)) << name << " as " << other;
    }
}

TEST_P(Mutated, AnAddedTensor) {
  for (const auto& [name, shape] : whole.shapes) {
    const std::string folder = name.substr(0, name.find_last_of("./") + 1);
    const std::string others[] = {folder + "extra", folder + "gamma", folder + "bias",
                                  name + "_2",      name + ".scale",  "extra_" + name};
    for (int draw = 0; draw < 3; ++draw) {
      const std::string& other = others[below(std::size(others))];
      if (whole.shapes.count(other)) continue;
      TinyCheckpoint c = whole;
      c.shapes[other] = below(2) ? shape : std::vector<size_t>{16};
      const Outcome outcome = run(c);
      // A bias where there may be one is a part of the network.
      if (outcome == Outcome::other && other.ends_with(".bias") && reads(c, other)) continue;
      EXPECT_NE(outcome, Outcome::other) << other;
      EXPECT_TRUE(outcome == Outcome::refused || !used.count(name)) << other;
    }
  }
}

TEST_P(Mutated, ATensorThatIsThereTwice) {
  const char* prefixes[] = {"x.",       "ema.",        "teacher.", "module.",
                            "model.",   "state_dict.", "visual.",  "vision_model.",
                            "encoder.", "blocks.0.",   "head.",    "base_encoder."};
  for (const auto& [name, shape] : whole.shapes)
    for (int draw = 0; draw < 4; ++draw) {
      const std::string other =
          prefixes[below(std::size(prefixes))] + name.substr(below(2) ? name.find('.') + 1 : 0);
      if (whole.shapes.count(other)) continue;
      TinyCheckpoint c = whole;
      copy(c, name, other);
      EXPECT_NE(run(c), Outcome::other) << name << " as " << other;
    }
}

TEST_P(Mutated, ATransposedTensor) {
  for (const auto& [name, shape] : whole.shapes)
    for (size_t axis = 0; axis + 1 < shape.size(); ++axis) {
      const size_t rows = shape[axis], cols = shape[axis + 1];
      if (rows == 1 || cols == 1 || !whole.values.count(name)) continue;  // the same numbers
      TinyCheckpoint c = whole;
      std::swap(c.shapes[name][axis], c.shapes[name][axis + 1]);
      const std::vector<float>& from = whole.values.at(name);
      std::vector<float>& to = c.values.at(name);
      size_t inner = 1;
      for (size_t a = axis + 2; a < shape.size(); ++a) inner *= shape[a];
      for (size_t i = 0; i < from.size(); ++i) {
        const size_t rest = i % inner, x = i / inner % cols, y = i / inner / cols % rows,
                     outer = i / inner / cols / rows;
        to[((outer * cols + x) * rows + y) * inner + rest] = from[i];
      }
      const Outcome expected = name == "frontend.mel" ? Outcome::refused
                               : !used.count(name)    ? Outcome::same
                               : rows == cols         ? Outcome::other
                                                      : Outcome::refused;
      EXPECT_EQ(run(c), expected) << name << ", axis " << axis << ": " << said;
    }
}

INSTANTIATE_TEST_SUITE_P(Files, Mutated, testing::ValuesIn(golden::backbones()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fungi
