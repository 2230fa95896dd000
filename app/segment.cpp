// SPDX-License-Identifier: Apache-2.0
// fungi segment TRAIN TEST -m MODEL -o OUT: in-context segmentation, embedding beside gradients;
// fungi segment --bank OUT/bank PICTURE -o MASK: new pictures.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "app/segment_arguments.h"
#include "app/words.h"
#include "fungi/base/atomic_file.h"
#include "fungi/hub/pull.h"
#include "fungi/input/png_write.h"
#include "fungi/report/segment_page.h"
#include "fungi/segment/patch_colours.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFailuresShown = 3;

std::unique_ptr<MaskDataset> open_masks(const SegmentArguments& a, bool train,
                                        const std::vector<std::string>& names, Notes& notes) {
  MaskDatasetOptions o;
  o.layout = parse_mask_layout(a.layout);
  o.split = train ? a.train_split : a.test_split;
  o.role = train ? MaskDatasetOptions::Role::train : MaskDatasetOptions::Role::test;
  o.class_names = names;
  o.ignore = a.stated_ignore;
  auto data = open_mask_dataset(a.data[train ? 0 : 1], o);
  notes.add(data->notes());
  return data;
}

void say_failures(const std::vector<BankFailure>& failures, const char* what) {
  for (size_t i = 0; i < std::min(kFailuresShown, failures.size()); ++i)
    say("{} picture failed: {}: {}{}\n", what, shown(failures[i].id),
        shown(worded(failures[i].reason)),
        failures[i].hint.empty() ? "" : fmt::format(" ({})", worded(failures[i].hint)));
  if (failures.size() > kFailuresShown)
    say("... and {} more {} pictures\n", failures.size() - kFailuresShown, what);
}

Json failures_json(const std::vector<BankFailure>& failures) {
  Json list = Json::array();
  for (const BankFailure& f : failures)
    list.push_back({{"id", f.id}, {"reason", worded(f.reason)}, {"hint", worded(f.hint)}});
  return list;
}

Json result_json(const Segmenter& segmenter, const SegmentationResult& result) {
  Json kinds = Json::array();
  for (size_t i = 0; i < result.kinds.size(); ++i) {
    const SegmentationScore& s = result.scores[i];
    Json iou = Json::object();
    for (size_t c = 0; c < s.iou.size(); ++c)
      iou[result.class_names[c]] = {{"iou", s.iou[c]}, {"pixels", s.pixels[c]}};
    kinds.push_back({{"features", result.kinds[i]},
                     {"columns", segmenter.bank(i).spec().width},
                     {"miou", s.miou},
                     {"miou_present", s.present},
                     {"miou_hungarian", s.hungarian},
                     {"pixel_accuracy", s.pixel_accuracy},
                     {"recall", result.recall[i]},
                     {"exact_search", segmenter.bank(i).is_exact()},
                     {"classes", iou}});
  }
  return kinds;
}

void print_result(const Segmenter& segmenter, const SegmentationResult& result,
                  const SegmentArguments& a) {
  std::vector<std::vector<std::string>> table, classes;
  for (size_t i = 0; i < result.kinds.size(); ++i) {
    const SegmentationScore& s = result.scores[i];
    table.push_back(
        {result.kinds[i], std::to_string(segmenter.bank(i).spec().width), percent(s.miou),
         percent(s.present), percent(s.hungarian), percent(s.pixel_accuracy),
         segmenter.bank(i).is_exact() ? "exact" : fmt::format("{:.4f}", result.recall[i])});
  }
  print_table({"features", "columns", "mIoU %", "present %", "renamed %", "pixels %", "recall"},
              table);
  fmt::print(
      "{} test pictures, {} patches remembered of {} classes, k = {}; present: mean over classes "
      "of "
      "the test masks; renamed: classes matched (Hungarian)\n\n",
      result.ids.size(), segmenter.bank(0).rows(), segmenter.classes(), segmenter.options().k);
  std::vector<std::string> head{"class"};
  for (const std::string& kind : result.kinds) head.push_back(kind + " IoU %");
  for (size_t c = 0; c < result.class_names.size(); ++c) {
    if (!result.scores[0].pixels[c]) continue;
    classes.push_back({shown(result.class_names[c])});
    for (const SegmentationScore& s : result.scores) classes.back().push_back(percent(s.iou[c]));
  }
  print_table(head, classes);
  if (!a.no_page) fmt::print("\n{}\n", shown((fs::path(a.out) / "index.html").string()));
}

// `scores`: what of each kind is put there instead of being printed.
int run_test(const SegmentArguments& a, Json* scores = nullptr) {
  const std::atomic<bool>& stop = stop_on_interrupt();
  Notes notes{.shown = !a.quiet && !a.json};
  std::vector<std::string> names;
  if (!a.class_names.empty()) names = read_class_names(a.class_names);
  const auto train = open_masks(a, true, names, notes), test = open_masks(a, false, names, notes);
  Pool pool(a.model.threads.count());
  PatchFeatures features =
      PatchFeatures::open(pulled_model(a.model.model), a.features(), pool, a.model.backbone());
  std::optional<Segmenter> segmenter;
  SegmentationResult result;
  {
    Progress progress("segment", a.quiet || a.json, &stop);
    const SegmentHooks hooks{
        .progress =
            [&](const std::string& stage, size_t done, size_t total, size_t failed) {
              progress.turn_to(stage, stage == "index" ? "steps" : "pictures");
              progress.update(done, total, failed);
            },
        .stop = &stop};
    train->find_classes(
        [&](size_t done, size_t total) { hooks.progress("masks", done, total, 0); });
    test->use_classes(*train);
    segmenter = Segmenter::build(std::move(features), *train, fs::path(a.out) / "bank", a.options(),
                                 pool, hooks);
    if (segmenter)
      result = test_segmentation(*segmenter, *test, a.out,
                                 {.at_picture_size = a.at_picture_size, .write_masks = !a.no_masks},
                                 pool, hooks);
  }
  if (!segmenter || !result.complete) {
    say("interrupted; repeat the command to go on\n");
    return kInterrupted;
  }
  notes.add(segmenter->notes());
  const std::vector<BankFailure> failed = segmenter->failed();
  if (!a.no_page) {
    const std::string page =
        make_segment_page(*segmenter, *test, result, {.pictures = a.shown}, pool);
    write_file_atomically(fs::path(a.out) / "index.html", page);
  }
  if (scores) {
    *scores = result_json(*segmenter, result);
  } else if (a.json) {
    print_json(Json{{"results", result_json(*segmenter, result)},
                    {"test_pictures", result.ids.size()},
                    {"rows", segmenter->bank(0).rows()},
                    {"settings", Json::parse(segmenter->settings())},
                    {"failed_train", failures_json(failed)},
                    {"failed_test", failures_json(result.failed)},
                    {"notes", notes.list}});
  } else {
    print_result(*segmenter, result, a);
  }
  if (!a.json && !a.quiet) {
    say_failures(failed, "training");
    say_failures(result.failed, "test");
  }
  return failed.empty() && result.failed.empty() ? kOk : kPartial;
}

// Every seed with a memory of its own, in a folder of its own.
int run_seeds(const SegmentArguments& a) {
  std::map<uint32_t, Json> scores;
  int status = kOk;
  check_seeds(a.seeds.seeds, {.stores = names_seed(a.out)});
  for (const uint32_t seed : a.seeds.seeds) {
    SegmentArguments one = a;
    one.seed = seed;
    one.out = with_seed(a.out, seed);
    const int ended = run_test(one, &scores[seed]);
    if (ended == kInterrupted) return ended;
    status = std::max(status, ended);
  }
  a.seeds.run({.stores = true}, {"features", "columns"},
              {{"miou", "mIoU %"},
               {"miou_present", "present %"},
               {"miou_hungarian", "renamed %"},
               {"pixel_accuracy", "pixels %"}},
              a.json, [&](const uint32_t* seed) { return scores.at(*seed); }, {});
  return status;
}

// One picture has the very name that was given; several go into a folder.
fs::path output_for(const std::string& out, const std::string& picture, bool several) {
  if (!several) return out;
  fs::create_directories(out);
  return fs::path(out) / fs::path(picture).filename().replace_extension(".png");
}

int run_pictures(const SegmentArguments& a) {
  const std::atomic<bool>& stop = stop_on_interrupt();
  Pool pool(a.model.threads.count());
  const Segmenter segmenter = Segmenter::open(a.bank, pool, pulled_model(a.model.model));
  size_t kind = segmenter.kinds().size() - 1;
  if (!a.kind.empty()) {
    for (kind = 0; kind < segmenter.kinds().size() && segmenter.kinds()[kind] != a.kind;) ++kind;
    if (kind == segmenter.kinds().size())
      fail(fmt::format("the memory has no features '{}'", a.kind), a.bank,
           "leave out --kind, or make a memory with gradients");
  }
  const PatchFeatures& features = segmenter.features();
  std::optional<PatchColours> colours;
  if (!a.colours.empty()) colours = PatchColours::fit(segmenter.bank(kind).features(), pool);
  const bool several = a.data.size() > 1;
  Json list = Json::array();
  bool failed = false;
  for (const std::string& picture : a.data) {
    if (stop) return kInterrupted;
    try {
      const Image image = read_image(picture);
      const std::string id = fs::path(picture).stem().string();
      auto labels = segmenter.label(
          1, [&](size_t) { return image; }, std::span(&id, 1), pool);
      if (labels[0].failure) fail(labels[0].failure->reason, picture, labels[0].failure->hint);
      const Mask mask = segmenter.mask(labels[0].shares[kind], image.width, image.height);
      const fs::path file = output_for(a.out, picture, several);
      write_mask(file, mask);
      if (colours) {
        const std::vector<uint8_t> bytes =
            encode_png(colours->picture(labels[0].features[kind], features.grid_h(),
                                        features.grid_w(), image.width, image.height, pool));
        write_file_atomically(output_for(a.colours, picture, several),
                              {std::as_bytes(std::span(bytes))});
      }
      std::vector<size_t> pixels(segmenter.classes(), 0);
      for (const uint8_t value : mask.values) ++pixels[value];
      Json shares = Json::object();
      std::string text;
      for (size_t c = 0; c < pixels.size(); ++c) {
        if (!pixels[c]) continue;
        const double share = double(pixels[c]) / double(mask.values.size());
        shares[segmenter.class_name(c)] = share;
        text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ",
                            shown(segmenter.class_name(c)), 100 * share);
      }
      list.push_back({{"picture", picture}, {"mask", file.string()}, {"shares", shares}});
      if (!a.json) fmt::print("{}: {}\n", shown(file.string()), text);
    } catch (const Exhausted&) {
      throw;
    } catch (const Error& error) {
      if (!several) throw;
      failed = true;
      list.push_back({{"picture", picture}, {"failed", worded(error).what()}});
      if (!a.json) say("{}\n", shown(worded(error).what()));
    }
  }
  if (a.json) print_json(list);
  return failed ? kPartial : kOk;
}

}  // namespace

Verb add_segment(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "segment", "Label every pixel by the nearest patches of pictures with masks, untrained");
  auto a = std::make_shared<SegmentArguments>();
  a->add_to(*self);
  return [a] {
    if (!a->bank.empty()) return run_pictures(*a);
    if (!a->seeds.seeds.empty()) return run_seeds(*a);
    check_seeds({}, {.stores = names_seed(a->out)});
    return run_test(*a);
  };
}

}  // namespace fungi::app
