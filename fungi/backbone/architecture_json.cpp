// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/architecture_json.h"

#include <fmt/format.h>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/json_fields.h"

namespace fungi {
namespace {

using nlohmann::json;

// The one list of fields, for both directions. A field that is added to a struct does not compile
// until it is named here, too.
template <class Facts, class Field>
void each_preprocess_field(Facts& facts, Field&& field) {
  auto& [transform, augreg, source, assumed, stated_colours, stated_resize, stated_crop] = facts;
  auto& [resize, resize_size, filter, input_size, floor_crop, mean, std] = transform;
  (void)input_size;  // the architecture's
  field("resize", resize);
  field("resize_size", resize_size);
  field("filter", filter);
  field("floor_crop", floor_crop);
  field("augreg", augreg);
  field("mean", mean);
  field("std", std);
  field("source", source);
  field("assumed", assumed);
  field("stated_colours", stated_colours);
  field("stated_resize", stated_resize);
  field("stated_crop", stated_crop);
}

template <class Facts, class Field>
void each_sound_field(Facts& facts, Field&& field) {
  auto& [front_end, source, assumed, stated_statistics] = facts;
  auto& [kind, rate, window, hop, fft, mels, bins, low_hz, high_hz, frames, mean, std, normalise,
         centre] = front_end;
  field("kind", kind);
  field("rate", rate);
  field("window", window);
  field("hop", hop);
  field("fft", fft);
  field("mels", mels);
  field("bins", bins);
  field("low_hz", low_hz);
  field("high_hz", high_hz);
  field("frames", frames);
  field("mean", mean);
  field("std", std);
  field("normalise", normalise);
  field("centre", centre);
  field("source", source);
  field("assumed", assumed);
  field("stated_statistics", stated_statistics);
}

// Rare facts, which came later, are written where they are not as usual: of all other models the
// JSON is as it was.
template <class Record, class Field>
void each_field(Record& record, Field&& field) {
  static const Architecture usual;
  auto& [family, dialect, input, width, depth, heads, head_dim, mlp_hidden, embedding_width,
         heads_assumed, channels, patch_h, patch_w, stride_h, stride_w, input_h, input_w,
         stored_grid_h, stored_grid_w, position_resize, prefix_tokens, position_on_prefix,
         registers, patch_bias, patch_norm, mask_token, convolutions, vocabulary, max_positions,
         position_table, token_types, word_width, padding_id, relative_buckets, relative_distance,
         shared_blocks, rms_norm, post_norm, norm_bias, first_norm, norm_epsilon, norm_pre,
         layer_scale, qkv_bias, linear_bias, attention_norm, mlp_norm, gated_mlp, activation,
         scale_attention, rotary, rotary_grid, rotary_offset, rotary_columns_first, rotary_centred,
         rotary_theta, local_rotary_theta, local_distance, global_every, pooling, final_norm,
         norm_after_pooling, head, head_bias, unit_embedding, pool_heads, pool_hidden,
         pool_activation, pool_query, pool_bias, pool_prefix, preprocess, sound] = record;
  field("family", family);
  field("dialect", dialect);
  field("input", input);
  field("width", width);
  field("depth", depth);
  field("heads", heads);
  field("head_dim", head_dim);
  field("mlp_hidden", mlp_hidden);
  field("embedding_width", embedding_width);
  field("heads_assumed", heads_assumed);
  field("channels", channels);
  field("patch_h", patch_h);
  field("patch_w", patch_w);
  field("stride_h", stride_h);
  field("stride_w", stride_w);
  field("input_h", input_h);
  field("input_w", input_w);
  field("stored_grid_h", stored_grid_h);
  field("stored_grid_w", stored_grid_w);
  field("position_resize", position_resize);
  field("prefix_tokens", prefix_tokens);
  field("position_on_prefix", position_on_prefix);
  field("registers", registers);
  field("patch_bias", patch_bias);
  field.rare("patch_norm", patch_norm, usual.patch_norm);
  field("mask_token", mask_token);
  field.rare("convolutions", convolutions, usual.convolutions);
  field("vocabulary", vocabulary);
  field("max_positions", max_positions);
  field.rare("position_table", position_table, usual.position_table);
  field.rare("token_types", token_types, usual.token_types);
  field.rare("word_width", word_width, usual.word_width);
  field("padding_id", padding_id);
  field("relative_buckets", relative_buckets);
  field("relative_distance", relative_distance);
  field.rare("shared_blocks", shared_blocks, usual.shared_blocks);
  field("rms_norm", rms_norm);
  field("post_norm", post_norm);
  field.rare("norm_bias", norm_bias, usual.norm_bias);
  field.rare("first_norm", first_norm, usual.first_norm);
  field("norm_epsilon", norm_epsilon);
  field("norm_pre", norm_pre);
  field("layer_scale", layer_scale);
  field("qkv_bias", qkv_bias);
  field("linear_bias", linear_bias);
  field("attention_norm", attention_norm);
  field("mlp_norm", mlp_norm);
  field("gated_mlp", gated_mlp);
  field("activation", activation);
  field("scale_attention", scale_attention);
  field("rotary", rotary);
  field("rotary_grid", rotary_grid);
  field.rare("rotary_offset", rotary_offset, usual.rotary_offset);
  field.rare("rotary_columns_first", rotary_columns_first, usual.rotary_columns_first);
  field.rare("rotary_centred", rotary_centred, usual.rotary_centred);
  field.rare("rotary_theta", rotary_theta, usual.rotary_theta);
  field.rare("local_rotary_theta", local_rotary_theta, usual.local_rotary_theta);
  field.rare("local_distance", local_distance, usual.local_distance);
  field.rare("global_every", global_every, usual.global_every);
  field("pooling", pooling);
  field("final_norm", final_norm);
  field("norm_after_pooling", norm_after_pooling);
  field("head", head);
  field("head_bias", head_bias);
  field.rare("unit_embedding", unit_embedding, usual.unit_embedding);
  field.rare("pool_heads", pool_heads, usual.pool_heads);
  field.rare("pool_hidden", pool_hidden, usual.pool_hidden);
  field.rare("pool_activation", pool_activation, usual.pool_activation);
  field.rare("pool_query", pool_query, usual.pool_query);
  field.rare("pool_bias", pool_bias, usual.pool_bias);
  field.rare("pool_prefix", pool_prefix, usual.pool_prefix);
  field("preprocess", preprocess);
  field("sound", sound);
}

constexpr const char* kNoPadding = "none";

// For people: 1e-06, not 9.999999974752427e-07; both are read as the same float.
json shortest(float value) { return std::stod(fmt::format("{}", value)); }

struct Writer {
  json& out;

  template <class T>
  void operator()(const char* name, const T& value) const {
    if constexpr (std::is_enum_v<T>)
      out[name] = to_string(value);
    else
      out[name] = value;
  }
  template <class T>
  void rare(const char* name, const T& value, const T& usual) const {
    if (value != usual) (*this)(name, value);
  }
  void operator()(const char* name, float value) const { out[name] = shortest(value); }
  void operator()(const char* name, const std::array<float, 3>& values) const {
    out[name] = {shortest(values[0]), shortest(values[1]), shortest(values[2])};
  }
  void operator()(const char* name, const std::optional<size_t>& value) const {
    out[name] = value ? json(*value) : json(kNoPadding);
  }
  void operator()(const char* name, const PreprocessFacts& facts) const {
    each_preprocess_field(facts, Writer{out[name]});
  }
  void operator()(const char* name, const SoundFacts& facts) const {
    each_sound_field(facts, Writer{out[name]});
  }
};

struct Reader {
  JsonFields& fields;

  template <class T>
  void operator()(const char* name, T& value) const {
    if (!fields.value(name).is_null()) read(name, value);
  }

  void operator()(const char* name, SoundFacts& facts) const {
    if (fields.has(name)) read(name, facts);
  }

  template <class T>
  void rare(const char* name, T& value, const T&) const {
    if (fields.has(name)) (*this)(name, value);
  }

  template <class T>
  void read(const char* name, T& value) const {
    fields.read(name, value);
  }
  void read(const char* name, std::optional<size_t>& value) const {
    if (fields.value(name) == kNoPadding) return value.reset();
    fields.read(name, value.emplace());
  }
  void read(const char* name, PreprocessFacts& facts) const {
    JsonFields inner = fields.inside(name);
    each_preprocess_field(facts, Reader{inner});
  }
  void read(const char* name, SoundFacts& facts) const {
    JsonFields inner = fields.inside(name);
    each_sound_field(facts, Reader{inner});
  }
  void read(const char* name, SoundFrontEnd::Kind& kind) const {
    using enum SoundFrontEnd::Kind;
    read_word(name, kind, {kaldi, whisper, mfcc});
  }
  void read(const char* name, InputKind& kind) const {
    using enum InputKind;
    read_word(name, kind, {image, filter_bank, token_ids});
  }
  void read(const char* name, Filter& filter) const {
    read_word(name, filter, {Filter::bilinear, Filter::bicubic});
  }
  void read(const char* name, Preprocess::Resize& resize) const {
    using enum Preprocess::Resize;
    read_word(name, resize, {none, short_side, squash});
  }
  void read(const char* name, Pooling& pooling) const {
    using enum Pooling;
    read_word(
        name, pooling,
        {first, mean_prefix, mean_patches, mean_all, mean_sqrt, max_all, mean_sound, attention});
  }
  void read(const char* name, PositionResize& resize) const {
    using enum PositionResize;
    read_word(
        name, resize,
        {antialias_bicubic, bicubic_offset, bicubic, bicubic_corners, bilinear, cut_bilinear, cut});
  }
  void read(const char* name, kernel::Activation& activation) const {
    using enum kernel::Activation;
    read_word(name, activation, {none, relu, gelu, gelu_tanh, quick_gelu, silu});
  }
  template <class Enum>
  void read_word(const char* name, Enum& value, std::initializer_list<Enum> values) const {
    fields.read_word(name, value, values, [](Enum v) { return to_string(v); });
  }
};

}  // namespace

std::string to_json(const Architecture& architecture) {
  json out;
  each_field(architecture, Writer{out});
  if (architecture.input != InputKind::filter_bank) out.erase("sound");
  if (architecture.input != InputKind::token_ids) out["tokens"] = architecture.tokens();
  out["parameters"] = architecture.parameters();
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Architecture parse_architecture(const std::string& text, const std::string& place) {
  const json value = parse_json(text);
  JsonFields fields(value, "architecture", place);
  Architecture architecture;
  each_field(architecture, Reader{fields});
  if (architecture.input == InputKind::filter_bank) fields.value("sound");  // it is there
  return architecture;
}

}  // namespace fungi
