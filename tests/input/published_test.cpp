// SPDX-License-Identifier: Apache-2.0
// Data sets as they are published: miniatures, read as scipy and scikit-learn read them
// (tests/golden/make_layouts.py), and what is left of them after accidents.
#include "fungi/input/published.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/base/stratified.h"
#include "fungi/input/dataset.h"
#include "tests/support/data.h"
#include "tests/support/folder.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const fs::path kLayouts = fs::path(FUNGI_GOLDEN_DIR) / "input/layouts";

const json& expected() {
  static const json all = json::parse(std::ifstream(kLayouts / "layouts.json"));
  return all;
}

// Texts are in the expected rows of three; CIFAR's third column is some of its pixels.
SampleKind kind_of(const json& set) {
  const json& row = (*set["splits"].begin())[0];
  return row.size() == 3 && row[2].is_string() ? SampleKind::text : SampleKind::image;
}

std::string said(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& e) {
    return std::string(e.what()) + " " + e.place() + " " + e.hint();
  }
  return "nothing";
}

TEST(Published, EverySplitIsThatOfItsAuthors) {
  for (const auto& [name, set] : expected().items()) {
    if (!set.contains("splits")) continue;
    for (const auto& [split, rows] : set["splits"].items()) {
      SCOPED_TRACE(name + " " + split);
      const SampleKind samples = kind_of(set);
      const auto data = open_dataset(kLayouts / set["path"], {.samples = samples, .split = split});
      ASSERT_EQ(data->size(), rows.size());
      EXPECT_EQ(json(data->class_names()), set["classes"]);
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(data->id(i), rows[i][0]);
        EXPECT_EQ(data->label(i), rows[i][1]) << data->id(i);
        const std::vector<uint8_t> bytes = data->read(i);
        if (samples == SampleKind::text) {
          EXPECT_EQ(std::string(bytes.begin(), bytes.end()), rows[i][2]);
        } else if (rows[i].size() == 3) {
          const size_t some[] = {0, 1024, 2048, 3071};
          for (size_t k = 0; k < 4; ++k) EXPECT_EQ(bytes.at(some[k]), rows[i][2][k]);
        } else if (!bytes.empty()) {
          EXPECT_EQ(data->image(i).width, 8u) << data->id(i);
        }
      }
    }
  }
}

TEST(Published, TheSplitMustBeNamed) {
  for (const char* set : {"flowers", "pets", "roxford", "imagenet"}) {
    const std::string refused = said([&] { open_dataset(kLayouts / set); });
    EXPECT_NE(refused.find("has several splits, and none was asked for"), std::string::npos)
        << refused;
    EXPECT_NE(refused.find(", or all"), std::string::npos) << refused;
  }
  EXPECT_NE(said([] {
              open_dataset(kLayouts / "sst", {.samples = SampleKind::text});
            }).find("`split` takes train, val, test, or all"),
            std::string::npos);
  // Its authors did not split EuroSAT: without a split it is the folder of classes that it is.
  const auto plain = open_dataset(kLayouts / "eurosat");
  EXPECT_EQ(plain->kind(), DatasetKind::classes);
  for (size_t i = 1; i < plain->size(); ++i) EXPECT_LT(plain->id(i - 1), plain->id(i));
  EXPECT_EQ(plain->size(), open_dataset(kLayouts / "eurosat", {.split = "all"})->size());
}

TEST(Published, EverythingTogether) {
  const auto data = open_dataset(kLayouts / "flowers", {.split = "all"});
  EXPECT_EQ(data->size(), 9u);
  EXPECT_EQ(data->id(0), "jpg/image_00005.jpg");
  EXPECT_EQ(data->image(0).width, 8u);
  EXPECT_EQ(open_dataset(kLayouts / "fgvc", {.split = "all"})->size(), 5u)
      << "trainval is no third part";
  const auto train = open_dataset(kLayouts / "flowers", {.split = "train"});
  EXPECT_NE(train->notes().at(0).find("3 samples here, 1020 in the published set"),
            std::string::npos);
  EXPECT_NE(said([] {
              open_dataset(kLayouts / "food", {.split = "val"});
            }).find("`split` takes train, test"),
            std::string::npos);
  EXPECT_NE(open_dataset(kLayouts / "imagenet", {.split = "test"})
                ->notes()
                .at(0)
                .find("labels of ImageNet-1K's test split are not public"),
            std::string::npos);
}

TEST(Published, NumbersFollowAnotherStore) {
  const auto data = open_dataset(
      kLayouts / "pets",
      {.split = "test", .class_names = {"yorkshire_terrier", "Abyssinian", "american_bulldog"}});
  EXPECT_EQ(data->label(0), 1);
  EXPECT_EQ(data->label(2), 0);
  EXPECT_NE(said([] {
              open_dataset(kLayouts / "pets", {.split = "test", .class_names = {"Abyssinian"}});
            }).find("american_bulldog"),
            std::string::npos);
}

TEST(Published, SomeClasses) {
  const auto some = [](const std::vector<std::string>& only) {
    return choose_classes(open_dataset(kLayouts / "imagenet", {.split = "val"}), "imagenet", only);
  };
  const auto data = some({"n03000134 fence", "n01440764"});
  EXPECT_EQ(data->class_names(), (std::vector<std::string>{"n01440764", "n03000134"}));
  ASSERT_EQ(data->size(), 3u);
  EXPECT_EQ(data->id(1), "ILSVRC2012_val_00000002.JPEG");
  EXPECT_EQ(data->label(1), 1);
  EXPECT_EQ(data->image(1).width, 8u);
  EXPECT_NE(said([&] { some({"n99999999"}); }).find("n99999999"), std::string::npos);
}

// EuroSAT's whole list, whose pictures are not here: scikit-learn's split of it, and the real
// pictures that were sorted by the paper's own code.
TEST(Published, EuroSatSplitsAsScikitLearn) {
  const json& whole = expected()["eurosat_whole"];
  std::vector<std::string> files;
  std::vector<uint32_t> labels;
  uint32_t label = 0;
  for (const auto& [name, count] : whole["counts"].items()) {
    std::vector<std::string> of_class;
    for (size_t i = 1; i <= count.get<size_t>(); ++i)
      of_class.push_back(name + "/" + name + "_" + std::to_string(i) + ".jpg");
    std::sort(of_class.begin(), of_class.end());
    files.insert(files.end(), of_class.begin(), of_class.end());
    labels.insert(labels.end(), of_class.size(), label++);
  }
  const StratifiedRows rows = stratified_shuffle(labels, 10, 21600, 42);
  std::map<std::string, std::string> side;
  for (const auto& [split, list] : {std::pair("train", &rows.first), {"test", &rows.second}}) {
    ASSERT_EQ(list->size(), whole[split]["size"]);
    uint64_t sum = 0;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string& file = files[(*list)[i]];
      side[file] = split;
      if (i < 100) EXPECT_EQ(file, whole[split]["first"][i]);
      sum += (i + 1) * std::stoul(file.substr(file.rfind('_') + 1)) * (labels[(*list)[i]] + 1);
    }
    EXPECT_EQ(sum % (uint64_t{1} << 32), whole[split]["sum"]);
  }
  const fs::path real = test::data_folder() / "images/eurosat";
  if (!fs::exists(real)) GTEST_SKIP() << test::missing_data(real);
  size_t found = 0;
  for (const char* split : {"train", "test"})
    for (const auto& entry : fs::recursive_directory_iterator(real / split))
      if (entry.is_regular_file() && ++found)
        EXPECT_EQ(side[fs::relative(entry, real / split).string()], split) << entry.path();
  EXPECT_EQ(found, 1500u);
}

// A copy of a miniature whose files may be spoilt.
struct Copy {
  explicit Copy(const std::string& name) {
    fs::copy(kLayouts / name, folder.path() / name, fs::copy_options::recursive);
    root = folder.path() / name;
  }
  void write(const fs::path& file, const std::string& text) const {
    std::ofstream(root / file, std::ios::binary) << text;
  }
  std::string complaint(const char* split, SampleKind samples = SampleKind::image) const {
    return said([&] { open_dataset(root, {.samples = samples, .split = split}); });
  }
  test::TemporaryFolder folder;
  fs::path root;
};

TEST(Published, ListsThatAreDamagedAreNamed) {
  struct Case {
    const char *set, *file, *text, *split, *said;
    SampleKind samples = SampleKind::image;
  };
  const Case cases[] = {
      {"cub", "CUB_200_2011/images.txt", "1 ../../../etc/passwd\n", "test", "inside the folder"},
      {"cub", "CUB_200_2011/images.txt", "9 a/b.jpg\n", "test", "picture 9 has no line"},
      {"cub", "CUB_200_2011/image_class_labels.txt", "1 3\n", "test", "from 1 to 2, found '3'"},
      {"cub", "CUB_200_2011/classes.txt", "2 b\n", "test", "line 1"},
      {"fgvc", "fgvc-aircraft-2013b/data/images_variant_test.txt", "0062765 Concorde\n", "test",
       "no class 'Concorde'"},
      {"fgvc", "fgvc-aircraft-2013b/data/images_variant_test.txt", "/tmp/x F/A-18\n", "test",
       "inside the folder"},
      {"pets", "oxford-iiit-pet/annotations/test.txt", "Abyssinian_1 38 1 1\n", "test",
       "from 1 to 37"},
      {"pets", "oxford-iiit-pet/annotations/test.txt", "Abyssinian_1\n", "test", "expected 'name"},
      {"food", "food-101/meta/test.json", "{\"apple_pie\": [\"apple_pie/../../x\"]}", "test",
       "inside the folder"},
      {"food", "food-101/meta/test.json", "[", "test", "class/number"},
      {"food", "food-101/meta/train.txt", "pizza/1\n", "train", "no class 'pizza'"},
      {"dtd", "dtd/dtd/labels/test1.txt", "banded\n", "test", "class/file"},
      {"imagenet", "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "1001\n",
       "val", "class 1001 is not in meta.mat"},
      {"imagenet", "ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt", "2\n",
       "val", "does not know the picture"},
      {"imagenet_kaggle", "LOC_val_solution.csv", "ILSVRC2012_val_00000001\n", "val",
       "picture,class"},
      {"trec", "TREC_10.label", "WHAT:x Who ?\n", "test", "no class 'WHAT'", SampleKind::text},
      {"sst", "trees/test.txt", "(7 (2 a))\n", "test", "0 to 4", SampleKind::text},
      {"agnews", "ag_news_csv/test.csv", "\"5\",\"a\",\"b\"\n", "test", "from 1 to 4",
       SampleKind::text},
      {"agnews", "ag_news_csv/test.csv", "\"1\",\"a\n", "test", "", SampleKind::text},
      {"banking77", "banking_data/test.csv", "text,category\nwhy,love\n", "test", "no class 'love'",
       SampleKind::text},
      {"tweeteval", "emoji/test_labels.txt", "0\n1\n", "test", "label for each of 1 texts",
       SampleKind::text},
      {"tweeteval", "emoji/test_labels.txt", "2\n", "test", "from 0 to 1", SampleKind::text},
  };
  for (const Case& c : cases) {
    const Copy copy(c.set);
    copy.write(c.file, c.text);
    const std::string complaint = copy.complaint(c.split, c.samples);
    EXPECT_NE(complaint, "nothing") << c.file;
    EXPECT_NE(complaint.find(c.said), std::string::npos) << c.file << ": " << complaint;
    EXPECT_NE(complaint.find(fs::path(c.file).filename().string().substr(0, 5)), std::string::npos)
        << complaint;
    fs::remove(copy.root / c.file);
    if (std::string_view(c.file).find("test") != std::string_view::npos)
      EXPECT_NE(copy.complaint(c.split, c.samples).find("missing"), std::string::npos)
          << c.file << ": " << copy.complaint(c.split, c.samples);
  }
}

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Cut off anywhere, or with a byte changed: the samples, or an Error; never anything else.
TEST(Published, MatlabFilesAndPicklesMayBeBroken) {
  const std::pair<const char*, const char*> files[] = {
      {"flowers", "flowers-102/setid.mat"},
      {"flowers", "flowers-102/imagelabels.mat"},
      {"cars", "stanford_cars/devkit/cars_train_annos.mat"},
      {"cars", "stanford_cars/devkit/cars_meta.mat"},
      {"imagenet", "ILSVRC2012_devkit_t12/data/meta.mat"},
      {"cifar10", "cifar-10-batches-py/data_batch_1"},
      {"cifar100", "cifar-100-python/meta"}};
  for (const auto& [set, file] : files) {
    const Copy copy(set);
    const std::string whole = bytes_of(copy.root / file);
    const char* split = std::string_view(set) == "imagenet" ? "val" : "train";
    size_t refused = 0;
    for (size_t i = 0; i < 24; ++i) {
      copy.write(file, whole.substr(0, whole.size() * i / 24));
      refused += copy.complaint(split) != "nothing";
      std::string changed = whole;
      changed[(i * 37 + 129) % changed.size()] ^= char(1 << (i % 8));
      copy.write(file, changed);
      copy.complaint(split);
    }
    EXPECT_GE(refused, 12u) << file;  // of a list whose end says nothing of this split, fewer
  }
  const Copy flowers("flowers");
  fs::copy_file(kLayouts / "cars/stanford_cars/devkit/cars_meta.mat",
                flowers.root / "flowers-102/setid.mat", fs::copy_options::overwrite_existing);
  EXPECT_NE(flowers.complaint("train").find("'trnid'"), std::string::npos);
}

// MATLAB files as somebody would make them to do harm. All of it is by hand: 128 bytes of head, then
// elements of type, size and bytes.
std::string word(uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }
std::string element(uint32_t type, const std::string& bytes) {
  return word(type) + word(uint32_t(bytes.size())) + bytes +
         std::string((8 - bytes.size() % 8) % 8, 0);
}
std::string array(uint32_t kind, const std::vector<uint32_t>& sides, const std::string& name,
                  const std::string& inside) {
  std::string dims;
  for (const uint32_t side : sides) dims += word(side);
  return element(14,
                 element(6, word(kind) + word(0)) + element(5, dims) + element(1, name) + inside);
}
std::string mat_file(const std::string& elements, char version = 1) {
  return std::string(124, ' ') + std::string(1, 0) + version + "IM" + elements;
}
std::string packed(const std::string& bytes) {
  std::string out(compressBound(bytes.size()), 0);
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  return word(15) + word(uint32_t(size)) + out.substr(0, size);
}

TEST(Published, MatlabFilesThatMeanHarm) {
  const Copy flowers("flowers");
  const auto complaint = [&](const std::string& bytes) {
    flowers.write("flowers-102/setid.mat", bytes);
    return flowers.complaint("train");
  };
  constexpr uint32_t kCells = 1, kDouble = 6, kBytes = 9;
  const std::string five = array(kBytes, {1, 1}, "trnid", element(2, "\5"));
  EXPECT_EQ(complaint(mat_file(five)), "nothing");  // what is made here is such a file
  EXPECT_EQ(complaint(mat_file(packed(five))), "nothing");
  // Arrays in arrays, as deep as the process's stack is: libmatio would follow them.
  std::string deep = array(kBytes, {1, 1}, "", element(2, "\5"));
  std::string heads;
  for (size_t i = 0; i < 200'000; ++i) {
    const std::string head = element(6, word(kCells) + word(0)) + element(5, word(1) + word(1)) +
                             element(1, i + 1 < 200'000 ? "" : "trnid");
    // From the inside out: the last head stands first in the file.
    heads += std::string(head.rbegin(), head.rend());
    const std::string tag = word(14) + word(uint32_t(heads.size() + deep.size()));
    heads += std::string(tag.rbegin(), tag.rend());
  }
  const std::string nested = std::string(heads.rbegin(), heads.rend()) + deep;
  for (const std::string& bytes : {nested, packed(nested)})
    EXPECT_NE(complaint(mat_file(bytes)).find("more than 16 deep"), std::string::npos);
  std::string cells = array(kBytes, {1, 1}, "", element(2, "\5"));
  for (size_t i = 0; i < 17; ++i) cells = array(kCells, {1, 1}, i < 16 ? "" : "trnid", cells);
  EXPECT_NE(complaint(mat_file(cells)).find("more than 16 deep"), std::string::npos);
  // A megabyte that unpacks to a gigabyte; and packed twice.
  EXPECT_NE(complaint(mat_file(packed(std::string(size_t{100} << 20, 0)))).find("unpacked"),
            std::string::npos);
  EXPECT_NE(complaint(mat_file(packed(packed(five)))), "nothing");
  // Sides that promise more than there is.
  for (const auto& sides : std::vector<std::vector<uint32_t>>{
           {1, 0x7fffffff}, {0xffffffff, 0xffffffff}, {0x10000, 0x10000, 0x10000}, {}})
    for (const uint32_t kind : {kCells, kDouble})
      EXPECT_NE(complaint(mat_file(array(kind, sides, "trnid", element(9, std::string(8, 0)))))
                    .find(sides.empty() ? "setid.mat" : "elements of an array"),
                std::string::npos);
  EXPECT_NE(complaint(mat_file(five.substr(0, 4) + word(1u << 30) + five.substr(8)))
                .find("more bytes of an array"),
            std::string::npos);
  EXPECT_NE(complaint(mat_file(five, 2)).find("version 7.3"), std::string::npos);
  EXPECT_NE(complaint("").find("MATLAB"), std::string::npos);
}

}  // namespace
}  // namespace fungi
