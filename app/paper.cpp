// SPDX-License-Identifier: Apache-2.0
#include "app/paper.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "fungi/base/error.h"

namespace fungi::app {
namespace {

void add_once(std::vector<std::string>& list, const std::string& word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(word);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

template <class T>
const T& with_key(const std::vector<T>& list, const std::string& key, const char* what) {
  std::string keys;
  for (const T& item : list) {
    if (item.key == key) return item;
    keys += (keys.empty() ? "" : ", ") + item.key;
  }
  fail(fmt::format("there is no {} '{}'", what, key), "reproduce", "choose one of: " + keys);
}

constexpr std::string_view kDeviation = "±";

}  // namespace

bool is_rate(const std::string& setting) { return setting.ends_with("/s"); }
bool is_mean(const std::string& data) { return data.starts_with("mean"); }
bool wants_seeds(const PaperTable& table) {
  return table.numbers.find(kDeviation) != std::string::npos;
}

std::vector<PaperCell> cells_of(const PaperTable& table) {
  std::istringstream lines(table.numbers);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> head = words_of(line);
  const bool by_data = head[2] == "backbone";
  const size_t first = by_data ? 3 : 2;
  std::vector<PaperCell> cells;
  while (std::getline(lines, line)) {
    const std::vector<std::string> words = words_of(line);
    FUNGI_ASSERT(words.size() == head.size());
    for (size_t i = first; i < head.size(); ++i) {
      const size_t sign = words[i].find(kDeviation);
      cells.push_back(
          {words[0], words[1], by_data ? words[2] : head[i],
           is_rate(words[0]) ? kMachine
           : by_data         ? head[i]
                             : "mean",
           words[i] == "-" ? NAN : std::stod(words[i]),
           sign == std::string::npos ? NAN : std::stod(words[i].substr(sign + kDeviation.size()))});
    }
  }
  return cells;
}

std::vector<std::string> backbones_of(const PaperTable& table) {
  std::vector<std::string> list;
  for (const PaperCell& c : cells_of(table)) add_once(list, c.backbone);
  return list;
}

std::vector<std::string> data_sets_of(const PaperTable& table) {
  std::vector<std::string> list;
  for (const PaperCell& c : cells_of(table)) {
    if (c.data == kMachine) continue;
    if (!is_mean(c.data))
      add_once(list, c.data);
    else
      for (const PaperData& d : paper_data())
        if (!d.retrieval && !d.masks && !d.texts && !d.sound && d.key != "imagenet100")
          add_once(list, d.key);
  }
  return list;
}

std::vector<std::string> objectives_of(const PaperTable& table) {
  if (!table.objectives.empty()) return table.objectives;
  std::vector<std::string> list;
  for (const char* objective : {"kl", "dino", "simclr"})
    if (table.numbers.find(std::string("+") + objective) != std::string::npos)
      list.push_back(objective);
  return list;
}

const std::vector<PaperData>& paper_data() {
  static const std::vector<PaperData> list{
      {.key = "cars",
       .title = "Stanford Cars",
       .folders = {"stanfordcars"},
       .train = 8144,
       .test = 8041},
      {.key = "cub",
       .title = "CUB-200-2011",
       .folders = {"cub200", "cub2002011"},
       .train = 5994,
       .test = 5794},
      {.key = "dtd", .title = "DTD, partition 1", .train = 1880, .test = 1880},
      {.key = "eurosat", .title = "EuroSAT RGB", .train = 21600, .test = 5400},
      {.key = "cifar100",
       .title = "CIFAR-100",
       .folders = {"cifar100binary", "cifar100python"},
       .train = 50000,
       .test = 10000},
      {.key = "cifar10",
       .title = "CIFAR-10",
       .folders = {"cifar10batchesbin", "cifar10batchespy"},
       .train = 50000,
       .test = 10000},
      {.key = "pets",
       .title = "Oxford-IIIT Pets",
       .folders = {"pet", "oxfordpets", "oxfordiiitpet", "oxfordiiitpets"},
       .train = 3680,
       .test = 3669,
       .mean_per_class = true},
      {.key = "food", .title = "Food-101", .folders = {"food101"}, .train = 75750, .test = 25250},
      {.key = "imagenet",
       .title = "ImageNet-1K",
       .folders = {"imagenet1k", "in1k", "ilsvrc2012"},
       .train = 1281167,
       .test = 50000},
      {.key = "fgvc",
       .title = "FGVC-Aircraft",
       .folders = {"aircraft", "fgvcaircraft"},
       .train = 3334,
       .test = 3333,
       .mean_per_class = true},
      {.key = "flowers",
       .title = "Flowers-102",
       .folders = {"flowers102", "oxfordflowers102"},
       .train = 1020,
       .test = 6149,
       .mean_per_class = true},
      {.key = "imagenet100",
       .title = "ImageNet-100",
       .folders = {"in100"},
       .train = 130000,
       .test = 5000},
      {.key = "roxford",
       .title = "revisited Oxford",
       .folders = {"roxford5k"},
       .train = 4993,
       .test = 70,
       .retrieval = true},
      {.key = "rparis",
       .title = "revisited Paris",
       .folders = {"rparis6k"},
       .train = 6322,
       .test = 70,
       .retrieval = true},
      {.key = "voc",
       .title = "Pascal VOC 2012, trainaug",
       .folders = {"voc2012", "pascalvoc", "pascalvoc2012"},
       .train = 10582,
       .test = 1449,
       .masks = true},
      {.key = "ade20k",
       .title = "ADE20K",
       .folders = {"ade", "adechallengedata2016"},
       .train = 20210,
       .test = 2000,
       .masks = true},
      {.key = "trec",
       .title = "TREC, coarse",
       .train = 5452,
       .test = 500,
       .texts = true,
       .classes = {"ABBR", "ENTY", "DESC", "HUM", "LOC", "NUM"}},
      {.key = "banking77", .title = "Banking-77", .train = 10003, .test = 3080, .texts = true},
      {.key = "sst",
       .title = "SST, fine-grained",
       .folders = {"sst5"},
       .train = 8544,
       .test = 2210,
       .texts = true,
       .note = "in the paper a score of exactly 1 makes a sixth class"},
      {.key = "agnews",
       .title = "AG News",
       .train = 120000,
       .test = 7600,
       .texts = true,
       .shots = 10},
      {.key = "tweeteval",
       .title = "TweetEval, emoji",
       .folders = {"tweetevalemoji"},
       .train = 45000,
       .test = 50000,
       .texts = true},
      {.key = "esc50",
       .title = "ESC-50, fold 1 for testing",
       .folders = {"esc50master"},
       .train = 1600,
       .test = 400,
       .sound = true,
       .facts = {{"frames", "512"}, {"mean", "-6.6268077"}, {"std", "5.358466"}}},
      {.key = "speechcommands",
       .title = "Speech Commands V2, 35 words",
       .folders = {"speechcommandsv2", "speechcommandsv0.02"},
       .train = 84843,
       .test = 11005,
       .sound = true,
       .facts = {{"frames", "128"}, {"mean", "-6.845978"}, {"std", "5.5654526"}}},
  };
  return list;
}

const PaperData& paper_data(const std::string& key) {
  return with_key(paper_data(), key, "data set");
}

const std::vector<PaperBackbone>& paper_backbones() {
  static const std::vector<std::string> in1k{"augreg_in1k", "i1k-300ep"},
      in21k{"augreg_in21k", "i21k-300ep"}, tuned{"_ft_", "imagenet2012"};
  static const std::vector<PaperBackbone> list{
      {.key = "dinov2-b14",
       .title = "DINOv2 ViT-B/14",
       .file = "dinov2_vitb14_pretrain.pth",
       .family = "dinov2",
       .width = 768,
       .patch = 14,
       .facts = {{"size", "224"}}},
      {.key = "dinov2-l14",
       .title = "DINOv2 ViT-L/14",
       .file = "dinov2_vitl14_pretrain.pth",
       .family = "dinov2",
       .width = 1024,
       .patch = 14,
       .facts = {{"size", "224"}}},
      {.key = "dino-s16",
       .title = "DINO ViT-S/16",
       .file = "dino_deitsmall16_pretrain.pth",
       .family = "dino",
       .width = 384,
       .patch = 16,
       .pca = 384},
      {.key = "dino-b16",
       .title = "DINO ViT-B/16",
       .file = "dino_vitbase16_pretrain.pth",
       .family = "dino",
       .width = 768,
       .patch = 16},
      {.key = "deit-b16",
       .title = "DeIT ViT-B/16 (torchvision)",
       .file = "vit_b_16-c867db91.pth",
       .dialect = "torchvision",
       .width = 768,
       .patch = 16},
      {.key = "deit-b32",
       .title = "DeIT ViT-B/32 (torchvision)",
       .file = "vit_b_32-d86f8d99.pth",
       .dialect = "torchvision",
       .width = 768,
       .patch = 32},
      {.key = "mocov3-b16",
       .title = "MoCo-v3 ViT-B/16",
       .file = "vit-b-300ep.pth.tar",
       .family = "vit",
       .width = 768,
       .patch = 16,
       .named = {"moco", "vit-b-300ep"}},
      {.key = "augreg-in1k-s16",
       .title = "AugReg IN1K ViT-S/16",
       .file = "vit_small_patch16_224.augreg_in1k",
       .family = "vit",
       .width = 384,
       .patch = 16,
       .named = in1k,
       .pca = 384},
      {.key = "augreg-in1k-b16",
       .title = "AugReg IN1K ViT-B/16",
       .file = "vit_base_patch16_224.augreg_in1k",
       .family = "vit",
       .width = 768,
       .patch = 16,
       .named = in1k},
      {.key = "augreg-in21k-s16",
       .title = "AugReg IN21K ViT-S/16",
       .file = "vit_small_patch16_224.augreg_in21k",
       .family = "vit",
       .width = 384,
       .patch = 16,
       .named = in21k,
       .not_named = tuned,
       .pca = 384},
      {.key = "augreg-in21k-b16",
       .title = "AugReg IN21K ViT-B/16",
       .file = "vit_base_patch16_224.augreg_in21k",
       .family = "vit",
       .width = 768,
       .patch = 16,
       .named = in21k,
       .not_named = tuned},
      {.key = "augreg-in21k-l16",
       .title = "AugReg IN21K ViT-L/16",
       .file = "vit_large_patch16_224.augreg_in21k",
       .family = "vit",
       .width = 1024,
       .patch = 16,
       .named = in21k,
       .not_named = tuned},
      {.key = "eva-clip-b16",
       .title = "EVA-02-CLIP ViT-B/16",
       .file = "eva02_base_patch16_clip_224.merged2b",
       .family = "eva02-clip",
       .width = 768,
       .patch = 16},
      {.key = "clip-b16",
       .title = "CLIP ViT-B/16",
       .file = "vit_base_patch16_clip_224.openai",
       .family = "clip",
       .width = 768,
       .patch = 16,
       .facts = {{"activation", "quick_gelu"}}},
      {.key = "clip-l14",
       .title = "CLIP ViT-L/14",
       .file = "vit_large_patch14_clip_224.openai",
       .family = "clip",
       .width = 1024,
       .patch = 14,
       .facts = {{"activation", "quick_gelu"}}},
      {.key = "deit3-b16",
       .title = "DeiT-III ViT-B/16",
       .file = "deit3_base_patch16_224.fb_in1k",
       .family = "deit3",
       .width = 768,
       .patch = 16},
      {.key = "deit-h14",
       .title = "DeiT-III ViT-H/14",
       .file = "deit3_huge_patch14_224.fb_in1k",
       .family = "deit3",
       .width = 1280,
       .patch = 14},
      {.key = "vit-b16",
       .title = "a ViT-B/16 that the paper does not name",
       .file = "which the paper does not say: choose one with --use",
       .width = 768,
       .patch = 16,
       .not_named = {""}},  // no file is taken for it
      {.key = "mae-b16",
       .title = "MAE ViT-B/16",
       .file = "vit_base_patch16_224.mae",
       .family = "vit",
       .width = 768,
       .patch = 16,
       .named = {"mae"}},
      {.key = "bert",
       .title = "BERT-base uncased",
       .file = "bert-base-uncased/model.safetensors",
       .family = "bert",
       .width = 768,
       .named = {"bert-base-uncased", "bert_base_uncased"}},
      {.key = "t5",
       .title = "T5-small",
       .file = "t5-small/model.safetensors",
       .family = "t5",
       .width = 512,
       .named = {"t5-small", "t5_small"},
       .not_named = {"flan", "mt5"}},
      {.key = "ssast-b16",
       .title = "SSAST base by patches",
       .file = "SSAST-Base-Patch-400.pth",
       .family = "ast",
       .dialect = "ssast",
       .width = 768,
       .patch = 16},
  };
  return list;
}

const PaperBackbone& paper_backbone(const std::string& key) {
  return with_key(paper_backbones(), key, "backbone");
}

}  // namespace fungi::app
