// SPDX-License-Identifier: Apache-2.0
// The figures of the paper, whose numbers are mostly not printed: there is ours to show. One data
// set stands for all where the paper does not say which it was.
#include "app/paper.h"

namespace fungi::app {

std::vector<PaperTable> paper_figures() {
  return {
      {"objectives",
       "Figure: every objective's gradient alone and beside the embedding",
       Protocol::knn,
       R"(setting features backbone flowers
full embedding deit-b16 -
full kl deit-b16 -
full dino deit-b16 -
full simclr deit-b16 -
full deepcluster deit-b16 -
full embedding+kl deit-b16 -
full embedding+dino deit-b16 -
full embedding+simclr deit-b16 -
full embedding+deepcluster deit-b16 -)",
       {"kl", "dino", "simclr", "deepcluster"}},

      {"views",
       "Figure: SimCLR's gradient by its number of views (4, 9, 25, 49), and its speed",
       Protocol::knn,
       R"(setting features backbone flowers
full simclr_4 deit-b16 -
full simclr_9 deit-b16 -
full simclr_25 deit-b16 -
full simclr_49 deit-b16 -
images/s simclr_4 deit-b16 -
images/s simclr_9 deit-b16 -
images/s simclr_25 deit-b16 -
images/s simclr_49 deit-b16 -)",
       {"simclr_4:stride_scale=1", "simclr_9:stride_scale=2", "simclr_25:stride_scale=4",
        "simclr_49:stride_scale=6"},
       ComparedFigure::over_features},

      {"layers",
       "Figure: KL's gradient of every linear layer, from one forward and one backward",
       Protocol::knn,
       R"(setting features backbone flowers
full embedding deit-b16 -
full kl@* deit-b16 -)",
       {"kl"},
       ComparedFigure::layers,
       {},
       {"blocks.*.*"}},

      {"shots",
       "Figure: few training pictures of each class",
       Protocol::knn,
       R"(setting features backbone flowers
1-shot embedding deit-b16 -
1-shot embedding+kl+dino+simclr deit-b16 -
2-shot embedding deit-b16 -
2-shot embedding+kl+dino+simclr deit-b16 -
5-shot embedding deit-b16 -
5-shot embedding+kl+dino+simclr deit-b16 -
10-shot embedding deit-b16 -
10-shot embedding+kl+dino+simclr deit-b16 -)",
       {},
       ComparedFigure::over_settings},

      {"cka",
       "Figure: alignment (CKA) of embedding and gradients, 100 = the same but for a rotation",
       Protocol::cka,
       R"(setting features backbone flowers
full embedding~kl deit-b16 -
full embedding~dino deit-b16 -
full embedding~simclr deit-b16 -
full kl~dino deit-b16 -
full kl~simclr deit-b16 -
full dino~simclr deit-b16 -)",
       {"kl", "dino", "simclr"},
       ComparedFigure::pairs},

      {"pairs",
       "Figure: every two of embedding and gradients together; on the diagonal each alone",
       Protocol::knn,
       R"(setting features backbone flowers
full embedding deit-b16 -
full kl deit-b16 -
full dino deit-b16 -
full simclr deit-b16 -
full embedding+kl deit-b16 -
full embedding+dino deit-b16 -
full embedding+simclr deit-b16 -
full kl+dino deit-b16 -
full kl+simclr deit-b16 -
full dino+simclr deit-b16 -)",
       {"kl", "dino", "simclr"},
       ComparedFigure::pairs},

      {"classes",
       "Figure: what the gradients change, class by class",
       Protocol::knn,
       R"(setting features backbone flowers pets eurosat
* embedding deit-b16 - - -
* embedding+kl+dino+simclr deit-b16 - - -)",
       {},
       ComparedFigure::classes},

      {"sizes",
       "Figure: sizes of ViT, mean of 11 data sets",
       Protocol::knn,
       R"(setting features augreg-in1k-s16 augreg-in1k-b16 augreg-in21k-s16 augreg-in21k-b16 augreg-in21k-l16 clip-b16 clip-l14 dinov2-b14 dinov2-l14
full embedding 60.8 59.2 65.6 66.4 74.7 73.7 80.2 79.9 80.5
full embedding+kl+dino+simclr 64.3 63.6 67.6 69.3 76.5 74.6 81.1 81.7 82.3
5-shot embedding 34.9 33.9 37.4 38.6 47.7 43.0 48.5 47.6 47.1
5-shot embedding+kl+dino+simclr 36.5 36.7 39.5 41.0 50.2 44.4 50.3 50.3 51.4)",
       {}},

      {"speed",
       "Speed of the features, and the accuracy that they buy, mean of 11 data sets",
       Protocol::knn,
       R"(setting features deit-b16
images/s embedding 479
images/s kl 344
images/s dino 32
images/s simclr 12
rows/s embedding 2700
full embedding 67.3
full embedding+kl 68.2
full embedding+dino 70.1
full embedding+simclr 70.9)",
       {"kl", "dino", "simclr"},
       ComparedFigure::dots,
       "the paper measured on an A100, and its neighbours on a processor; its 67.3 of the "
       "embedding "
       "is 65.3 in its other tables. Ours: random pictures of 500 x 375, all stages but files; "
       "rows/s: 20 exact neighbours among 50 000 rows of 512 columns"},
  };
}

}  // namespace fungi::app
