// SPDX-License-Identifier: Apache-2.0
// The numbers as printed, in percent. Left out: what the paper quotes of others (HummingBird's own
// pre-training, end-to-end fine-tuning).
#include "app/paper.h"

namespace fungi::app {

namespace {

std::vector<PaperTable> main_tables() {
  return {
      {"knn", "Nearest neighbours, mean of 11 data sets, main backbones", Protocol::knn,
       R"(setting features dinov2-b14 dino-b16 deit-b16 mocov3-b16 deit-b32 augreg-in1k-s16 augreg-in1k-b16
full embedding 79.9 69.0 65.3 63.2 61.7 60.8 59.2
full embedding+kl 80.6 69.4 66.3 63.4 63.3 60.3 58.9
full embedding+kl+dino 81.3 70.1 68.1 64.7 65.7 62.6 61.1
full embedding+kl+dino+simclr 81.7 70.9 70.1 65.8 67.3 64.3 63.6
5-shot embedding 47.6 39.3 38.4 34.7 36.2 34.9 33.9
5-shot embedding+kl 48.1 39.4 38.7 35.8 36.6 34.2 33.5
5-shot embedding+kl+dino 49.1 39.7 39.1 36.6 37.6 35.0 34.5
5-shot embedding+kl+dino+simclr 50.3 40.5 41.1 38.2 39.0 36.5 36.7)"},

      {"knn-more", "Nearest neighbours, mean of 11 data sets, additional backbones", Protocol::knn,
       R"(setting features eva-clip-b16 clip-b16 augreg-in21k-b16 augreg-in21k-s16 deit3-b16 mae-b16
full embedding 83.2 73.7 66.4 65.6 64.2 24.0
full embedding+kl 83.8 76.9 67.1 65.3 64.8 44.4
full embedding+kl+dino 84.1 77.7 68.6 67.1 67.3 45.4
full embedding+kl+dino+simclr 83.4 74.6 69.3 67.6 68.2 38.8
5-shot embedding 53.1 43.0 38.6 37.4 34.9 7.5
5-shot embedding+kl 54.0 47.2 40.2 37.7 36.2 18.5
5-shot embedding+kl+dino 54.1 47.9 40.3 38.7 37.2 19.2
5-shot embedding+kl+dino+simclr 53.7 44.4 41.0 39.5 39.6 14.0)"},

      {"knn-large", "Nearest neighbours, mean of 11 data sets, large backbones", Protocol::knn,
       R"(setting features dinov2-l14 clip-l14 augreg-in21k-l16
full embedding 80.5 80.2 74.7
full embedding+kl 81.2 82.4 75.0
full embedding+kl+dino 81.6 82.9 76.2
full embedding+kl+dino+simclr 82.3 81.1 76.5
5-shot embedding 47.1 48.5 47.7
5-shot embedding+kl 48.6 51.8 48.3
5-shot embedding+kl+dino 49.0 52.9 48.5
5-shot embedding+kl+dino+simclr 51.4 50.3 50.2)"},

      {"knn-huge",
       "Nearest neighbours, mean of 7 data sets, ViT-H",
       Protocol::knn,
       R"(setting features backbone mean-of-7
full embedding deit-h14 77.2
full embedding+kl deit-h14 77.3
full embedding+kl+dino deit-h14 78.0
full embedding+kl+dino+simclr deit-h14 78.8
5-shot embedding deit-h14 48.3
5-shot embedding+kl deit-h14 47.7
5-shot embedding+kl+dino deit-h14 46.9
5-shot embedding+kl+dino+simclr deit-h14 50.4)",
       {},
       ComparedFigure::dots,
       "the paper does not name the seven data sets: its means are not compared"},

      {"knn-augreg", "Nearest neighbours by data set, AugReg ViT-B/16", Protocol::knn,
       R"(setting features backbone cars cub dtd eurosat cifar100 cifar10 pets food imagenet fgvc flowers mean
full embedding augreg-in1k-b16 21.3 42.0 54.3 89.0 66.3 89.4 87.3 52.3 77.2 17.9 53.8 59.2
full embedding+kl+dino+simclr augreg-in1k-b16 27.2 50.1 58.6 93.4 69.7 90.7 89.5 58.9 78.8 21.4 61.6 63.6
full embedding augreg-in21k-b16 21.0 74.0 58.4 91.8 58.4 82.9 83.6 70.6 72.1 23.0 95.0 66.4
full embedding+kl+dino+simclr augreg-in21k-b16 25.1 74.2 65.0 94.7 63.5 85.7 85.7 73.4 74.5 24.3 96.6 69.3
5-shot embedding augreg-in1k-b16 9.4 23.7 32.5 38.6 36.9 48.8 57.5 20.1 55.7 8.3 41.2 33.9
5-shot embedding+kl+dino+simclr augreg-in1k-b16 11.4 26.6 33.9 42.2 38.6 50.2 59.4 24.1 58.6 9.2 49.8 36.7
5-shot embedding augreg-in21k-b16 7.6 50.0 33.7 47.7 23.2 39.7 53.3 32.0 40.3 10.7 86.2 38.6
5-shot embedding+kl+dino+simclr augreg-in21k-b16 9.2 48.5 36.3 54.5 28.2 41.7 51.0 37.8 45.4 12.2 85.8 41.0)"},

      {"knn-deit", "Nearest neighbours by data set, DeIT ViT-B/16, means of three seeds",
       Protocol::knn, R"(setting features backbone cars cub dtd eurosat pets food fgvc flowers
full embedding deit-b16 32.3 56.0 58.6 90.7 90.8 60.5 23.5 56.9
full embedding+kl deit-b16 33.5±0.2 57.9±0.1 60.4±0.2 91.6±0.2 91.3±0.2 61.5±0.1 22.9±0.1 60.7±0.6
full embedding+kl+dino deit-b16 36.2±0.2 60.9±0.2 63.1±0.3 93.4±0.1 91.8±0.0 65.2±0.2 24.2±0.4 64.3±0.5
full embedding+kl+dino+simclr deit-b16 39.3±0.3 63.6±0.3 64.1±0.2 95.0±0.2 92.1±0.2 67.3±0.1 28.3±0.6 69.3±0.5)"},

      {"linear", "Linear probes, mean of 11 data sets, main backbones", Protocol::linear,
       R"(setting features dinov2-b14 dino-b16 deit-b16 mocov3-b16 deit-b32 augreg-in1k-b16 augreg-in1k-s16
full embedding 88.3 81.0 78.2 77.3 73.1 71.6 71.4
full embedding+kl 88.3 80.4 78.5 77.7 73.4 70.9 70.5
full embedding+kl+dino 88.8 81.2 80.7 79.4 76.2 73.0 73.0
full embedding+kl+dino+simclr 88.7 80.7 80.5 78.7 76.4 73.1 73.0
5-shot embedding 76.7 62.9 61.0 58.0 57.2 54.8 54.4
5-shot embedding+kl 76.3 62.2 61.7 57.6 57.8 54.4 53.5
5-shot embedding+kl+dino 76.7 62.4 63.5 59.2 60.2 56.5 55.9
5-shot embedding+kl+dino+simclr 76.6 61.6 63.4 58.7 60.1 57.0 56.0)"},

      {"linear-more", "Linear probes, mean of 11 data sets, additional backbones", Protocol::linear,
       R"(setting features eva-clip-b16 augreg-in21k-l16 clip-b16 deit3-b16 augreg-in21k-b16 augreg-in21k-s16 mae-b16
full embedding 86.9 82.9 81.8 77.1 76.8 75.6 38.6
full embedding+kl 87.2 82.0 82.6 78.1 76.1 74.4 63.4
full embedding+kl+dino 87.8 83.3 83.9 80.2 77.9 76.6 66.2
full embedding+kl+dino+simclr 87.7 83.2 83.0 79.9 77.8 76.8 63.1
5-shot embedding 78.0 68.9 66.2 60.5 58.4 57.6 23.9
5-shot embedding+kl 78.6 69.0 69.3 60.3 59.1 57.6 36.0
5-shot embedding+kl+dino 78.9 70.1 70.4 62.5 60.7 59.3 37.3
5-shot embedding+kl+dino+simclr 77.5 69.5 65.9 61.7 59.8 58.6 32.3)"},

      {"clusters", "Overlap of clusters with classes, by data set", Protocol::clusters,
       R"(setting features backbone cars cub dtd eurosat cifar100 cifar10 pets food imagenet fgvc flowers mean
full embedding clip-l14 49.4 52.8 44.7 52.4 44.5 65.0 55.6 72.9 50.9 29.1 69.4 53.3
full embedding+kl clip-l14 55.0 57.9 53.1 55.9 56.1 68.5 67.5 71.0 55.3 33.8 66.8 58.3
full embedding+kl+dino clip-l14 56.2 57.0 55.4 55.4 55.9 66.5 71.4 72.7 55.7 35.1 66.6 58.9
full embedding dinov2-l14 28.6 63.7 50.6 55.8 70.3 77.6 79.1 68.8 61.4 21.5 79.2 59.7
full embedding+kl dinov2-l14 29.3 64.0 48.5 55.9 67.2 84.5 74.2 67.9 59.9 20.3 80.2 59.2
full embedding+kl+dino dinov2-l14 28.9 64.9 48.3 66.6 70.5 85.2 75.2 66.5 60.3 22.0 81.2 60.8
full embedding vit-b16 15.8 33.5 43.9 55.7 50.0 83.9 76.0 28.9 78.5 14.9 41.3 47.5
full embedding+kl vit-b16 16.3 34.5 44.3 65.1 49.2 82.7 79.6 28.6 77.5 14.5 43.0 48.7
full embedding+kl+dino vit-b16 17.8 36.7 48.7 61.2 49.0 82.1 77.1 31.8 76.6 15.4 49.2 49.6)"},

      {"retrieval", "Mean average precision on the revisited Oxford and Paris", Protocol::retrieval,
       R"(setting features backbone roxford rparis
medium embedding dinov2-b14 69.7 89.4
medium embedding+kl dinov2-b14 70.4 88.7
medium embedding+dino dinov2-b14 69.4 89.0
medium embedding+kl+dino dinov2-b14 70.1 88.7
hard embedding dinov2-b14 42.0 77.5
hard embedding+kl dinov2-b14 42.6 76.2
hard embedding+dino dinov2-b14 41.2 76.2
hard embedding+kl+dino dinov2-b14 42.0 75.9
medium embedding dino-b16 39.2 63.8
medium embedding+kl dino-b16 38.6 64.5
medium embedding+dino dino-b16 40.4 65.6
medium embedding+kl+dino dino-b16 39.8 65.8
hard embedding dino-b16 11.0 37.6
hard embedding+kl dino-b16 11.6 38.4
hard embedding+dino dino-b16 12.9 39.0
hard embedding+kl+dino dino-b16 13.0 39.5
medium embedding clip-b16 31.4 64.6
medium embedding+kl clip-b16 40.4 74.7
medium embedding+dino clip-b16 41.4 72.0
medium embedding+kl+dino clip-b16 42.6 75.1
hard embedding clip-b16 10.8 40.4
hard embedding+kl clip-b16 14.5 52.8
hard embedding+dino clip-b16 15.3 47.8
hard embedding+kl+dino clip-b16 14.7 52.5
medium embedding eva-clip-b16 36.7 69.8
medium embedding+kl eva-clip-b16 39.9 75.2
medium embedding+dino eva-clip-b16 40.9 72.9
medium embedding+kl+dino eva-clip-b16 41.2 74.9
hard embedding eva-clip-b16 12.7 46.7
hard embedding+kl eva-clip-b16 13.9 53.9
hard embedding+dino eva-clip-b16 14.8 50.2
hard embedding+kl+dino eva-clip-b16 14.9 53.0
medium embedding deit-b16 36.6 63.0
medium embedding+kl deit-b16 36.9 63.6
medium embedding+dino deit-b16 38.8 65.7
medium embedding+kl+dino deit-b16 39.1 65.6
hard embedding deit-b16 12.6 37.2
hard embedding+kl deit-b16 12.6 37.7
hard embedding+dino deit-b16 12.7 40.2
hard embedding+kl+dino deit-b16 12.8 40.0)"},

      {"segmentation", "In-context segmentation, mIoU by patches remembered",
       Protocol::segmentation, R"(setting features backbone voc ade20k
102400 embedding dino-s16 37.2 11.4
102400 fungi dino-s16 50.7 16.1
1024000 embedding dino-s16 43.1 14.5
1024000 fungi dino-s16 56.3 20.0
10240000 embedding dino-s16 46.6 17.0
10240000 fungi dino-s16 58.0 22.3
102400 embedding dino-b16 44.9 14.5
102400 fungi dino-b16 62.1 19.2
1024000 embedding dino-b16 50.8 18.3
1024000 fungi dino-b16 66.1 23.5
10240000 embedding dino-b16 55.7 20.8
10240000 fungi dino-b16 67.0 25.2)"},

      {"segmentation-few", "In-context segmentation of few pictures, mIoU", Protocol::segmentation,
       R"(setting features backbone voc ade20k
1/128 embedding dino-s16 26.3 8.8
1/128 fungi dino-s16 29.1 10.2
1/64 embedding dino-s16 31.8 10.0
1/64 fungi dino-s16 34.0 12.3
1/128 embedding dino-b16 32.2 9.3
1/128 fungi dino-b16 38.0 11.7
1/64 embedding dino-b16 39.0 11.3
1/64 fungi dino-b16 46.8 13.7)"},

      {"text", "Nearest neighbours of texts; few-shot: 5 rows times classes, 10 of AG News",
       Protocol::knn,
       R"(setting features backbone trec banking77 sst agnews tweeteval
full embedding bert 83.6 55.4 40.0 88.8 23.8
full embedding+kl bert 85.6 67.1 40.7 91.0 24.4
full embedding+kl+simclr bert 86.8 67.9 41.8 89.6 24.8
few-shot embedding bert 20.0 14.5 20.4 45.8 13.6
few-shot embedding+kl bert 27.6 22.2 23.2 61.4 13.8
few-shot embedding+kl+simclr bert 23.0 23.8 18.4 61.9 14.5
full embedding t5 88.6 29.7 30.0 71.8 23.4
full embedding+kl t5 88.6 33.3 32.7 74.3 24.2
full embedding+kl+simclr t5 88.4 29.1 32.0 74.8 24.4
few-shot embedding t5 25.6 5.2 25.9 37.4 8.4
few-shot embedding+kl t5 23.6 5.6 24.1 40.6 9.5
few-shot embedding+kl+simclr t5 23.6 6.1 24.2 41.0 9.9)"},

      {"icl", "In-context learning: GPT-4o-mini with the 20 nearest examples", Protocol::icl,
       R"(setting features backbone banking77 sst
full embedding bert 88.7 52.5
full embedding+kl+simclr bert 91.2 52.9)"},
      {"audio", "Nearest neighbours of sounds, SSAST", Protocol::knn,
       R"(setting features backbone esc50 speechcommands
full embedding ssast-b16 42.8 27.4
full embedding+kl ssast-b16 47.0 29.9
full embedding+simclr ssast-b16 45.2 25.4
full embedding+kl+simclr ssast-b16 45.8 27.3
5-shot embedding ssast-b16 20.0 5.3
5-shot embedding+kl ssast-b16 21.2 6.1
5-shot embedding+simclr ssast-b16 19.0 5.5
5-shot embedding+kl+simclr ssast-b16 21.0 5.8)"},
  };
}

}  // namespace

const std::vector<PaperTable>& paper_tables() {
  static const std::vector<PaperTable> tables = [] {
    std::vector<PaperTable> list = main_tables();
    for (const auto& more : {paper_ablations, paper_figures})
      for (PaperTable& table : more()) list.push_back(std::move(table));
    return list;
  }();
  return tables;
}

}  // namespace fungi::app
