// SPDX-License-Identifier: Apache-2.0
// What gives each patch of a picture a gradient of its own: one loss over all of its tokens, or the
// loss of a sample with every patch for a sample. Internal to this room.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/stages.h"
#include "fungi/objective/objective.h"
#include "fungi/objective/presets.h"
#include "fungi/search/index.h"

namespace fungi {

struct PatchLossContext {
  size_t token_width = 0, prefix = 0, registers = 0, patches = 0;
  uint64_t seed = 42;
  Preset preset = Preset::native;
};

class PatchLoss {
 public:
  virtual ~PatchLoss() = default;

  // tokens, gradient: [prefix + patches, width] of one picture. Overwrites gradient; rows of
  // registers become zero: a loss looks at class token and patches.
  virtual void gradient(View<const float> tokens, std::string_view picture, Stages& stages,
                        Pool& alone, View<float> gradient) const = 0;

  virtual size_t support_rows() const { return 0; }
  virtual void set_support(Matrix<float>, Pool&) {}
  virtual View<const float> support() const { return {}; }
  virtual std::vector<Parameter> parameters() const = 0;
  virtual std::vector<NamedMatrix> state() const = 0;  // "<objective>-head0-weight"
  virtual void restore(const std::vector<NamedMatrix>& state) = 0;
};

// Error naming the choices where there is no such objective.
std::unique_ptr<PatchLoss> make_patch_loss(const std::string& specification,
                                           const PatchLossContext& context);

}  // namespace fungi
