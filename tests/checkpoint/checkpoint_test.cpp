// SPDX-License-Identifier: Apache-2.0
// Checkpoint against files that torch, safetensors and numpy wrote: names, types, shapes and every
// value.
#include "fungi/checkpoint/checkpoint.h"

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "support.h"
#include "tests/support/data.h"

namespace fungi {
namespace {

using nlohmann::json;

const json& expectations() {
  static const json all = [] {
    json read = json::parse(read_file(golden("expected.json")));
    read.update(json::parse(read_file(golden("containers.json"))));
    return read;
  }();
  return all;
}

float number(const json& value) {
  return value.is_string() ? std::strtof(value.get<std::string>().c_str(), nullptr)
                           : value.get<float>();
}

class GoldenFile : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenFile, HoldsWhatItsAuthorWrote) {
  const json& expected = expectations()[GetParam()];
  const Checkpoint checkpoint = Checkpoint::open(golden(GetParam()));
  EXPECT_EQ(checkpoint.format(), expected["format"]);
  const json& tensors = expected["tensors"];
  ASSERT_EQ(checkpoint.tensors().size(), tensors.size());
  for (const auto& [name, facts] : tensors.items()) {
    SCOPED_TRACE(name);
    const TensorInfo* info = checkpoint.find(name);
    ASSERT_NE(info, nullptr);
    EXPECT_EQ(to_string(info->type), facts["type"]);
    EXPECT_EQ(info->shape, facts["shape"].get<std::vector<size_t>>());
    if (info->type > DType::f64) {
      EXPECT_CONTAINS(error_of([&, key = name] { checkpoint.read(key); }), "was expected");
      continue;
    }
    const Matrix<float> values = checkpoint.read(name);
    const json& wanted = facts["values"];
    ASSERT_EQ(values.rows() * values.cols(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(values.data()[i], number(wanted[i])) << i;
      EXPECT_EQ(std::signbit(values.data()[i]), std::signbit(number(wanted[i]))) << i;
    }
  }
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& [name, facts] : expectations().items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFile, ::testing::ValuesIn(golden_names()),
                         [](const auto& given) {
                           std::string name = given.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

TEST(Checkpoint, ShapesBecomeMatrices) {
  const Checkpoint checkpoint = Checkpoint::open(golden("types.safetensors"));
  const auto shape = [&](const char* name) {
    const Matrix<float> matrix = checkpoint.read(name);
    return std::pair(matrix.rows(), matrix.cols());
  };
  EXPECT_EQ(shape("f32"), std::pair(size_t{2}, size_t{3}));
  EXPECT_EQ(shape("f16.special"), std::pair(size_t{1}, size_t{4}));
  EXPECT_EQ(shape("scalar"), std::pair(size_t{1}, size_t{1}));
  EXPECT_EQ(shape("empty"), std::pair(size_t{0}, size_t{4}));
  EXPECT_EQ(checkpoint.find("scalar")->shape_text(), "scalar");
  EXPECT_EQ(checkpoint.find("f32")->shape_text(), "2x3");
  EXPECT_EQ(checkpoint.find("f3"), nullptr);
  EXPECT_CONTAINS(error_of([&] { checkpoint.read("f3"); }), "tensor 'f3'");
}

TEST(Checkpoint, NamesAreSorted) {
  const Checkpoint checkpoint = Checkpoint::open(golden("training.pth"));
  const auto& all = checkpoint.tensors();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].name, all[i].name);
  EXPECT_NE(checkpoint.find("student.module.backbone.blocks.1.qkv.weight"), nullptr);
  EXPECT_NE(checkpoint.find("optimizer.state.0.exp_avg"), nullptr);
}

TEST(Checkpoint, FolderIndexAndConfig) {
  const Checkpoint folder = Checkpoint::open(golden("sharded"));
  EXPECT_EQ(folder.format(), "safetensors (sharded)");
  EXPECT_EQ(folder.beside("config.json"), "{\"model_type\": \"tiny\"}\n");
  EXPECT_CONTAINS(folder.path(), "model.safetensors.index.json");
  EXPECT_EQ(Checkpoint::open(golden("sharded_bin")).tensors().size(), 3u);
  EXPECT_EQ(Checkpoint::open(golden("types.pth")).beside("config.json"), "");
  EXPECT_CONTAINS(error_of([] { Checkpoint::open(golden("")); }), "checkpoints: augreg.npz, ");
}

using CheckpointFolder = FolderTest;

TEST_F(CheckpointFolder, AnEmptyConfigIsNotTakenForNone) {
  folder_.write("model.safetensors", read_file(golden("types.safetensors")));
  EXPECT_EQ(Checkpoint::open(folder_.path()).beside("config.json"), "");
  folder_.write("config.json", "");
  EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder_.path()).beside("config.json"); }),
                  "config.json: expected JSON");
}

// The digests are those of coreutils' sha256sum; of shards, of their bytes in the order of their
// names.
TEST(Checkpoint, Sha256IsThatOfTheBytes) {
  EXPECT_EQ(Checkpoint::open(golden("types.safetensors")).sha256(),
            "98452aa03e5983f1bd1d0b79d2e2e4d8b16dadb587e569c8c8f58ff579e21697");
  EXPECT_EQ(Checkpoint::open(golden("sharded")).sha256(),
            "d45b733e48348c1b87c95542e05d455590961834e0d8c929f0f7b42e2368fe88");
}

TEST(Checkpoint, ReadsFromManyThreads) {
  for (const char* name :
       {"views.pth", "augreg_packed.npz", "training_legacy.pth", "types.safetensors"}) {
    const Checkpoint checkpoint = Checkpoint::open(golden(name));
    std::vector<std::vector<float>> alone;
    std::vector<std::string> names;
    for (const TensorInfo& info : checkpoint.tensors()) {
      if (info.type > DType::f64) continue;
      const Matrix<float> values = checkpoint.read(info.name);
      names.push_back(info.name);
      alone.emplace_back(values.data(), values.data() + info.count());
    }
    std::vector<int> wrong(4, 0);
    std::vector<std::jthread> threads;
    for (int& mine : wrong)
      threads.emplace_back([&] {
        for (int round = 0; round < 20; ++round)
          for (size_t i = 0; i < names.size(); ++i) {
            const Matrix<float> values = checkpoint.read(names[i]);
            if (!alone[i].empty())
              mine +=
                  std::memcmp(values.data(), alone[i].data(), alone[i].size() * sizeof(float)) != 0;
          }
        mine += checkpoint.sha256().size() != 64;
      });
    threads.clear();
    for (int mine : wrong) EXPECT_EQ(mine, 0) << name;
  }
}

TEST(Checkpoint, RealWeights) {
  const auto path = test::data_folder() / "weights/deit_tiny_patch16_224.safetensors";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << test::missing_data(path);
  const Checkpoint checkpoint = Checkpoint::open(path);
  EXPECT_EQ(checkpoint.tensors().size(), 152u);
  EXPECT_EQ(checkpoint.find("patch_embed.proj.weight")->shape_text(), "192x3x16x16");
  EXPECT_EQ(checkpoint.sha256(),
            "20664db5c8de130f20a5e1cada098ad4b93915345b0be3b42182ce18e2888038");
}

TEST(Checkpoint, RefusesByName) {
  const auto refusal = [](const char* name) {
    return error_of([&] { Checkpoint::open(golden(name)); });
  };
  EXPECT_CONTAINS(refusal("whole_model.pth"), "refuses the global '__main__.Tiny'");
  EXPECT_CONTAINS(refusal("float8.pth"),
                  "holds tensors of 8-bit floats ('torch.float8_e4m3fn'), which are not read");
  EXPECT_CONTAINS(refusal("sparse.pth"),
                  "holds sparse tensors ('torch._utils._rebuild_sparse_tensor'), which are not");
  EXPECT_CONTAINS(refusal("single_tensor.pth"), "no dict of named tensors");
  EXPECT_CONTAINS(refusal("f4.npy"), "single .npy array");
  EXPECT_CONTAINS(refusal("expected.json"), "weight_map");
  EXPECT_CONTAINS(refusal("absent.pth"), "cannot be opened");
}

TEST_F(FolderTest, NamesWhatIsNoCheckpoint) {
  const auto refusal = [&](std::string_view bytes) {
    const auto path = folder_.write("file", bytes);
    return error_of([&] { Checkpoint::open(path); });
  };
  EXPECT_CONTAINS(refusal("version https://git-lfs.example/spec/v1\noid sha256:0\n"),
                  "git lfs pull");
  EXPECT_CONTAINS(refusal("<!DOCTYPE html><html>"), "web page");
  EXPECT_CONTAINS(refusal("GGUF\x03"), "GGUF");
  EXPECT_CONTAINS(refusal("\x1F\x8B\x08"), "gzip");
  EXPECT_CONTAINS(refusal("\x89HDF\r\n"), "HDF5");
  EXPECT_CONTAINS(refusal(std::string(257, 'a') + "ustar" + std::string(250, '\0')), "tar archive");
  EXPECT_CONTAINS(refusal("hello"), "neither safetensors");
  EXPECT_CONTAINS(refusal(""), "is empty");
  std::filesystem::create_directory(folder_ / "empty");
  EXPECT_CONTAINS(error_of([&] { Checkpoint::open(folder_ / "empty"); }), "holds no .safetensors");
  EXPECT_NO_THROW(Checkpoint::open(FUNGI_GOLDEN_DIR "/backbone/mocov3"));  // a .pth.tar
  std::filesystem::create_directory(folder_ / "lightning");
  std::filesystem::copy_file(golden("state_dict.pth"), folder_ / "lightning/last.ckpt");
  EXPECT_NO_THROW(Checkpoint::open(folder_ / "lightning"));
  for (int i = 0; i < 16; ++i)  // in whatever order they are listed
    std::filesystem::create_directory(folder_ / "lightning" / ("version_" + std::to_string(i)));
  EXPECT_NO_THROW(Checkpoint::open(folder_ / "lightning"));
  EXPECT_CONTAINS(error_of([&] { Checkpoint::open("/dev/null"); }), "not a regular file");
}

}  // namespace
}  // namespace fungi
