// SPDX-License-Identifier: Apache-2.0
// What a loaded backbone says of itself. Its weights come in by load.cpp; encode.cpp runs it.
#include "fungi/backbone/backbone.h"

#include <algorithm>
#include <atomic>

#include "fungi/backbone/encode.h"
#include "fungi/checkpoint/checkpoint.h"

namespace fungi {

uint64_t next_backbone_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

const Architecture& Backbone::architecture() const { return weights_->arch; }
const BackboneOptions& Backbone::options() const { return weights_->options; }
const kernel::Kernel& Backbone::kernel() const { return *weights_->kernel; }
const kernel::Kernel& Backbone::products() const { return *weights_->products; }
std::optional<LayerId> Backbone::layer() const { return weights_->layer; }
const std::vector<LayerId>& Backbone::layers() const { return weights_->layers; }
const std::shared_ptr<const WordHead>& Backbone::word_head() const { return weights_->word_head; }
const std::vector<std::string>& Backbone::notes() const { return weights_->notes; }
const std::filesystem::path& Backbone::path() const { return weights_->path; }

std::string Backbone::sha256() const {
  const Weights& w = *weights_;
  if (w.path.empty()) return w.sha256;  // of assembled weights empty
  std::call_once(w.hashed, [&w] {
    const Checkpoint checkpoint = Checkpoint::open(w.path);
    if (checkpoint.stamp() != w.stamp)
      fail(
          "the file was changed or replaced after the backbone was opened: its sum is not that of "
          "the weights in use",
          w.path.string(), "open the backbone again, and leave the file alone while it is used");
    w.sha256 = checkpoint.sha256();
  });
  return w.sha256;
}

namespace {

void require_layer(const std::optional<LayerId>& layer) {
  if (!layer)
    fail("the backbone was opened without a layer", "layer", "set BackboneOptions::layer");
}

}  // namespace

size_t Backbone::layer_inputs() const {
  require_layer(weights_->layer);
  return fungi::layer_inputs(weights_->arch, *weights_->layer);
}

size_t Backbone::layer_outputs() const {
  require_layer(weights_->layer);
  return fungi::layer_outputs(weights_->arch, *weights_->layer);
}

bool Backbone::layer_bias() const {
  require_layer(weights_->layer);
  return fungi::layer_bias(weights_->arch, *weights_->layer);
}

TokenLayout Backbone::layout(const Inputs& inputs) const {
  return token_layout(weights_->arch, inputs);
}

size_t Backbone::preferred_batch() const {
  const Architecture& a = weights_->arch;
  if (a.input == InputKind::token_ids) return 64;
  return std::max<size_t>(1, preferred_tokens() / a.tokens());
}

}  // namespace fungi
