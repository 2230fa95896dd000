// SPDX-License-Identifier: Apache-2.0
#include "fungi/backbone/word_head.h"

#include <fmt/format.h>

#include <optional>

#include "fungi/backbone/block.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

using kernel::Activation;

// What a family calls the parts of its head, and what no tensor tells: where nothing stands here,
// it is as in the blocks.
struct HeadNames {
  const char *dense, *norm, *decoder, *bias;
  std::optional<Activation> activation = {};
  std::optional<float> epsilon = {};
};

constexpr HeadNames kHeads[] = {
    // BERT
    {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
     "cls.predictions.decoder", "cls.predictions.bias"},
    // RoBERTa, XLM-R, CamemBERT, data2vec, MPNet
    {"lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias", Activation::gelu},
    // DistilBERT
    {"vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias", {}, 1e-12f},
    // ALBERT
    {"predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias"},
    // ELECTRA's generator
    {"generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head",
     "generator_lm_head.bias", Activation::gelu},
    // ModernBERT
    {"head.dense", "head.norm", "decoder", "decoder.bias", Activation::gelu},
};

// Where a model repeats its table of words in no other place, the head's is that of its input.
constexpr const char* kWords[] = {"embeddings.word_embeddings.weight",
                                  "embeddings.tok_embeddings.weight"};

struct FoundHead {
  const HeadNames* names;
  std::string prefix;  // before all of them
};

// A classifier may begin with the same dense layer, but it has neither words nor a bias for each.
bool is_whole(const Checkpoint& checkpoint, const std::string& prefix, const HeadNames& names) {
  const std::string decoder = prefix + names.decoder;
  return checkpoint.find(prefix + names.dense + ".weight") &&
         (checkpoint.find(prefix + names.bias) || checkpoint.find(decoder + ".weight") ||
          checkpoint.find(decoder + ".bias"));
}

// A head stands beside its network, in the same folder or in one above: "bert.", "cls.".
std::optional<FoundHead> find_head(const Checkpoint& checkpoint, std::string prefix) {
  for (;;) {
    for (const HeadNames& names : kHeads)
      if (is_whole(checkpoint, prefix, names)) return FoundHead{&names, prefix};
    if (prefix.empty()) return {};
    prefix.pop_back();
    prefix.resize(prefix.find_last_of('.') + 1);
  }
}

class HeadReader {
 public:
  HeadReader(const Checkpoint& checkpoint, const Reading& reading)
      : checkpoint_(checkpoint), network_(reading.prefix) {
    const auto found = find_head(checkpoint, network_);
    if (!found)
      fail(
          "the head that guesses hidden words is not in this file: expected that of BERT "
          "(cls.predictions), RoBERTa or MPNet (lm_head), DistilBERT (vocab_transform), ALBERT "
          "(predictions), ELECTRA's generator or ModernBERT (head.dense)",
          checkpoint.path(),
          "leave mlm out of `objectives`, or give the model as it was trained to guess words; "
          "sentence encoders "
          "are published without that head, and T5 has none");
    names = found->names, prefix_ = found->prefix;
  }

  bool has(const std::string& name) const { return checkpoint_.find(prefix_ + name) != nullptr; }
  // The size of an axis of a tensor that was found.
  size_t rows(const std::string& name) const {
    const TensorInfo* t = checkpoint_.find(name);
    return t && !t->shape.empty() ? t->shape[0] : 0;
  }
  std::string dense() const { return prefix_ + names->dense + ".weight"; }
  std::string decoder() const {
    if (has(names->decoder + std::string(".weight"))) return prefix_ + names->decoder + ".weight";
    for (const char* words : kWords)
      if (checkpoint_.find(network_ + words)) return network_ + words;
    fail("the head that guesses words has no table of them, and shares none",
         tensor_place(checkpoint_.path(), prefix_ + names->decoder + ".weight"),
         "the download may be incomplete");
  }
  Matrix<float> matrix(const std::string& tensor, size_t rows, size_t cols) const {
    Recipes recipes;
    recipes["lm_head"].parts = {tensor};
    return CheckpointTensors(checkpoint_, recipes).get({"lm_head", rows, cols});
  }
  // One of these names, below the head's prefix; empty where there is none of them.
  std::vector<float> vector(std::initializer_list<std::string> tensors, size_t size) const {
    for (const std::string& tensor : tensors) {
      if (!has(tensor)) continue;
      const Matrix<float> found = matrix(prefix_ + tensor, 1, size);
      return {found.data(), found.data() + size};
    }
    return {};
  }

  const HeadNames* names = nullptr;

 private:
  const Checkpoint& checkpoint_;
  std::string network_, prefix_;
};

class NetworkWordHead final : public WordHead {
 public:
  NetworkWordHead(const HeadReader& reader, const Architecture& a, const kernel::Kernel& kernel)
      : kernel_(kernel),
        activation_(reader.names->activation.value_or(a.activation)),
        epsilon_(reader.names->epsilon.value_or(a.norm_epsilon)) {
    const size_t inner = reader.rows(reader.dense());
    const std::string dense = reader.names->dense, norm = reader.names->norm;
    const Matrix<float> weight = reader.matrix(reader.dense(), inner, a.width),
                        table = reader.matrix(reader.decoder(), a.vocabulary, inner);
    dense_ = whole(weight, reader.vector({dense + ".bias"}, inner));
    // Where a file has both biases the decoder's own is the one that counts: they are one in most.
    const std::vector<float> bias = reader.vector(
        {reader.names->decoder + std::string(".bias"), reader.names->bias}, a.vocabulary);
    decoder_ = whole(table, bias);
    norm_.weight = reader.vector({norm + ".weight", norm + ".gamma"}, inner);
    norm_.bias = reader.vector({norm + ".bias", norm + ".beta"}, inner);
    if (norm_.weight.empty())
      fail("the head that guesses words has no norm", norm, "the download may be incomplete");
  }

  size_t token_width() const override { return dense_.in; }
  size_t words() const override { return decoder_.out; }

  void forward(View<const float> tokens, View<float> logits) const override {
    Buffer scratch;
    Inner inner(*this, tokens, scratch);
    run_norm(inner.h);
    kernel::multiply(kernel_, inner.h, decoder_.forward, decoder_.bias_data(), logits, scratch);
  }

  void backward(View<const float> tokens, View<const float> d_logits,
                View<float> d_tokens) const override {
    Buffer scratch;
    const Inner inner(*this, tokens, scratch);
    Matrix<float> d_n(tokens.rows, dense_.out), d_h(tokens.rows, dense_.out);
    kernel::multiply(kernel_, d_logits, decoder_.backward, nullptr, d_n, scratch);
    kernel_.norm_backward(false, d_n.rows(), d_n.cols(), inner.h.data(), inner.h.stride(),
                          norm_.weight.data(), epsilon_, d_n.data(), d_n.stride(), false,
                          d_h.data(), d_h.stride());
    kernel_.activate_backward(activation_, d_h.rows(), d_h.cols(), inner.u.data(), inner.u.stride(),
                              d_h.data(), d_h.stride(), d_n.data(), d_n.stride());
    kernel::multiply(kernel_, d_n, dense_.backward, nullptr, d_tokens, scratch);
  }

 private:
  // What lies before the norm: the dense layer's output and its activation.
  struct Inner {
    Matrix<float> u, h;
    Inner(const NetworkWordHead& head, View<const float> tokens, Buffer& scratch)
        : u(tokens.rows, head.dense_.out), h(tokens.rows, head.dense_.out) {
      kernel::multiply(head.kernel_, tokens, head.dense_.forward, head.dense_.bias_data(), u,
                       scratch);
      head.kernel_.activate(head.activation_, u.rows(), u.cols(), u.data(), u.stride(), h.data(),
                            h.stride());
    }
  };

  Linear whole(const Matrix<float>& weight, const std::vector<float>& bias) const {
    return slice_linear({kernel_, &kernel_}, weight, bias, 0, weight.rows());
  }
  void run_norm(Matrix<float>& rows) const {
    kernel_.norm(false, rows.rows(), rows.cols(), rows.data(), rows.stride(), norm_.weight.data(),
                 norm_.beta(), epsilon_, rows.data(), rows.stride(), nullptr, 0);
  }

  const kernel::Kernel& kernel_;
  Activation activation_;
  float epsilon_;
  Linear dense_, decoder_;
  Norm norm_;
};

}  // namespace

std::shared_ptr<const WordHead> load_word_head(const Checkpoint& checkpoint, const Reading& reading,
                                               const kernel::Kernel& kernel) {
  return std::make_shared<NetworkWordHead>(HeadReader(checkpoint, reading), reading.architecture,
                                           kernel);
}

}  // namespace fungi
