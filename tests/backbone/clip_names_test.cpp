// SPDX-License-Identifier: Apache-2.0
// CLIP towers: a projection is not lost silently, and whose archive tells the activation.
#include <gtest/gtest.h>

#include "fungi/backbone/backbone.h"
#include "fungi/checkpoint/zip.h"
#include "tests/checkpoint/archive.h"
#include "tests/support/errors.h"
#include "tests/support/tiny_checkpoint.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::TinyCheckpoint;

TinyCheckpoint golden_clip(const std::string& file) {
  return test::shaped_like(fs::path(FUNGI_GOLDEN_DIR) / "backbone" / file);
}

const StatedFacts kFacts{{"heads", "2"}, {"activation", "gelu"}};

// One line of a table: a golden file and where its tower and its text tower keep their projections.
struct Tower {
  const char *file, *projection, *text;
};

TEST(ClipProjection, IsMissedWhereTheTextTowerHasOne) {
  for (const Tower& t :
       {Tower{"open_clip_vit/open_clip_model.safetensors", "visual.proj", "text_projection"},
        {"hf_clip/model.safetensors", "visual_projection.weight", "text_projection.weight"},
        {"timm_clip/model.safetensors", "head.weight", "text.text_projection"},
        {"timm_eva02_clip/model.safetensors", "head.weight", "text.text_projection"}}) {
    SCOPED_TRACE(t.file);
    TinyCheckpoint c = golden_clip(t.file);
    c.shapes[t.text] = {8, 20};
    EXPECT_EQ(c.read(kFacts).embedding_width, 20u);
    c.shapes.erase(t.projection);
    c.shapes.erase("head.bias");
    EXPECT_NE(c.refusal(kFacts).find(std::string(t.projection) + ": the tensor is missing"),
              std::string::npos)
        << c.refusal(kFacts);
    c.shapes.erase(t.text);  // a tower alone may have lost it on purpose
    const Architecture a = c.read(kFacts);
    EXPECT_FALSE(a.head);
    EXPECT_EQ(a.embedding_width, a.width);
  }
}

TEST(ClipProjection, HasInTimmsNamesAWeightAndABias) {
  for (const char* file : {"timm_clip/model.safetensors", "timm_eva02_clip/model.safetensors"})
    for (const char* part : {"head.weight", "head.bias"}) {
      TinyCheckpoint c = golden_clip(file);
      c.shapes.erase(part);
      EXPECT_NE(c.refusal(kFacts).find(part), std::string::npos) << file << ": " << part;
    }
}

TEST(ClipProjection, IsWhereItsConfigurationSaysSo) {
  TinyCheckpoint c = golden_clip("hf_clip_vision/model.safetensors");
  c.shapes.erase("visual_projection.weight");
  EXPECT_NE(c.refusal(kFacts).find("visual_projection.weight"), std::string::npos);
  c.config["architectures"] = {"CLIPVisionModel"};
  EXPECT_FALSE(c.read(kFacts).head);
}

// The golden archive with one word of its pickle replaced by another of the same length.
std::string archive_with(const std::string& word, const std::string& other) {
  const ZipArchive archive(FileBytes::map(FUNGI_GOLDEN_DIR "/backbone/clip_torchscript/model.pt"));
  std::vector<TestEntry> entries;
  for (size_t i = 0; i < archive.entries().size(); ++i) {
    const std::string& name = archive.entries()[i].name;
    std::string bytes = archive.read_text(i, 1 << 20);
    if (name.ends_with("data.pkl"))
      for (size_t at; (at = bytes.find(word)) != std::string::npos;)
        bytes.replace(at, word.size(), other);
    entries.push_back(stored(name, bytes));
  }
  return zip(entries);
}

TEST(ClipActivation, OfTorchScriptIsKnownForOpenAisArchivesOnly) {
  const auto read = [](const std::string& bytes, StatedFacts facts, const char* config = "") {
    const test::TemporaryFolder folder;
    std::ofstream(folder / "model.pt", std::ios::binary) << bytes;
    if (*config) std::ofstream(folder / "open_clip_config.json") << config;
    facts["heads"] = "2";
    const Checkpoint checkpoint = Checkpoint::open(folder / "model.pt");
    EXPECT_EQ(checkpoint.format(), "torchscript");
    return read_architecture(checkpoint, facts).activation;
  };
  EXPECT_EQ(read(archive_with("none", "none"), {}), kernel::Activation::quick_gelu);
  EXPECT_EQ(read(archive_with("none", "none"), {},
                 R"({"model_cfg": {"vision_cfg": {"width": 16, "head_width": 8}}})"),
            kernel::Activation::quick_gelu)
      << "what another model's configuration says, which may lie beside it, is not about this one";
  for (const std::string mark : {"input_resolution", "context_length", "vocab_size"}) {
    const std::string foreign = archive_with(mark, std::string(mark.size(), 'x'));
    SCOPED_TRACE("without " + mark + " it may be anybody's");
    EXPECT_ERROR("`stated_facts[activation]", read(foreign, {}));
    const std::string renamed(mark.size(), 'x');
    EXPECT_EQ(read(foreign, {{"activation", "gelu"}, {"ignore", renamed}}),
              kernel::Activation::gelu);
  }
}

}  // namespace
}  // namespace fungi
