// SPDX-License-Identifier: Apache-2.0
// Features of patches of a real photograph as the published protocol gives them: DeiT-tiny at 512 x
// 512, head, projection and draws of the files. Their support is not given: at a denominator's
// temperature of 1 negatives hardly matter, so tokens of some other photographs stand for it.
#include <gtest/gtest.h>

#include "fungi/checkpoint/npy.h"
#include "fungi/input/image.h"
#include "fungi/segment/patch_features.h"
#include "tests/support/data.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files(const fs::path& folder) {
  std::vector<fs::path> list;
  for (const auto& entry : fs::directory_iterator(folder)) list.push_back(entry.path());
  std::sort(list.begin(), list.end());
  return list;
}

// The affine head of the published code: torch's generator with this seed.
std::vector<NamedMatrix> head(uint32_t seed) {
  TorchRandom random(seed);
  std::vector<NamedMatrix> state, given;
  Head::draw(Head::Form::affine, random, 96, 192).save("patch_simclr-head0", state);
  for (NamedMatrix& m : state) {
    std::replace(m.name.begin(), m.name.end(), '.', '-');
    given.push_back(std::move(m));
  }
  return given;
}

TEST(Published, FeaturesOfAPhotograph) {
  const fs::path pictures = test::data_folder() / "segmentation/voc2012-subset",
                 model = test::data_folder() / "weights/deit_tiny_patch16_224.safetensors",
                 golden = test::data_folder().parent_path() / "golden/seg";
  for (const fs::path& needed : {pictures, model, golden})
    if (!fs::exists(needed)) GTEST_SKIP() << test::missing_data(needed);
  Pool pool;
  BackboneOptions backbone;
  backbone.precision = Precision::f32;
  // The protocol resizes positions as DINO does, whatever the model, and takes the statistics of
  // ImageNet, mistyped.
  backbone.stated_facts = {{"family", "dino"}};
  const Backbone network = Backbone::open(model, patch_backbone({}, backbone), pool);
  PictureViews views(512, 512, kImageNetMean, {0.229f, 0.224f, 0.255f});
  PatchScratch scratch;
  const PatchFeatures tokens_alone(network, {.objective = ""});
  Matrix<float> pixels(1, tokens_alone.pixel_count()), support(4 * 1024, 192), own(1024, 192),
      rows(1024, 384);
  const auto look = [&](const fs::path& file, View<float> tokens) {
    views.whole(read_image(file), {pixels.data(), pixels.cols()});
    tokens_alone.embed(pixels, scratch, tokens);
  };
  const std::vector<fs::path> train = files(pictures / "train/images");
  for (size_t i = 0; i < 4; ++i)
    look(train[i * train.size() / 4], support.view().slice(i * 1024, 1024));
  const fs::path first = files(pictures / "test/images")[0];
  look(first, own);
  for (const std::string name : {"fix0", "fix42", "scr0", "scr42", "rnd42"}) {
    PatchFeatures features(network,
                           {.preset = name.starts_with("scr") ? Preset::paper : Preset::native,
                            .projection = ProjectionKind::sign_reference,
                            .given = head(name.ends_with("42") ? 42 : 0)});
    features.set_support(support.copy(), pool);
    features.features(pixels, std::vector<std::string>{first.stem().string()}, scratch, rows);
    const NpzFile archive = NpzFile::open(golden / ("test0_" + name + ".npz"));
    const Matrix<float> truth = archive.read("feature"), gradients = archive.read("grad"),
                        tokens = archive.read("tokens");
    const size_t patches[] = {0, 1, 33, 527, 1023};
    ASSERT_EQ(truth.rows(), std::size(patches));
    for (size_t i = 0; i < std::size(patches); ++i) {
      const size_t p = patches[i];
      EXPECT_GT(golden::cosine(own.row(p), tokens.row(i + 1), 192), 0.9999) << name << " " << p;
      EXPECT_GT(golden::cosine(rows.row(p), truth.row(i), 384), 0.9995) << name << " " << p;
      EXPECT_GT(golden::cosine(rows.row(p) + 192, gradients.row(i), 192), 0.999)
          << name << " " << p;
    }
  }
}

}  // namespace
}  // namespace fungi
