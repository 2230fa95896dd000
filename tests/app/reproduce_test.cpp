// SPDX-License-Identifier: Apache-2.0
// fungi reproduce: what is missing is named, what is there is computed as the verbs do it.
#include "tests/app/reproduce.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/store/store.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::entries;
using test::json;
using test::link_pictures;
using test::reason_for;
using test::reproduce;
using test::row_of;
using test::run_fungi;

const std::string kModel = FUNGI_SOURCE_DIR "/demo/model.safetensors";

TEST(Reproduce, ListsTables) {
  const json list = reproduce("");
  EXPECT_EQ(list.size(), 29u);
  std::set<std::string> names;
  for (const json& t : list) names.insert(t["table"].get<std::string>());
  for (const char* name :
       {"knn", "linear", "clusters", "retrieval", "audio", "layers", "cka", "speed"})
    EXPECT_TRUE(names.count(name)) << name;
  const auto unknown = run_fungi("reproduce knnn");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("knn-augreg"), std::string::npos) << unknown.err;
}

TEST(Reproduce, SaysWhatIsMissing) {
  const json nothing = reproduce("retrieval");
  EXPECT_EQ(reason_for(nothing, "roxford"), "--data was not given");
  EXPECT_NE(reason_for(nothing, "dino-b16").find("dino_vitbase16_pretrain.pth"), std::string::npos);
  for (const json& row : nothing["rows"])
    EXPECT_TRUE(row["ours"].is_null() && row["difference"].is_null() && row["paper"].is_number());

  const test::TemporaryFolder folder;
  fs::create_directories(folder / "data/Stanford-Cars/train");
  fs::create_directories(folder / "data/rOxford5k/jpg");
  const std::string data = " --data " + (folder / "data").string();
  EXPECT_NE(reason_for(reproduce("knn-deit" + data), "cars").find("no folder test"),
            std::string::npos);
  EXPECT_NE(reason_for(reproduce("knn-deit" + data), "food").find("food101"), std::string::npos);
  EXPECT_NE(reason_for(reproduce("retrieval" + data), "roxford").find("gnd_"), std::string::npos);
  const auto wrong = run_fungi("reproduce knn --data " + (folder / "nowhere").string());
  EXPECT_EQ(wrong.status, 1);
  EXPECT_NE(wrong.err.find("nowhere"), std::string::npos) << wrong.err;
  EXPECT_EQ(run_fungi("reproduce knn --use vit=" + kModel).status, 1);
}

// Tensors of a ViT-B/16 with one block, all zeros: enough to be recognised. Takes no space on disk.
void write_vit_base(const fs::path& file) {
  fs::create_directories(file.parent_path());
  json head;
  size_t at = 0;
  const auto tensor = [&](const std::string& name, const std::vector<size_t>& shape) {
    size_t bytes = 4;
    for (const size_t n : shape) bytes *= n;
    head[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  };
  tensor("cls_token", {1, 1, 768}), tensor("pos_embed", {1, 197, 768});
  tensor("patch_embed.proj.weight", {768, 3, 16, 16}), tensor("patch_embed.proj.bias", {768});
  for (const char* norm : {"blocks.0.norm1", "blocks.0.norm2", "norm"})
    tensor(std::string(norm) + ".weight", {768}), tensor(std::string(norm) + ".bias", {768});
  for (const auto& [name, out, in] :
       std::vector<std::tuple<std::string, size_t, size_t>>{{"blocks.0.attn.qkv", 2304, 768},
                                                            {"blocks.0.attn.proj", 768, 768},
                                                            {"blocks.0.mlp.fc1", 3072, 768},
                                                            {"blocks.0.mlp.fc2", 768, 3072}})
    tensor(name + ".weight", {out, in}), tensor(name + ".bias", {out});
  const std::string text = head.dump();
  const uint64_t size = text.size();
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&size), 8) << text;
  fs::resize_file(file, 8 + size + at);
}

TEST(Reproduce, RecognisesCheckpoints) {
  const test::TemporaryFolder folder;
  write_vit_base(folder / "vit_base_patch16_224.augreg_in1k/model.safetensors");
  write_vit_base(folder / "vit_base_patch16_224.augreg_in21k_ft_in1k/model.safetensors");
  write_vit_base(folder / "dino_vitbase16_pretrain.safetensors");
  std::ofstream(folder / "broken.safetensors") << "nothing";
  const std::string models = " --models " + folder.path().string();
  const json augreg = reproduce("knn-augreg" + models);
  EXPECT_EQ(reason_for(augreg, "augreg-in1k-b16"), "");
  EXPECT_NE(reason_for(augreg, "augreg-in21k-b16").find("no such checkpoint"), std::string::npos)
      << "a fine-tuned model is another model";
  EXPECT_NE(augreg["notes"].dump().find("broken.safetensors"), std::string::npos);
  const json knn = reproduce("knn" + models);
  EXPECT_EQ(reason_for(knn, "dino-b16"), "");
  EXPECT_NE(reason_for(knn, "mocov3-b16"), "");
  EXPECT_NE(reason_for(knn, "augreg-in1k-s16"), "") << "another width";
  write_vit_base(folder / "again/vit_base_patch16_224.augreg_in1k.safetensors");
  EXPECT_NE(reason_for(reproduce("knn-augreg" + models), "augreg-in1k-b16").find("several"),
            std::string::npos);
}

TEST(Reproduce, ComputesWhatIsThereAsTheVerbsDo) {
  const test::TemporaryFolder folder;
  const fs::path flowers = folder / "data/flowers-102";
  link_pictures("train", 4, 6, flowers / "train");
  link_pictures("test", 4, 2, flowers / "test");
  const std::string use = " --data " + (folder / "data").string() + " --work " +
                          (folder / "work").string() + " --use augreg-in1k-b16=" + kModel;
  const json table = reproduce("knn-augreg" + use);

  const std::string extract = "extract -q --preset paper -m " + kModel + " ",
                    a = (folder / "a").string(), b = (folder / "b").string();
  ASSERT_EQ(run_fungi(extract + (flowers / "train").string() + " -o " + a).status, 0);
  ASSERT_EQ(run_fungi(extract + (flowers / "test").string() + " -o " + b + " --like " + a).status,
            0);
  for (const auto& [setting, shots] : {std::pair("full", "0"), std::pair("5-shot", "5")})
    for (const char* features : {"embedding", "embedding+kl+dino+simclr"}) {
      const json verb = json::parse(
          run_fungi(fmt::format("knn {} {} --json --shots {} --features {}", a, b, shots, features))
              .out)[0];
      const json row = row_of(table, "augreg-in1k-b16", "flowers", setting, features);
      EXPECT_DOUBLE_EQ(row["ours"], 100 * verb["mean_per_class_accuracy"].get<double>())
          << setting << features;
      EXPECT_DOUBLE_EQ(row["difference"], row["ours"].get<double>() - row["paper"].get<double>());
    }
  EXPECT_TRUE(row_of(table, "augreg-in1k-b16", "mean", "full", "embedding")["ours"].is_null())
      << "one data set is no mean of eleven";
  EXPECT_TRUE(row_of(table, "augreg-in21k-b16", "flowers", "full", "embedding")["ours"].is_null());
  EXPECT_NE(table["notes"].dump().find("24 training and 8 test rows here, 1020 and 6149 there"),
            std::string::npos)
      << table["notes"];
  EXPECT_NE(table["notes"].dump().find("has width 128"), std::string::npos) << table["notes"];

  // A repeated command computes nothing.
  const auto before = test::contents(folder / "work");
  EXPECT_EQ(reproduce("knn-augreg" + use)["rows"], table["rows"]);
  EXPECT_EQ(test::contents(folder / "work"), before);

  // Linear probes use the same features; a mean shows its parts.
  const json linear = reproduce("linear" + use, 3);
  const json probe =
      json::parse(run_fungi("linear " + a + " " + b + " --json --features embedding+kl").out)[0];
  EXPECT_DOUBLE_EQ(row_of(linear, "augreg-in1k-b16", "flowers", "full", "embedding+kl")["ours"],
                   100 * probe["mean_per_class_accuracy"].get<double>());
  EXPECT_NE(reason_for(linear, "augreg-in1k-b16 on flowers, 5-shot embedding+kl"), "")
      << "four rows of a class are left after validation";
  EXPECT_EQ(test::contents(folder / "work"), before);

  // A data set that cannot be used is told, costs no other, and shows in the exit status.
  fs::create_directories(folder / "data/cub/train");
  fs::create_directories(folder / "data/cub/test");
  const json partly = reproduce("knn-augreg" + use, 3);
  EXPECT_NE(reason_for(partly, "augreg-in1k-b16 on cub"), "");
  EXPECT_EQ(partly["rows"], table["rows"]);
}

TEST(Reproduce, FailedPicturesShowInTheStatus) {
  const test::TemporaryFolder folder;
  const fs::path flowers = folder / "data/flowers-102";
  link_pictures("train", 3, 8, flowers / "train");
  link_pictures("test", 3, 2, flowers / "test");
  test::write_file(flowers / "test" / entries(flowers / "test").begin()->filename() / "bad.png",
                   "no picture");
  const json table = reproduce("knn-augreg --data " + (folder / "data").string() + " --work " +
                                   (folder / "work").string() + " --use augreg-in1k-b16=" + kModel,
                               3);
  EXPECT_FALSE(row_of(table, "augreg-in1k-b16", "flowers", "full", "embedding")["ours"].is_null());
  EXPECT_NE(table["notes"].dump().find("1 samples failed"), std::string::npos) << table["notes"];
}

TEST(Reproduce, AdvisesNothingThatItCannotDo) {
  const test::TemporaryFolder folder;
  const fs::path cars = folder / "data/cars";
  link_pictures("train", 2, 3, cars / "train");
  link_pictures("test", 2, 1, cars / "test");
  const std::string work = (folder / "work").string(),
                    use = "knn --data " + (folder / "data").string() + " --work " + work +
                          " --use deit-b16=" + kModel;
  const auto expect_fitting = [](const std::string& reason, const std::string& hint) {
    EXPECT_NE(reason.find(hint), std::string::npos) << reason;
    for (const char* other : {"--prune", "--overwrite", "smaller k", "fewer shots"})
      EXPECT_EQ(reason.find(other), std::string::npos) << reason;
  };
  const json few = reproduce(use, 3);
  for (const char* setting : {"full", "5-shot"})
    expect_fitting(reason_for(few, fmt::format("deit-b16 on cars, {} embedding", setting)),
                   "it takes more pictures");
  const std::string stores = work + "/deit-b16/cars/kl-dino-simclr", pair = "deit-b16 on cars";
  expect_fitting(reason_for(reproduce(use + " --preset native", 3), pair),
                 "delete " + stores + ", or choose another --work");
  for (const char* split : {"test", "train"}) {  // a picture that has gone
    fs::path gone;
    for (const auto& entry : fs::recursive_directory_iterator(cars / split))
      if (!entry.is_directory()) gone = std::max(gone, entry.path());
    fs::remove(gone);
    expect_fitting(reason_for(reproduce(use, 3), pair),
                   "delete " + stores + (split == std::string("test") ? "/test," : ","));
  }
}

// --use may give any file for a backbone of the paper: notes are about the file.
TEST(Reproduce, NotesWhatTheModelAtHandDoesOtherwise) {
  const test::TemporaryFolder folder;
  link_pictures("train", 2, 1, folder / "data/cars/train");
  link_pictures("test", 2, 1, folder / "data/cars/test");
  const auto notes = [&](const std::string& backbone, const std::string& model) {
    const fs::path golden = fs::path(FUNGI_GOLDEN_DIR) / "backbone" / model,
                   copy = folder / (backbone + model);  // with what the file cannot tell
    fs::create_directories(copy.parent_path());
    fs::copy_file(golden, copy, fs::copy_options::overwrite_existing);
    std::ofstream(copy.parent_path() / "config.json") << R"({"num_heads": 2})";
    return reproduce((backbone == "clip-b16" ? "knn-more --data " : "knn --data ") +
                         (folder / "data").string() + " --work " +
                         (folder / ("work-" + backbone + model)).string() + " --use " + backbone +
                         "=" + copy.string(),
                     3)["notes"]
        .dump();
  };
  const std::string norm = "takes the LayerNorm's output", gelu = "runs it with GELU",
                    vit = "timm_vit/model.safetensors";
  const std::string plain = notes("deit-b16", vit),
                    fused = notes("deit-b16", "torchvision_vit/model.pth"),
                    clip = notes("clip-b16", "openai_clip/model.pt");
  EXPECT_EQ(plain.find(norm), std::string::npos) << plain;
  EXPECT_NE(fused.find(norm), std::string::npos) << fused;
  EXPECT_EQ(notes("clip-b16", vit).find(gelu), std::string::npos);
  EXPECT_NE(clip.find(gelu), std::string::npos) << clip;
  // Negatives of few samples stay, and so does what is said about them.
  EXPECT_NE(plain.find("negatives from 2 training samples instead of 256"), std::string::npos);
  EXPECT_EQ(notes("deit-b16", vit), plain);
}

// SPEC 5.5 word by word: rank by dot product, take junk out, and average the two rectangle sums.
double mean_average_precision(const FeatureSet& set, const json& truth, bool hard) {
  const auto row = [&](const std::string& name) {
    return set.features.row(
        size_t(std::find(set.ids.begin(), set.ids.end(), name + ".png") - set.ids.begin()));
  };
  double total = 0;
  for (size_t q = 0; q < truth["qimlist"].size(); ++q) {
    std::vector<std::pair<double, size_t>> order;
    for (size_t i = 0; i < truth["imlist"].size(); ++i) {
      double dot = 0;
      for (size_t c = 0; c < set.features.cols(); ++c)
        dot += double(row(truth["qimlist"][q])[c]) * double(row(truth["imlist"][i])[c]);
      order.emplace_back(-dot, i);
    }
    std::sort(order.begin(), order.end());
    const json& record = truth["gnd"][q];
    const auto in = [&](const char* list, size_t i) {
      return std::find(record[list].begin(), record[list].end(), json(i)) != record[list].end();
    };
    double sum = 0, rank = 0, found = 0, positives = 0;
    for (const auto& [minus_dot, i] : order) {
      if (hard && in("easy", i)) continue;
      if (in("hard", i) || in("easy", i)) {
        sum += (rank == 0 ? 1 : found / rank) + (found + 1) / (rank + 1);
        ++found, ++positives;
      }
      ++rank;
    }
    total += sum / (2 * positives);
  }
  return total / double(truth["qimlist"].size());
}

TEST(Reproduce, ClustersAndRetrieval) {
  const test::TemporaryFolder folder;
  link_pictures("train", 3, 6, folder / "data/dtd/train");
  fs::create_directories(folder / "data/dtd/test");
  link_pictures("train", 3, 4, folder / "classes");
  fs::create_directories(folder / "data/roxford5k/jpg");
  json truth{{"imlist", json::array()}, {"qimlist", json::array()}, {"gnd", json::array()}};
  std::vector<std::pair<std::string, std::string>> database;  // name, class
  for (const fs::path& kind : entries(folder / "classes")) {
    bool query = true;
    for (const fs::path& file : entries(kind)) {
      const std::string of = kind.filename().string(), name = of + "_" + file.stem().string();
      fs::create_symlink(fs::read_symlink(file), folder / ("data/roxford5k/jpg/" + name + ".png"));
      if (query)
        truth["qimlist"].push_back(name);
      else
        truth["imlist"].push_back(name), database.emplace_back(name, of);
      query = false;
    }
  }
  for (const json& query : truth["qimlist"]) {
    json record{{"easy", json::array()}, {"hard", json::array()}, {"junk", json::array()}};
    for (size_t i = 0; i < database.size(); ++i)
      if (query.get<std::string>().starts_with(database[i].second + "_"))
        record[record["easy"].empty() ? "easy" : "hard"].push_back(i);
    truth["gnd"].push_back(record);
  }
  std::ofstream(folder / "data/roxford5k/gnd_roxford5k.json") << truth;
  const std::string use =
      " --data " + (folder / "data").string() + " --work " + (folder / "work").string();

  const json retrieval = reproduce("retrieval" + use + " --use dino-b16=" + kModel);
  const Store store = Store::open(folder / "work/dino-b16/roxford/kl-dino/all");
  for (const char* setting : {"medium", "hard"})
    for (const char* features :
         {"embedding", "embedding+kl", "embedding+dino", "embedding+kl+dino"}) {
      const json ours = row_of(retrieval, "dino-b16", "roxford", setting, features)["ours"];
      ASSERT_TRUE(ours.is_number()) << retrieval["missing"];
      EXPECT_NEAR(
          ours,
          100 * mean_average_precision(store.load(features), truth, std::string(setting) == "hard"),
          1e-6)
          << setting << features;
    }

  // A rehearsal: one query, whose own pictures come first.
  const json few = reproduce("retrieval --limit 5" + use + " --use dino-b16=" + kModel);
  const fs::path own = folder / "work/limit-5/dino-b16/roxford/kl-dino";
  const json some = json::parse(test::read_file(own / "gnd.json"));
  EXPECT_EQ(some["qimlist"], json::array({truth["qimlist"][0]}));
  EXPECT_EQ(some["imlist"].size(), 5u);
  EXPECT_EQ(some["gnd"][0]["easy"].size() + some["gnd"][0]["hard"].size(), 3u);
  const Store slice = Store::open(own / "all");
  EXPECT_EQ(slice.rows(), 6u);
  EXPECT_NEAR(row_of(few, "dino-b16", "roxford", "hard", "embedding+kl")["ours"],
              100 * mean_average_precision(slice.load("embedding+kl"), some, true), 1e-6);

  const json clusters = reproduce("clusters" + use + " --use clip-l14=" + kModel);
  const json kmeans =
      json::parse(run_fungi("kmeans " + (folder / "work/clip-l14/dtd/kl-dino/train").string() +
                            " --json --features embedding+kl")
                      .out)[0];
  EXPECT_DOUBLE_EQ(row_of(clusters, "clip-l14", "dtd", "full", "embedding+kl")["ours"],
                   100 * kmeans["overlap"].get<double>());
}

}  // namespace
}  // namespace fungi
