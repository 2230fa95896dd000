// SPDX-License-Identifier: Apache-2.0
// Linked with its own avif.cpp, heif.cpp and matio.cpp, compiled as where their libraries are
// missing.
#include <gtest/gtest.h>

#include "fungi/base/error.h"
#include "fungi/input/dataset.h"
#include "tests/input/pattern.h"

namespace fungi {
namespace {

TEST(FormatsLeftOut, AreNamedWithWhatToInstall) {
  const std::vector<std::string> every = {"JPEG", "PNG", "WebP", "TIFF", "BMP", "GIF"};
  EXPECT_EQ(image_formats(), every);
  const std::pair<std::string, std::string> left_out[] = {{"444.avif", "AVIF"},
                                                          {"444.heic", "HEIC"}};
  for (const auto& [file, format] : left_out) {
    try {
      read_image(std::filesystem::path(FUNGI_GOLDEN_DIR) / "input/formats" / file);
      ADD_FAILURE() << file;
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("this build of fungi does not read " + format), said.npos) << said;
      EXPECT_NE(said.find(format == "AVIF" ? "libavif-dev" : "libheif-dev"), said.npos) << said;
    }
  }
}

TEST(FormatsLeftOut, MatlabFilesAreRefusedAndOtherSetsRead) {
  const std::filesystem::path layouts = std::filesystem::path(FUNGI_GOLDEN_DIR) / "input/layouts";
  for (const char* set : {"flowers", "cars", "imagenet"}) {
    try {
      open_dataset(layouts / set, {.split = set == std::string("imagenet") ? "val" : "train"});
      ADD_FAILURE() << set;
    } catch (const Error& error) {
      const std::string said = std::string(error.what()) + error.hint();
      EXPECT_NE(said.find("this build of fungi does not read MATLAB files"), said.npos) << said;
      EXPECT_NE(said.find(".mat"), said.npos) << said;
      EXPECT_NE(said.find("libmatio-dev"), said.npos) << said;
    }
  }
  EXPECT_EQ(open_dataset(layouts / "pets", {.split = "test"})->size(), 3u);
  EXPECT_EQ(open_dataset(layouts / "imagenet_kaggle", {.split = "val"})->class_names().size(), 3u);
}

}  // namespace
}  // namespace fungi
