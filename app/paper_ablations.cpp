// SPDX-License-Identifier: Apache-2.0
// Ablations as printed. Blocks of one kind with other parameters have labels, and come from one
// extraction.
#include "app/paper.h"

namespace fungi::app {

std::vector<PaperTable> paper_ablations() {
  return {
      {"pca", "Nearest neighbours with and without PCA, mean of 11 data sets", Protocol::knn,
       R"(setting features deit-b16
no-pca embedding 65.1
no-pca embedding+kl 66.0
no-pca embedding+kl+dino 67.8
no-pca embedding+kl+dino+simclr 69.8
full embedding 65.3
full embedding+kl 66.3
full embedding+kl+dino 68.1
full embedding+kl+dino+simclr 70.1)"},

      {"projections", "Random projections by kind, without PCA, means of three seeds",
       Protocol::knn, R"(setting features backbone flowers
binary embedding deit-b16 56.9
binary embedding+kl deit-b16 59.7±0.4
binary embedding+kl+dino deit-b16 63.5±0.1
binary embedding+kl+dino+simclr deit-b16 69.2±0.6
gaussian embedding deit-b16 56.9
gaussian embedding+kl deit-b16 60.2±0.2
gaussian embedding+kl+dino deit-b16 63.2±0.5
gaussian embedding+kl+dino+simclr deit-b16 69.0±0.7
sparse embedding deit-b16 56.9
sparse embedding+kl deit-b16 60.0±0.1
sparse embedding+kl+dino deit-b16 63.1±0.2
sparse embedding+kl+dino+simclr deit-b16 68.9±0.9)"},

      {"reductions", "Reduction of the concatenation to 512 columns", Protocol::knn,
       R"(setting features backbone flowers
no-pca embedding deit-b16 57.2±0.0
no-pca embedding+kl deit-b16 59.4±0.0
no-pca embedding+kl+dino deit-b16 64.3±0.0
no-pca embedding+kl+dino+simclr deit-b16 69.2±0.0
full embedding deit-b16 61.6±0.0
full embedding+kl deit-b16 64.0±0.0
full embedding+kl+dino deit-b16 68.3±0.0
full embedding+kl+dino+simclr deit-b16 70.9±0.0
reduced-sign embedding deit-b16 55.5±0.4
reduced-sign embedding+kl deit-b16 59.0±0.8
reduced-sign embedding+kl+dino deit-b16 62.9±0.4
reduced-sign embedding+kl+dino+simclr deit-b16 67.7±0.5
reduced-gaussian embedding deit-b16 55.8±1.0
reduced-gaussian embedding+kl deit-b16 58.2±0.8
reduced-gaussian embedding+kl+dino deit-b16 62.2±0.3
reduced-gaussian embedding+kl+dino+simclr deit-b16 67.0±0.4
reduced-sparse embedding deit-b16 56.0±0.5
reduced-sparse embedding+kl deit-b16 58.7±0.3
reduced-sparse embedding+kl+dino deit-b16 61.9±0.5
reduced-sparse embedding+kl+dino+simclr deit-b16 66.9±0.7)"},

      // Labels: whether the embedding has length 1, whether there is a head.
      {"heads",
       "The gradient alone, with and without normalised input (0, 1) and head (0, 1)",
       Protocol::knn,
       R"(setting features backbone imagenet100
full kl_00 deit-b16 88.3
full kl_10 deit-b16 87.3
full kl_01 deit-b16 88.8
full kl deit-b16 89.1
full dino_00 deit-b16 79.3
full dino_10 deit-b16 87.8
full dino_01 deit-b16 84.7
full dino deit-b16 90.1
full simclr_10 deit-b16 88.7
full simclr deit-b16 88.8
full simclr_11 deit-b16 88.7)",
       {"kl", "kl_00:normalise=no,head=none", "kl_10:head=none", "kl_01:normalise=no", "dino",
        "dino_00:normalise=no,head=none", "dino_10:head=none", "dino_01:normalise=no", "simclr",
        "simclr_10:normalise=yes,head=none", "simclr_11:normalise=yes"}},

      {"dino",
       "DINO's gradient alone: heads and augmentation",
       Protocol::knn,
       R"(setting features backbone imagenet100
full dino_shared deit-b16 88.4
full dino_augmented deit-b16 88.9
full dino deit-b16 90.1)",
       {"dino", "dino_shared:heads=shared", "dino_augmented:augmentation=dino"}},
  };
}

}  // namespace fungi::app
