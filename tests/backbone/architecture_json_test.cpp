// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/architecture_json.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "fungi/backbone/names.h"
#include "tests/support/errors.h"

namespace fungi {
namespace {

using nlohmann::json;

const std::string kGolden = FUNGI_GOLDEN_DIR "/backbone/";

Architecture golden(const std::string& file, const StatedFacts& facts = {}) {
  return read_names(Checkpoint::open(kGolden + file), facts).architecture;
}

// Another value of the same type; a word of an enum is another of its words.
json other_value(const std::string& name, const json& value) {
  static const std::map<std::string, std::string> words{
      {"input", "token_ids"},  {"position_resize", "bilinear"},
      {"activation", "relu"},  {"pooling", "mean_all"},
      {"family", "bert"},      {"dialect", "mae"},
      {"source", "elsewhere"}, {"resize", "squash"},
      {"filter", "bilinear"},  {"kind", "mfcc"}};
  if (name == "padding_id") return value == "none" ? json(1) : json("none");
  if (value.is_string()) return words.at(name);
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_array()) return json{value[0], value[2], 0.125};
  if (value.is_number_float()) return 0.5;
  return value.get<size_t>() + 1;
}

TEST(ArchitectureJson, ComesBackAsItWas) {
  for (const auto& [file, facts] : std::vector<std::pair<std::string, StatedFacts>>{
           {"timm_vit/model.safetensors", {{"heads", "4"}}},
           {"timm_eva02_clip/model.safetensors", {}},
           {"dinov2_registers/model.pth", {{"heads", "4"}}},
           {"roberta/model.safetensors", {}},
           {"albert_groups/model.safetensors", {{"heads", "2"}}},
           {"mpnet_max/model.safetensors", {{"pooling", "max_all"}}},
           {"modernbert/model.safetensors", {}},
           {"modernbert_old/model.safetensors", {{"pooling", "mean_sqrt"}}},
           {"t5/model.safetensors", {}}}) {
    const Architecture a = golden(file, facts);
    EXPECT_EQ(parse_architecture(to_json(a), file), a) << file;
  }
  const Architecture named = named_architecture("dinov2_vits14");
  EXPECT_EQ(parse_architecture(to_json(named), ""), named);
  const json facts = json::parse(to_json(named));
  EXPECT_EQ(facts["width"], 384);
  EXPECT_EQ(facts["tokens"], 257);
  EXPECT_EQ(facts["padding_id"], "none");
}

// Whatever is in the JSON decides about the record, and each by itself.
TEST(ArchitectureJson, EveryFieldIsReadAndWritten) {
  Architecture a = golden("timm_vit/model.safetensors", {{"heads", "4"}});
  a.input = InputKind::filter_bank;  // no other has a front end
  const json facts = json::parse(to_json(a));
  size_t fields = 0;
  const auto check = [&](const json& changed, const std::string& name) {
    const Architecture b = parse_architecture(changed.dump(), "");
    EXPECT_FALSE(a == b) << name;
    json again = json::parse(to_json(b)), expected = changed;
    for (const char* derived : {"tokens", "parameters", "sound"})
      if (derived != std::string("sound") || name == "input")
        again.erase(derived), expected.erase(derived);
    EXPECT_EQ(again, expected) << name;
    ++fields;
  };
  for (const auto& [name, value] : facts.items()) {
    if (name == "tokens" || name == "parameters") continue;
    json changed = facts;
    if (!value.is_object()) {
      changed[name] = other_value(name, value);
      check(changed, name);
      continue;
    }
    for (const auto& [inner, fact] : value.items()) {
      changed = facts;
      changed[name][inner] = other_value(inner, fact);
      check(changed, name + "." + inner);
    }
  }
  EXPECT_EQ(fields, 49u + 12u + 17u) << "a field more or less: is it new in the struct, too?";
}

// What came later is written of the models that have it alone, so others compare as before.
TEST(ArchitectureJson, RareFactsAreWrittenWhereTheyAreNotAsUsual) {
  const json image = json::parse(to_json(named_architecture("vit_tiny_patch16_224")));
  json albert = json::parse(to_json(golden("albert_groups/model.safetensors"))),
       modern = json::parse(to_json(golden("modernbert/model.safetensors")));
  for (const char* name : {"word_width", "shared_blocks"}) EXPECT_TRUE(albert.contains(name));
  for (const char* name : {"position_table", "token_types", "norm_bias", "first_norm",
                           "rotary_theta", "local_distance", "global_every"})
    EXPECT_TRUE(modern.contains(name)) << name;
  for (const json& facts : {albert, modern})
    for (const auto& [name, value] : facts.items()) {
      if (image.contains(name) || name == "parameters") continue;
      json changed = facts;
      changed[name] = other_value(name, value);
      EXPECT_EQ(json::parse(to_json(parse_architecture(changed.dump(), "")))[name],
                changed[name].is_boolean() ? json() : changed[name])
          << name << ": a flag that is as usual is not written";
      changed[name] = "no such word";
      EXPECT_ERROR("architecture." + name, parse_architecture(changed.dump(), ""));
    }
}

TEST(ArchitectureJson, WhatSomebodyTouchedIsNamed) {
  const json facts = json::parse(to_json(named_architecture("vit_tiny_patch16_224")));
  const auto refused = [&](const std::function<void(json&)>& change) {
    json changed = facts;
    change(changed);
    return test::error_of([&] { parse_architecture(changed.dump(), "x/manifest.json"); });
  };
  for (const auto& fact : facts.items()) {
    const std::string& name = fact.key();
    if (name == "tokens" || name == "parameters") continue;
    const std::string gone = refused([&](json& f) { f.erase(name); });
    EXPECT_NE(gone.find("'architecture." + name + "' is missing"), std::string::npos) << gone;
    EXPECT_NE(gone.find("x/manifest.json"), std::string::npos) << gone;
    for (const json& wrong : {json("no such word"), json(-1), json(json::array()), json(1e300)}) {
      if (wrong.is_string() && (name == "family" || name == "dialect")) continue;
      if (wrong == -1 && name == "norm_epsilon") continue;
      EXPECT_NE(refused([&](json& f) { f[name] = wrong; }).find("architecture." + name),
                std::string::npos)
          << name << " " << wrong;
    }
    EXPECT_EQ(refused([&](json& f) { f[name] = nullptr; }), "") << "not said";
  }
  EXPECT_NE(refused([](json& f) {
              f["preprocess"]["mean"] = {1, 2};
            }).find("preprocess.mean"),
            std::string::npos);
  EXPECT_NE(test::error_of([] { parse_architecture("[1]", "p"); }).find("JSON object"),
            std::string::npos);
  EXPECT_NE(test::error_of([] { parse_architecture("{", "p"); }).find("JSON object"),
            std::string::npos);
}

}  // namespace
}  // namespace fungi
