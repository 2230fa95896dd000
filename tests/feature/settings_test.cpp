// SPDX-License-Identifier: Apache-2.0
// Settings come back from a manifest as they were, and what somebody touched is an Error.
#include "fungi/feature/settings.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"

namespace fungi {
namespace {

using nlohmann::json;

// Every field has another value than its default.
Settings full() {
  Settings s{.preset = Preset::paper,
             .precision = Precision::bf16,
             .seed = ~uint64_t{0},
             .objectives = {{"simclr", {{"negatives", 64.0}, {"statistics", "imagenet"}}},
                            {"kl", {{"temperature", 0.1}}}},
             .stated = {{"heads", "4"}, {"mean", "0,0,0"}}};
  s.gradient = {"blocks.3.mlp.fc1", true, {9, 8, false}, {ProjectionKind::matrix, 7, 6, "00ff"}};
  ImageSettings image;
  image.decode.exif_orientation = image.decode.allow_truncated = true;
  image.preprocess = {.resize = Preprocess::Resize::squash,
                      .resize_size = 300,
                      .filter = Filter::bilinear,
                      .input_size = 280,
                      .floor_crop = true,
                      .mean = {0.1f, 0.2f, 0.3f},
                      .std = {0.4f, 0.5f, 0.6f}};
  s.input = image;
  return s;
}

StoreSpec spec_of(const Settings& settings) {
  StoreSpec spec;
  write_settings(settings, spec);
  return spec;
}

ImageSettings& image(Settings& s) { return std::get<ImageSettings>(s.input); }

// One change of each field there is.
const std::vector<std::pair<const char*, std::function<void(Settings&)>>> kChanges{
    {"preset", [](Settings& s) { s.preset = Preset::lib; }},
    {"precision", [](Settings& s) { s.precision = Precision::f32; }},
    {"seed", [](Settings& s) { s.seed = 3; }},
    {"objective", [](Settings& s) { s.objectives.pop_back(); }},
    {"order", [](Settings& s) { std::swap(s.objectives[0], s.objectives[1]); }},
    {"name", [](Settings& s) { s.objectives[0].name = "dino"; }},
    {"parameter", [](Settings& s) { s.objectives[0].parameters["width"] = 1.0; }},
    {"number", [](Settings& s) { s.objectives[0].parameters["negatives"] = 65.0; }},
    {"word", [](Settings& s) { s.objectives[0].parameters["statistics"] = "model"; }},
    {"layer", [](Settings& s) { s.gradient->layer = "blocks.2.mlp.fc1"; }},
    {"norm1", [](Settings& s) { s.gradient->norm1_as_input = false; }},
    {"outputs", [](Settings& s) { s.gradient->shape.outputs = 1; }},
    {"inputs", [](Settings& s) { s.gradient->shape.inputs = 1; }},
    {"bias", [](Settings& s) { s.gradient->shape.bias = true; }},
    {"kind", [](Settings& s) { s.gradient->projection.kind = ProjectionKind::sparse; }},
    {"rows", [](Settings& s) { s.gradient->projection.rows = 1; }},
    {"projection seed", [](Settings& s) { s.gradient->projection.seed = 1; }},
    {"sha256", [](Settings& s) { s.gradient->projection.matrix_sha256 = ""; }},
    {"stated", [](Settings& s) { s.stated["heads"] = "5"; }},
    {"exif", [](Settings& s) { image(s).decode.exif_orientation = false; }},
    {"truncated", [](Settings& s) { image(s).decode.allow_truncated = false; }},
    {"resize", [](Settings& s) { image(s).preprocess.resize = Preprocess::Resize::none; }},
    {"resize_size", [](Settings& s) { image(s).preprocess.resize_size = 1; }},
    {"filter", [](Settings& s) { image(s).preprocess.filter = Filter::bicubic; }},
    {"input_size", [](Settings& s) { image(s).preprocess.input_size = 1; }},
    {"floor_crop", [](Settings& s) { image(s).preprocess.floor_crop = false; }},
    {"mean", [](Settings& s) { image(s).preprocess.mean[1] = 0.7f; }},
    {"std", [](Settings& s) { image(s).preprocess.std[2] = 0.7f; }},
};

TEST(Settings, EveryFieldComesBack) {
  const Settings before = full();
  const StoreSpec written = spec_of(before);
  EXPECT_EQ(read_settings(written, "p"), before);
  EXPECT_EQ(written.pipeline, "embedding+simclr+kl");
  EXPECT_EQ(written.precision, "bf16");
  EXPECT_TRUE(has_settings(written));
  for (const auto& [name, change] : kChanges) {
    Settings changed = full();
    change(changed);
    EXPECT_FALSE(changed == before) << name;
    const StoreSpec spec = spec_of(changed);
    EXPECT_TRUE(spec.settings != written.settings || spec.precision != written.precision ||
                spec.pipeline != written.pipeline)
        << name;
    EXPECT_EQ(read_settings(spec, "p"), changed) << name;
  }
  const Settings plain;  // the embedding alone
  EXPECT_EQ(read_settings(spec_of(plain), "p"), plain);
}

// The JSON of every value somewhere in an object, by its path.
void each_value(const json& value, const json::json_pointer& path,
                const std::function<void(const json::json_pointer&, const json&)>& use) {
  for (const auto& [name, inner] : value.items()) {
    use(path / name, inner);
    if (inner.is_object()) each_value(inner, path / name, use);
  }
}

TEST(Settings, WhatSomebodyTouchedIsNamed) {
  const StoreSpec spec = spec_of(full());
  const json whole = json::parse(spec.settings);
  const auto refused = [&](const json& changed) {
    StoreSpec touched = spec;
    touched.settings = changed.dump();
    return test::error_of([&] { read_settings(touched, "x/store"); });
  };
  const auto expect_named = [&](const json& changed, const std::string& name) {
    const std::string text = refused(changed);
    EXPECT_NE(text.find(name), std::string::npos) << name << ": " << text;
    EXPECT_NE(text.find("x/store"), std::string::npos) << text;
    EXPECT_NE(text.find("extract again"), std::string::npos) << text;
  };
  size_t fields = 0;
  each_value(whole, json::json_pointer(), [&](const json::json_pointer& path, const json& value) {
    const std::string name = path.back(), text = path.to_string();
    if (text.starts_with("/stated/")) return;  // any text
    const bool optional = text.ends_with("/sha256") || text.ends_with("/projection/seed");
    const bool parameter = text.starts_with("/objectives/") &&
                           path.parent_pointer() != json::json_pointer("/objectives");
    json changed = whole;
    if (!parameter && !optional) {
      changed[path.parent_pointer()].erase(name);
      expect_named(changed, name);
    }
    for (const json& wrong :
         {json(nullptr), json::array({"x"}), json(-1.5), json(1e300), json("?")}) {
      const bool fits = parameter && (wrong.is_number() || wrong.is_string());
      if (wrong.is_string() && text.ends_with("/sha256")) continue;
      if (fits || (value.is_string() && name == "layer" && wrong.is_string())) continue;
      changed = whole;
      changed[path] = wrong;
      expect_named(changed, name);
    }
    if (value.is_object() && text != "/objectives" && !text.starts_with("/objectives/") &&
        text != "/stated") {
      changed = whole;
      changed[path]["later"] = 1;
      expect_named(changed, name + ".later");
    }
    ++fields;
  });
  EXPECT_GT(fields, 25u);
  for (const char* shape : {"outputs", "inputs"}) {
    json changed = whole;
    changed["gradient"][shape] = 0;
    expect_named(changed, shape);
  }
  for (const json& value : {json(), json(3), json::array()}) expect_named(value, "JSON object");
  json changed = whole;
  changed["objectives"]["dino"] = json::object();
  expect_named(changed, "settings.objectives.dino");  // which the pipeline does not name
  changed = whole;
  changed["stated"]["heads"] = 4;
  expect_named(changed, "stated.heads");
  StoreSpec touched = spec;
  touched.precision = "f64";
  EXPECT_ERROR("f64", read_settings(touched, "p"));
  touched = spec;
  touched.settings = "{";
  EXPECT_ERROR("JSON object", read_settings(touched, "p"));
  touched.settings = R"({"rows of": "another program"})";
  EXPECT_FALSE(has_settings(touched));
}

TEST(Settings, BytesThatAreNoUtf8) {
  Settings settings = full();
  settings.stated["family"] = "\xff";
  EXPECT_ERROR("use UTF-8", spec_of(settings));
}

TEST(Settings, GradientsAreExportedUnderTheirLayer) {
  for (const auto& [layer, name] : {std::pair{"blocks.1.attn.qkv", "attn_qkv"},
                                    {"blocks.11.attn.proj", "attn_proj"},
                                    {"blocks.0.mlp.fc1", "mlp_fc1"},
                                    {"blocks.1.mlp.fc2", "mlp_fc2"}}) {
    Settings settings = full();
    settings.gradient->layer = layer;
    EXPECT_EQ(dataset_name(spec_of(settings)), name);
  }
  EXPECT_EQ(dataset_name({}), "attn_proj") << "of another program";
}

// What decides about a block is kept, and nothing else.
TEST(Settings, OfBlocks) {
  const Settings embedding = settings_of_blocks(full(), {"embedding"}, true);
  EXPECT_FALSE(embedding.gradient);
  EXPECT_TRUE(embedding.objectives.empty());
  EXPECT_EQ(embedding.precision, Precision::bf16);
  const Settings kl = settings_of_blocks(full(), {"kl_factors_b"}, false);
  ASSERT_EQ(kl.objectives.size(), 1u);
  EXPECT_EQ(kl.objectives[0].name, "kl");
  EXPECT_EQ(kl.gradient->layer, "blocks.3.mlp.fc1");
  EXPECT_EQ(kl.gradient->projection, ProjectionSettings{});
  EXPECT_EQ(kl.seed, full().seed);
}

}  // namespace
}  // namespace fungi
