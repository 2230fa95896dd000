// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/segment/scores_file.h"
#include "fungi/segment/segmenter_json.h"

namespace fungi {
namespace {

using namespace segment;
namespace fs = std::filesystem;

constexpr size_t kPicturesPerThread = 2;  // at once
constexpr size_t kRecallQueries = 64;

std::string settings_of(const Segmenter& segmenter, const MaskDataset& test,
                        const SegmentationTest& options) {
  uint64_t ids = fnv1a64("");
  for (size_t i = 0; i < test.size(); ++i) ids = fnv1a64("\n", fnv1a64(test.id(i), ids));
  Json out{{"format", "fungi-scores"},
           {"version", 1},
           {"at_picture_size", options.at_picture_size},
           {"masks", options.write_masks},
           {"pictures", test.size()},
           {"ids", fmt::format("{:016x}", ids)},
           {"ignore", test.ignore()}};
  out["segmenter"] = Json::parse(segmenter.settings());
  return out.dump();
}

// Mean over the classes of a picture, true or predicted.
double mean_of_picture(const Confusion& confusion) {
  double sum = 0;
  size_t classes = 0;
  for (size_t c = 0; c < confusion.classes(); ++c) {
    uint64_t either = 0;
    for (size_t other = 0; other < confusion.classes(); ++other)
      either += confusion(c, other) + (other == c ? 0 : confusion(other, c));
    if (!either) continue;
    ++classes;
    sum += double(confusion(c, c)) / double(either);
  }
  return classes ? sum / double(classes) : 0;
}

class Testing {
 public:
  Testing(const Segmenter& segmenter, const MaskDataset& test, const fs::path& folder,
          const SegmentationTest& options, Pool& pool)
      : segmenter_(segmenter), test_(test), folder_(folder), options_(options), pool_(pool) {}

  std::vector<PictureLine> some(size_t first, size_t count) {
    std::vector<std::string> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(test_.id(first + i));
    std::vector<MaskDataset::Pair> pairs(count);
    std::vector<Segmenter::Labels> labels = segmenter_.label(
        count,
        [&](size_t i) {
          pairs[i] = test_.pair(first + i);
          return pairs[i].image;
        },
        ids, pool_);
    std::vector<PictureLine> lines(count);
    pool_.parallel_for(count, 1, [&](size_t i, size_t, unsigned) {
      lines[i].id = ids[i];
      lines[i].failure = labels[i].failure;
      if (!lines[i].failure) lines[i].kinds = measure(ids[i], pairs[i], labels[i]);
    });
    return lines;
  }

 private:
  std::vector<Confusion> measure(const std::string& id, const MaskDataset::Pair& pair,
                                 const Segmenter::Labels& labels) const {
    const PatchFeatureOptions& f = segmenter_.features().options();
    const size_t w = pair.mask.width, h = pair.mask.height;
    const bool whole = options_.at_picture_size;
    const Mask truth = whole ? pair.mask : resize_mask(pair.mask, f.width, f.height);
    std::vector<Confusion> out;
    for (size_t kind = 0; kind < labels.shares.size(); ++kind) {
      Confusion confusion(segmenter_.classes());
      const Mask compared = segmenter_.mask(labels.shares[kind], truth.width, truth.height);
      confusion.add(truth, compared, test_.ignore(), test_.unmeasured());
      out.push_back(std::move(confusion));
      if (!options_.write_masks) continue;
      const fs::path file = prediction_file(folder_, segmenter_.kinds()[kind], id);
      fs::create_directories(file.parent_path());
      write_mask(file, whole ? compared : segmenter_.mask(labels.shares[kind], w, h));
    }
    return out;
  }

  const Segmenter& segmenter_;
  const MaskDataset& test_;
  const fs::path& folder_;
  const SegmentationTest& options_;
  Pool& pool_;
};

// Of some patches of the first picture that can be read.
std::vector<double> measure_recall(const Segmenter& segmenter, const MaskDataset& test,
                                   Pool& pool) {
  std::vector<double> recall(segmenter.kinds().size(), 1);
  bool exact = true;
  for (size_t kind = 0; kind < recall.size(); ++kind) exact &= segmenter.bank(kind).is_exact();
  for (size_t i = 0; !exact && i < test.size(); ++i) {
    const std::string& id = test.id(i);
    const auto labels = segmenter.label(
        1, [&](size_t) { return test.image(i); }, std::span(&id, 1), pool);
    if (labels[0].failure) continue;
    for (size_t kind = 0; kind < recall.size(); ++kind) {
      const View<const float> rows = labels[0].features[kind];
      std::vector<size_t> some(std::min(kRecallQueries, rows.rows));
      for (size_t p = 0; p < some.size(); ++p) some[p] = p * rows.rows / some.size();
      recall[kind] = segmenter.bank(kind).recall(gather(rows, some), segmenter.options().k, pool);
    }
    break;
  }
  return recall;
}

}  // namespace

fs::path prediction_file(const fs::path& folder, const std::string& kind, const std::string& id) {
  fs::path name;  // ids of lists may lead anywhere
  for (const fs::path& part : fs::path(id).relative_path())
    name /= part == ".." || part == "." ? fs::path("_") : part;
  return folder / "predictions" / kind / (name.string() + ".png");
}

SegmentationResult test_segmentation(const Segmenter& segmenter, const MaskDataset& test,
                                     const fs::path& folder, const SegmentationTest& options,
                                     Pool& pool, const SegmentHooks& hooks) try {
  if (test.classes() != segmenter.classes())
    fail(fmt::format("expected the {} classes of the memory, found {}", segmenter.classes(),
                     test.classes()),
         "test masks", "call use_classes() with the training pictures");
  fs::create_directories(folder);
  ScoresFile file(folder / "scores.jsonl", settings_of(segmenter, test, options),
                  segmenter.kinds().size(), segmenter.classes(), [&](const PictureLine& line) {
                    return line.failure || !options.write_masks ||
                           std::ranges::all_of(segmenter.kinds(), [&](const std::string& kind) {
                             return fs::exists(prediction_file(folder, kind, line.id));
                           });
                  });
  SegmentationResult out;
  out.kinds = segmenter.kinds();
  for (size_t kind = 0; kind < out.kinds.size(); ++kind)
    out.confusions.emplace_back(segmenter.classes());
  size_t done = 0;
  const auto take = [&](const PictureLine& line) {
    ++done;
    if (line.failure) return out.failed.push_back(*line.failure);
    out.ids.push_back(line.id);
    out.pictures.emplace_back();
    for (size_t kind = 0; kind < out.kinds.size(); ++kind) {
      out.confusions[kind].add(line.kinds[kind]);
      out.pictures.back().push_back(mean_of_picture(line.kinds[kind]));
    }
  };
  for (const PictureLine& line : file.take_lines()) take(line);
  Testing testing(segmenter, test, folder, options, pool);
  const size_t together = kPicturesPerThread * pool.threads();
  while (done < test.size() && !hooks.stopped()) {
    if (hooks.progress) hooks.progress("test", done, test.size(), out.failed.size());
    for (const PictureLine& line : testing.some(done, std::min(together, test.size() - done))) {
      file.add(line);
      take(line);
    }
  }
  if (hooks.progress) hooks.progress("test", done, test.size(), out.failed.size());
  for (const Confusion& confusion : out.confusions)
    out.scores.push_back(score(confusion, test.unmeasured()));
  for (size_t c = 0; c < segmenter.classes(); ++c)
    out.class_names.push_back(segmenter.class_name(c));
  out.complete = done == test.size();
  if (!out.complete) return out;
  if (out.ids.empty())
    fail(fmt::format("none of the {} pictures could be used; the first: {}: {}", test.size(),
                     out.failed[0].id, out.failed[0].reason),
         folder.string(), out.failed[0].hint);
  out.recall = measure_recall(segmenter, test, pool);
  return out;
} catch (const fs::filesystem_error& error) {
  fail(error.code().message(), error.path1().empty() ? folder.string() : error.path1().string(),
       "check the path and its permissions");
}

}  // namespace fungi
