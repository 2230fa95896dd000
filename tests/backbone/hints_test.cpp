// SPDX-License-Identifier: Apache-2.0
// A refusal that suggests to state a fact is followed: with it the file can be read, or the next
// refusal suggests what helps. No suggestion leads nowhere.
#include <gtest/gtest.h>

#include <regex>

#include "fungi/backbone/backbone.h"
#include "fungi/base/words.h"
#include "tests/support/golden_family.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

using test::TinyCheckpoint;
using Fact = std::pair<std::string, std::string>;

std::optional<Error> refusal(const Checkpoint& file, const StatedFacts& facts) {
  try {
    read_architecture(file, facts);
  } catch (const Error& e) {
    return e;
  }
  return {};
}

std::vector<Fact> suggestions(const Error& e) {
  std::vector<Fact> found;
  with_words(e.hint(), [&](const Word& word) -> std::optional<std::string> {
    if (word.name != "stated_facts" || word.key.empty()) return {};
    if (word.value == "NAME") {  // of those behind it
      const std::string list = e.hint().substr(e.hint().find("one of:"));
      const std::regex quoted("'([^']*)'");
      for (std::sregex_iterator at(list.begin(), list.end(), quoted), end; at != end; ++at)
        found.emplace_back(word.key, (*at)[1]);
    } else if (!word.value.empty()) {
      found.emplace_back(word.key, word.value == "N" ? "2" : word.value);
    } else if (e.hint().starts_with("leave out ")) {
      found.emplace_back(word.key, "");
    } else {
      EXPECT_TRUE(e.hint().starts_with("correct ")) << "a fact without a value: " << e.hint();
    }
    return {};
  });
  return found;
}

// Empty: the file can be read at last.
std::string dead_end(const Checkpoint& file, StatedFacts facts, const Fact& suggested, int steps) {
  if (suggested.second.empty() && suggested.first != "prefix")
    facts.erase(suggested.first);
  else
    facts[suggested.first] = suggested.second;
  const auto e = refusal(file, facts);
  if (!e) return "";
  std::string last = e->what();
  if (steps > 0)
    for (const Fact& next : suggestions(*e)) {
      last = dead_end(file, facts, next, steps - 1);
      if (last.empty()) break;
    }
  return suggested.first + "=" + suggested.second + " leads to: " + last;
}

struct Hints : testing::TestWithParam<std::string> {
  // How many suggestions were followed.
  size_t follow(const TinyCheckpoint& c, const StatedFacts& facts = {}) {
    const test::TemporaryFolder folder(test::place_in_memory());
    const Checkpoint file = Checkpoint::open(c.write(folder));
    const auto e = refusal(file, facts);
    if (!e) return 0;
    const std::vector<Fact> all = suggestions(*e);
    for (const Fact& suggested : all) {
      const std::string end = dead_end(file, facts, suggested, 3);
      EXPECT_TRUE(end.empty() || end.ends_with("leads to: ")) << e->what() << "\n" << end;
    }
    return all.size();
  }
};

TEST_P(Hints, LeadSomewhere) {
  const golden::Family family(GetParam());
  const TinyCheckpoint whole = test::shaped_like(family.checkpoint());
  const StatedFacts own = family.stated_facts();
  const auto with = [&](const std::string& key, const std::string& value) {
    StatedFacts facts = own;
    facts[key] = value;
    return facts;
  };
  TinyCheckpoint bare = whole;
  bare.config = nullptr;
  size_t followed = 0;
  for (const TinyCheckpoint& c : {whole, bare}) {
    followed += follow(c) + follow(c, own);
    for (const auto& [key, value] : own) {
      StatedFacts fewer = own;
      fewer.erase(key);
      followed += follow(c, fewer) + follow(c, {{key, value}});
    }
    for (const char* heads : {"3", "7", "16", "1048576"})
      followed += follow(c, with("heads", heads));
    for (const char* size : {"1", "3", "17", "20", "16x24", "1000000", "1048576"})
      followed += follow(c, with("size", size));
    for (const char* pooling : {"first", "mean_prefix", "mean_patches", "mean_all"})
      followed += follow(c, with("pooling", pooling));
    for (const char* kind : {"bert", "dino", "vit", "clip"})
      followed += follow(c, with("family", kind));
    for (const char* where : {"global_pool", "num_heads", "num_attention_heads"})
      for (const nlohmann::json& value : {nlohmann::json("map"), nlohmann::json(5)}) {
        TinyCheckpoint said = c;
        said.config[where] = value;
        followed += follow(said, own);
      }
    for (const char* name : {"vit_base_patch16_siglip_224", "vit_giantopt_patch16_224",
                             "vit_small_patch16_rope_224"}) {
      TinyCheckpoint said = c;
      said.config["architecture"] = name;
      followed += follow(said) + follow(said, own);
    }
  }
  for (const auto& [name, shape] : whole.shapes) {
    TinyCheckpoint dropped = whole, more = whole, longer = whole, narrow = whole;
    dropped.shapes.erase(name);
    more.shapes[name + "_2"] = shape;
    for (const char* part : {".weight", ".bias", ".scale"})
      more.shapes["neck.0" + (name + part)] = {3};
    for (TinyCheckpoint* c : {&longer, &narrow})
      for (size_t& side : c->shapes[name])
        if (side > 1) {
          side = c == &longer ? side + 8 : side / 2;
          break;
        }
    for (const TinyCheckpoint* c : {&dropped, &more, &longer, &narrow})
      followed += follow(*c, own) + follow(*c);
  }
  EXPECT_GT(followed, 3u);
}

INSTANTIATE_TEST_SUITE_P(Files, Hints, testing::ValuesIn(golden::backbones()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace fungi
