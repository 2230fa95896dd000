// SPDX-License-Identifier: Apache-2.0
// What the paper reports and what it takes to compute it again: tables of numbers, data sets,
// backbones.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fungi/backbone/architecture.h"
#include "fungi/report/compared_page.h"

namespace fungi::app {

enum class Protocol { knn, linear, clusters, retrieval, icl, segmentation, cka };

struct PaperTable {
  std::string name, title;
  Protocol protocol;
  // Words on lines. The head is "setting features backbone <data set>..." or "setting features
  // <backbone>...", whose numbers are means over all classification sets of pictures. Settings:
  // full, 5-shot (any number); of texts full, few-shot; for retrieval medium, hard; for
  // segmentation patches remembered, or the share of the pictures.
  // Of pictures also "no-pca", or "binary", "gaussian" and "sparse", which is the
  // projection, without PCA, or "reduced-gaussian" and its like, a random matrix for PCA; and
  // "images/s", "rows/s", which the machine decides, not a data set. "-": a figure, whose numbers
  // the paper does not print; 33.5±0.2: mean and deviation of three seeds.
  // Of features "kl@*" is each layer's gradient; setting "*" is each class; "embedding~kl" is the
  // alignment of the two.
  std::string numbers;
  // As for --objectives; empty: those that the features name.
  std::vector<std::string> objectives = {};
  ComparedFigure figure = ComparedFigure::dots;
  std::string note = {};
  std::vector<std::string> layers = {};  // as for --layers
};
// Tables, then figures and ablations.
const std::vector<PaperTable>& paper_tables();
std::vector<PaperTable> paper_ablations();   // the second part of them
std::vector<PaperTable> paper_figures();     // and the last
constexpr const char* kMachine = "machine";  // stands for a data set where none decides
bool is_rate(const std::string& setting);    // per second, not percent
bool is_mean(const std::string& data);
// Of the table's own means, or none.
bool wants_seeds(const PaperTable& table);

// One number of a table.
struct PaperCell {
  // data: the key of a data set, "mean", "mean-of-7" (of sets that the paper does not name), or
  // kMachine
  std::string setting, features, backbone, data;
  double value = 0, deviation = NAN;  // percent, or per second; NaN: not printed
  // Stands for several numbers, which are known once they are computed.
  bool many() const { return features.ends_with('*') || setting == "*"; }
};
std::vector<PaperCell> cells_of(const PaperTable& table);
// Of every cell of the table, each once, in the order of their first use; "mean" stands for its
// data sets.
std::vector<std::string> backbones_of(const PaperTable& table);
std::vector<std::string> data_sets_of(const PaperTable& table);
std::vector<std::string> objectives_of(const PaperTable& table);

struct PaperData {
  std::string key, title;
  std::vector<std::string>
      folders;  // other names of its folder; compared without case, '-', '_' and blanks
  size_t train = 0, test = 0;   // samples in the paper
  bool mean_per_class = false;  // the metric; otherwise top-1
  bool retrieval = false;
  bool masks = false;  // for segmentation; the metric is mIoU
  bool texts = false;
  size_t shots = 5;                       // of few-shot settings; of texts a stratified draw
  std::vector<std::string> classes = {};  // their order in the paper, where names do not tell it
  std::string note = {};                  // how the paper's samples differ from what is published
  bool sound = false;                     // clips, for the backbones that hear
  StatedFacts facts = {};                 // how the experiments looked at it, whatever the backbone
};
const std::vector<PaperData>& paper_data();
const PaperData& paper_data(const std::string& key);

struct PaperBackbone {
  std::string key, title, file;  // file: as its authors name it
  std::string family, dialect;   // of Architecture; empty: any
  size_t width = 0, patch = 0;   // patch: 0 of texts
  // Where the architecture does not tell models apart their path must: it holds one of these words
  // and none of those.
  std::vector<std::string> named, not_named;
  StatedFacts facts;  // the experiments' input size; what its published files may not tell
  size_t pca = 512;
};
const std::vector<PaperBackbone>& paper_backbones();
const PaperBackbone& paper_backbone(const std::string& key);

}  // namespace fungi::app
