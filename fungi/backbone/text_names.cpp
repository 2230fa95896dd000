// SPDX-License-Identifier: Apache-2.0
// Text encoders in Hugging Face's names: BERT, RoBERTa (after-norm) and T5 (RMS norm, relative
// positions, no biases); SPEC 4.2. Many relatives have the same names for their tensors and compute
// something else, so what is not known to be the same is refused. Those with names of their own are
// in bert_kin_names.cpp and modernbert_names.cpp.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "fungi/backbone/names.h"
#include "fungi/backbone/position.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

const std::set<std::string> kBert{"bert", "electra", "splinter"},
    kRoberta{"camembert", "data2vec-text", "roberta", "xlm-roberta"}, kT5{"mt5", "t5"};

// The relatives that call their networks so, e.g. "roberta.encoder.layer.0"; their config.json says
// what BERT's names do not.
const std::set<std::string> kRelatives{
    "big_bird", "camembert", "data2vec_text", "ernie",   "layoutlm", "longformer",  "luke",
    "mra",      "nezha",     "nystromformer", "qdqbert", "roberta",  "xlm_roberta", "yoso"};

// Other embeddings that are added to the words or come after them: Ernie's, LayoutLM's, Bros's,
// those of the small ELECTRA; and other layers, as LXMERT's. (Of tensors in the blocks,
// check_reading() knows.)
void refuse_other_parts(const NameReader& names) {
  for (const TensorInfo& t : names.checkpoint().tensors()) {
    if (names.ignored(t.name)) continue;
    bool known = true;
    for (const char* part : {"embeddings", "encoder.", "bbox_embeddings"})
      known &= !t.name.starts_with(names.full(part));
    known |= t.name.starts_with(names.full("encoder.layer."));
    for (const char* part : {"word_embeddings", "position_embeddings", "token_type_embeddings",
                             "LayerNorm", "position_ids", "token_type_ids"})
      known |= t.name.starts_with(names.full("embeddings.") + part);
    if (!known)
      fail("BERT has no such tensor", tensor_place(names.checkpoint().path(), t.name),
           "this variant is not among those that `models` lists");
  }
}

// What only BERT's own files have, of those without a config.json: its name before the tensors, its
// head, or the names that norms had in its first files.
bool is_surely_bert(const NameReader& names) {
  if (names.stated("family") == "bert") return true;
  std::string prefix = names.full("");
  for (size_t dot; (dot = prefix.find('.')) != std::string::npos; prefix.erase(0, dot + 1))
    if (kBert.count(prefix.substr(0, dot)) || prefix.starts_with("bert_model."))  // DPR's
      return true;
  for (const TensorInfo& t : names.checkpoint().tensors())
    if (t.name.find("cls.predictions.") != std::string::npos) return true;
  return names.has("embeddings.LayerNorm.gamma");
}

// RoBERTa's positions count the tokens that are not padding, from its id + 1 on. It shares the
// names of BERT, whose positions start at 0, so config.json must tell them apart.
std::optional<size_t> padding_id(const NameReader& names, const Architecture& a) {
  const auto type = names.config_text("/model_type");
  if (type && kBert.count(*type)) return {};
  if (type && kRoberta.count(*type)) {
    const double id = names.config_number("/pad_token_id").value_or(1);
    if (!(id >= 0 && id < double(a.vocabulary) && id + 1 < double(a.max_positions)) ||
        id != double(size_t(id)))
      fail(fmt::format("pad_token_id is {}, expected a token id below the {} positions", id,
                       a.max_positions),
           fmt::format("{}: config.json", names.checkpoint().path()));
    return size_t(id);
  }
  if (type) {
    std::set<std::string> known = kBert;
    known.insert(kRoberta.begin(), kRoberta.end());
    require_model_type(names, known);
  }
  const std::string hint =
      "keep its config.json beside it; model_type must be there (and pad_token_id, of RoBERTa)";
  std::string prefix = names.full("");
  for (size_t dot; (dot = prefix.find('.')) != std::string::npos; prefix.erase(0, dot + 1))
    if (kRelatives.count(prefix.substr(0, dot)))
      fail(fmt::format("'{}' has BERT's names, but config.json does not tell how it differs",
                       prefix.substr(0, dot)),
           names.checkpoint().path(), hint);
  if (names.dimension("embeddings.token_type_embeddings.weight", 0) == 1)
    fail("one token type, as of RoBERTa, and no config.json that tells the model_type",
         names.checkpoint().path(), hint);
  if (!is_surely_bert(names))
    fail(
        "BERT and RoBERTa have these names, but other positions, and no config.json tells the "
        "model_type",
        names.checkpoint().path(),
        "keep its config.json beside it; of BERT or ELECTRA, state `stated_facts[family]=bert`");
  return {};
}

// As Hugging Face's T5Config reads "relu", "gated-silu", ...
kernel::Activation t5_activation(const NameReader& names, bool gated) {
  if (const auto act = names.config_activation("/dense_act_fn")) return *act;
  const auto text = names.config_text("/feed_forward_proj");
  if (!text) return gated ? kernel::Activation::gelu_tanh : kernel::Activation::relu;
  const bool says_gated = text->starts_with("gated-");
  if (says_gated != gated)
    fail(fmt::format("feed_forward_proj is '{}', but the tensors have {} gate", printable(*text),
                     gated ? "a" : "no"),
         fmt::format("{}: config.json", names.checkpoint().path()),
         "the two files do not belong together");
  if (*text == "gated-gelu") return kernel::Activation::gelu_tanh;  // so there, by history
  return parse_activation(says_gated ? text->substr(6) : *text);
}

void read_bert(const NameReader& names, Architecture& a, RecipeWriter& w) {
  a.dialect = "huggingface", a.input = InputKind::token_ids;
  a.vocabulary = names.dimension("embeddings.word_embeddings.weight", 0);
  a.width = names.dimension("embeddings.word_embeddings.weight", 1);
  a.max_positions = names.dimension("embeddings.position_embeddings.weight", 0);
  a.depth = names.count_blocks("encoder.layer.", ".attention.self.query.weight");
  refuse_other_parts(names);
  a.padding_id = padding_id(names, a);
  a.family = a.padding_id ? "roberta" : "bert";
  if (names.config_flag("/is_decoder").value_or(false))
    fail("is_decoder is true: its tokens look back only, expected an encoder",
         fmt::format("{}: config.json", names.checkpoint().path()), "give an encoder");
  set_heads(names, a);
  a.mlp_hidden = names.dimension("encoder.layer.0.intermediate.dense.weight", 0);
  a.prefix_tokens = 0;
  a.post_norm = true, a.norm_pre = true, a.final_norm = false;
  a.norm_epsilon = float(names.config_number("/layer_norm_eps").value_or(1e-12));
  a.activation = names.config_activation("/hidden_act").value_or(kernel::Activation::gelu);
  settle_facts(names, a);

  auto norm = [&](const std::string& canonical,
                  const std::string& file) {  // the oldest files say gamma and beta
    const bool old = names.has(file + ".gamma") || names.has(file + ".beta");
    w.tensor(canonical + ".weight", file + (old ? ".gamma" : ".weight"));
    w.tensor(canonical + ".bias", file + (old ? ".beta" : ".bias"));
  };
  w.tensor("words", "embeddings.word_embeddings.weight");
  w.tensor("word_positions", "embeddings.position_embeddings.weight");
  w.rows("word_type", "embeddings.token_type_embeddings.weight", 0);
  norm("norm_pre", "embeddings.LayerNorm");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("encoder.layer.{}.", i),
                      q = f + "attention.self.";
    w.stacked(b + "attn.qkv", {q + "query", q + "key", q + "value"}, true);
    w.affine(b + "attn.proj", f + "attention.output.dense");
    norm(b + "norm1", f + "attention.output.LayerNorm");
    w.affine(b + "mlp.fc1", f + "intermediate.dense");
    w.affine(b + "mlp.fc2", f + "output.dense");
    norm(b + "norm2", f + "output.LayerNorm");
  }
}

void read_t5(const NameReader& names, Architecture& a, RecipeWriter& w) {
  const std::string first = "encoder.block.0.layer.0.SelfAttention.";
  require_model_type(names, kT5);
  const std::string own = "encoder.embed_tokens.weight", shared = "shared.weight",
                    words = names.has(own) && !names.has(shared) ? own : shared;
  const std::string mlp = ".layer.1.DenseReluDense.";
  a.family = "t5", a.dialect = "huggingface", a.input = InputKind::token_ids;
  a.vocabulary = names.dimension(words, 0);
  a.width = names.dimension(words, 1);
  a.depth = names.count_blocks("encoder.block.", ".layer.0.SelfAttention.q.weight");
  a.relative_buckets = names.dimension(first + "relative_attention_bias.weight", 0);
  a.relative_distance = names.config_size("/relative_attention_max_distance").value_or(128);
  if (!relative_buckets_fit(a.relative_buckets, a.relative_distance))
    fail(fmt::format("{} relative buckets for distances up to {}, expected at least 4, and a "
                     "distance of more than a quarter of them",
                     a.relative_buckets, a.relative_distance),
         names.checkpoint().path(), "see relative_attention_max_distance in its config.json");
  a.heads = names.dimension(first + "relative_attention_bias.weight", 1);
  a.head_dim = names.dimension(first + "q.weight", 0) / a.heads;
  a.gated_mlp = names.has("encoder.block.0" + mlp + "wi_0.weight") ||
                names.has("encoder.block.0" + mlp + "wi_1.weight");
  a.mlp_hidden = names.dimension("encoder.block.0" + mlp + "wo.weight", 1);
  a.activation = t5_activation(names, a.gated_mlp);
  a.prefix_tokens = 0;
  a.rms_norm = true, a.qkv_bias = a.linear_bias = false, a.scale_attention = false;
  a.norm_epsilon = float(names.config_number("/layer_norm_epsilon").value_or(1e-6));
  settle_facts(names, a);

  w.tensor("words", words);
  w.tensor("relative_bias", first + "relative_attention_bias.weight");
  for (size_t i = 0; i < a.depth; ++i) {
    const std::string b = fmt::format("blocks.{}.", i), f = fmt::format("encoder.block.{}", i),
                      q = f + ".layer.0.SelfAttention.";
    w.stacked(b + "attn.qkv", {q + "q", q + "k", q + "v"}, false);
    w.affine(b + "attn.proj", q + "o");
    w.affine(b + "norm1", f + ".layer.0.layer_norm");
    w.affine(b + "norm2", f + ".layer.1.layer_norm");
    if (a.gated_mlp)
      w.stacked(b + "mlp.fc1", {f + mlp + "wi_0", f + mlp + "wi_1"}, false);
    else
      w.affine(b + "mlp.fc1", f + mlp + "wi");
    w.affine(b + "mlp.fc2", f + mlp + "wo");
  }
  w.affine("norm", "encoder.final_layer_norm");
  if (names.has("encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"))
    fail("every block has a relative bias of its own, as in UMT5, expected one for all",
         names.checkpoint().path(), "give a T5 or mT5 encoder");
}

}  // namespace

void require_model_type(const NameReader& names, const std::set<std::string>& known) {
  const auto type = names.config_text("/model_type");
  if (!type || known.count(*type)) return;
  fail(fmt::format("the model_type is '{}', expected one of {}", printable(*type),
                   fmt::join(known, ", ")),
       fmt::format("{}: config.json", names.checkpoint().path()),
       "its tensors have the names of these, but it is not known to compute the same; `models` "
       "lists the families");
}

const Dialect kBertNames{
    "BERT",
    {"encoder.layer.0.attention.self.query.weight", "embeddings.word_embeddings.weight",
     "encoder.layer.0.attention.output.dense.weight", "embeddings.position_embeddings.weight"},
    read_bert,
    "",
    /*text=*/true};

const Dialect kT5Names{
    "T5",
    {"encoder.block.0.layer.0.SelfAttention.q.weight",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
     "encoder.block.0.layer.0.SelfAttention.k.weight", "encoder.final_layer_norm.weight"},
    read_t5,
    "",
    /*text=*/true};

}  // namespace fungi
